// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ethernet addresses.
#ifndef CV_ETHER_H
#define CV_ETHER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"

#define CV_MAC_LEN 6

// True for multicast and broadcast addresses: the group bit of the first byte.
static CV_INLINE bool cv_mac_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

// The frames that are taken in from a port: of their first 8 bytes, those bits that mask has are as in
// mac.
struct cv_mac_match {
	uint64_t mac, mask;
};

// Any but those to groups.
static inline struct cv_mac_match cv_mac_match_any(void)
{
	struct cv_mac_match match = {0};

	memset(&match.mask, 1, 1);
	return match;
}

// Those to this unicast address.
static inline struct cv_mac_match cv_mac_match_one(const uint8_t mac[CV_MAC_LEN])
{
	struct cv_mac_match match = {0};

	memcpy(&match.mac, mac, CV_MAC_LEN);
	memset(&match.mask, 0xff, CV_MAC_LEN);
	return match;
}

// At data are 8 bytes or more. 0: the frame is taken.
static CV_INLINE uint64_t cv_mac_differs(const struct cv_mac_match *match, const uint8_t *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return (word ^ match->mac) & match->mask;
}

// Of frames whose first 8 bytes have, taken together, the bits of any set somewhere and those of all
// set everywhere. False: each of them is taken.
static CV_INLINE bool cv_mac_differ(const struct cv_mac_match *match, uint64_t any, uint64_t all)
{
	return (((any ^ match->mac) | (all ^ match->mac)) & match->mask) != 0;
}

// Reads six pairs of hexadecimal digits with ':' or '-' between them and nothing after.
static inline bool cv_mac_parse(const char *text, uint8_t mac[CV_MAC_LEN])
{
	for (int i = 0; i < CV_MAC_LEN; i++) {
		unsigned value = 0;

		for (int digit = 0; digit < 2; digit++) {
			char c = *text++;

			if (c >= '0' && c <= '9')
				value = value * 16 + (unsigned)(c - '0');
			else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
				value = value * 16 + (unsigned)((c | 0x20) - 'a' + 10);
			else
				return false;
		}
		mac[i] = (uint8_t)value;
		if (i < CV_MAC_LEN - 1) {
			if (*text != ':' && *text != '-')
				return false;
			text++;
		}
	}
	return *text == '\0';
}

#endif
