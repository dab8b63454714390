// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The IPv6 header (RFC 8200).
#ifndef CV_IPV6_H
#define CV_IPV6_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CV_IPV6_LEN 40

// May lie at any address: packets are not aligned.
struct cv_ipv6 {
	rte_be32_t version_class_flow; // 4, 8 and 20 bits
	rte_be16_t payload_len; // extension headers and what follows
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
} __attribute__((packed, aligned(1)));

_Static_assert(sizeof(struct cv_ipv6) == CV_IPV6_LEN, "as on the wire");

// Checks the header at the start of room bytes: version, and the payload length against the
// frame. Bytes behind it are padding. Jumbograms (RFC 2675), whose length field is 0, do not fit
// a view: such a packet is taken as one without payload.
static CV_INLINE bool cv_ipv6_check(const struct cv_ipv6 *ip, uint16_t room)
{
	if (CV_UNLIKELY(room < CV_IPV6_LEN))
		return false;
	return (*(const uint8_t *)ip >> 4) == 6 &&
	       rte_be_to_cpu_16(ip->payload_len) <= room - CV_IPV6_LEN;
}

static CV_INLINE bool cv_ipv6_multicast(const uint8_t *address)
{
	return address[0] == 0xff;
}

static CV_INLINE bool cv_ipv6_is_link_local(const uint8_t *address)
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

// True for addresses that no router may forward from or to: unspecified, loopback, multicast,
// link-local (RFC 4291 sections 2.5.2, 2.5.3, 2.5.6 and 2.7).
static CV_INLINE bool cv_ipv6_martian(const uint8_t *address)
{
	uint64_t high, low;

	if (CV_LIKELY(address[0] != 0 && address[0] < 0xfe))
		return false;
	if (cv_ipv6_multicast(address))
		return true;
	if (address[0] == 0xfe)
		return (address[1] & 0xc0) == 0x80;
	memcpy(&high, address, 8);
	memcpy(&low, address + 8, 8);
	return high == 0 && rte_be_to_cpu_64(low) <= 1;
}

#endif
