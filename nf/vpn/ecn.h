// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Congestion marks on the way out of a tunnel (RFC 6040 section 4.2). The class outside stays there otherwise:
// the DSCP inside is the sender's.
#ifndef CV_VPN_ECN_H
#define CV_VPN_ECN_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/checksum.h"
#include "packet/ipv4.h"

#define CV_ECN_MASK 3
#define CV_ECN_NONE 0 // not capable
#define CV_ECN_1 1
#define CV_ECN_0 2
#define CV_ECN_CE 3 // congestion experienced
#define CV_ECN_DROP 4

// What the codepoint inside becomes; CV_ECN_DROP: the packet was marked and cannot say so.
static CV_INLINE uint8_t cv_ecn_decapsulate(uint8_t outer, uint8_t inner)
{
	if (inner == CV_ECN_NONE)
		return outer == CV_ECN_CE ? CV_ECN_DROP : CV_ECN_NONE;
	if (outer == CV_ECN_CE || inner == CV_ECN_CE)
		return CV_ECN_CE;
	return outer == CV_ECN_1 ? CV_ECN_1 : inner;
}

// Takes the mark of the class outside over to a packet, whose header is sound. False: it must be dropped.
static CV_INLINE bool cv_ecn_apply(uint8_t outer_class, uint8_t *ip, bool v6)
{
	const uint8_t inner = (v6 ? ip[1] >> 4 : ip[1]) & CV_ECN_MASK;
	const uint8_t mark = cv_ecn_decapsulate(outer_class & CV_ECN_MASK, inner);
	uint16_t old, now;

	if (mark == CV_ECN_DROP)
		return false;
	if (CV_LIKELY(mark == inner))
		return true;
	memcpy(&old, ip, sizeof(old));
	ip[1] = (uint8_t)(ip[1] ^ (inner ^ mark) << (v6 ? 4 : 0));
	memcpy(&now, ip, sizeof(now));
	if (!v6)
		((struct cv_ipv4 *)ip)->checksum =
			cv_checksum_update(((struct cv_ipv4 *)ip)->checksum, old, now);
	return true;
}

#endif
