// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The segment routing header of IPv6 (RFC 8754 section 2), and what lies behind it.
#ifndef CV_SRV6_HEADER_H
#define CV_SRV6_HEADER_H

#include "packet/ipv6.h"
#include "packet/tuple.h"

#define CV_SRH_LEN 8 // without segments
#define CV_SRH_TYPE 4
#define CV_SEGMENT_LEN 16
#define CV_SEGMENTS_MAX 16 // that a packet is given
#define CV_SRV6_IPV4 4 // next header
#define CV_SRV6_IPV6 41
#define CV_SRV6_ETHERNET 143

// May lie at any address: packets are not aligned.
struct cv_srh {
	uint8_t next;
	uint8_t len; // units of 8 bytes, the first left out
	uint8_t type;
	uint8_t left; // segments
	uint8_t last; // entry of the list of segments
	uint8_t flags;
	rte_be16_t tag;
	uint8_t segment[][CV_SEGMENT_LEN]; // the last one of the path first
} __attribute__((packed, aligned(1)));

_Static_assert(sizeof(struct cv_srh) == CV_SRH_LEN, "as on the wire");

// Where things are in an IPv6 packet: offsets from its beginning.
struct cv_srv6 {
	uint16_t srh; // 0: there is none
	uint16_t
		unknown; // a routing header of another type that has segments left; 0: there is none
	uint16_t upper; // what follows the extension headers
	uint8_t proto; // what that is
};

// Walks the extension headers of a packet whose header cv_ipv6_check() accepted: hop-by-hop and destination
// options, routing. False: they do not fit into it, or are too many.
static CV_INLINE bool cv_srv6_read(const uint8_t *ip, struct cv_srv6 *srv6)
{
	const uint32_t end =
		CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len);
	uint32_t at = CV_IPV6_LEN;

	*srv6 = (struct cv_srv6){.proto = ((const struct cv_ipv6 *)ip)->next};
	for (int left = CV_IPV6_EXTENSIONS_MAX; left > 0; left--) {
		if (srv6->proto != IPPROTO_HOPOPTS && srv6->proto != IPPROTO_DSTOPTS &&
			srv6->proto != IPPROTO_ROUTING) {
			srv6->upper = (uint16_t)at;
			return true;
		}
		if (end - at < 8 || end - at < (ip[at + 1] + 1u) * 8)
			return false;
		if (srv6->proto == IPPROTO_ROUTING && ip[at + 2] != CV_SRH_TYPE &&
			ip[at + 3] != 0) {
			srv6->unknown = (uint16_t)at;
			return true;
		}
		if (srv6->proto == IPPROTO_ROUTING && ip[at + 2] == CV_SRH_TYPE && srv6->srh == 0)
			srv6->srh = (uint16_t)at;
		srv6->proto = ip[at];
		at += (ip[at + 1] + 1u) * 8;
	}
	return false;
}

#endif
