// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Fragmentation of IPv4 packets (RFC 791 section 3.2). The packet is one whose header
// cv_ipv4_check() accepted, all of whose bytes are there; it may be a fragment itself.
#ifndef CV_IPV4_FRAGMENT_H
#define CV_IPV4_FRAGMENT_H

#include <stdint.h>

#include "packet/ipv4.h"

// How a packet is divided.
struct cv_ipv4_fragments {
	uint16_t count; // 0: it cannot be divided
	uint16_t first_len; // of the first fragment, header included
	uint16_t other_header; // bytes: with the options that are copied into each
	uint16_t step; // bytes of payload in each but the first and the last
	uint16_t first_payload;
	uint16_t payload; // bytes in all
};

// Divides a packet that is longer than mtu, which is at least 68.
void cv_ipv4_fragments(const struct cv_ipv4 *ip, uint16_t mtu, struct cv_ipv4_fragments *fragments);

// How long fragment number i is, from 1 (the packet itself becomes the first), header included.
uint16_t cv_ipv4_fragment_len(const struct cv_ipv4_fragments *fragments, uint16_t i);

// Writes fragment number i, from 1, of the packet, which is still whole: so many bytes at out.
void cv_ipv4_fragment(const struct cv_ipv4 *ip, const struct cv_ipv4_fragments *fragments,
	uint16_t i, uint8_t *out);

// Makes the header one of the first fragment: the packet's first first_len bytes.
void cv_ipv4_fragment_first(struct cv_ipv4 *ip, const struct cv_ipv4_fragments *fragments);

#endif
