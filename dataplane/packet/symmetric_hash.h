// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The keyed hash of the flow that a packet belongs to, the same in both directions: for who chooses by
// it where all packets of a flow go. Without the key nobody can make flows that all go to one place.
// An ICMP error is of the flow of the packet inside of it.
#ifndef CV_SYMMETRIC_HASH_H
#define CV_SYMMETRIC_HASH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"
#include "packet/view.h"

static CV_INLINE uint64_t cv_symmetric_mix(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)(a ^ UINT64_C(0xa0761d6478bd642f)) *
					  (b ^ UINT64_C(0xe7037ed1a0b428db));

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Both ends, the lower one first. lo and hi are their addresses, as words in any order of bytes.
struct cv_ends {
	uint64_t lo[2], hi[2];
	uint32_t
		ports; // the lower one first; 0: there are none, or not in each of the flow's packets
	uint8_t proto;
};

// The ports of a protocol that has them, of which len bytes are there.
static CV_INLINE uint32_t cv_ends_ports(uint8_t proto, const uint8_t *at, uint32_t len)
{
	uint16_t a, b;

	if (!cv_proto_has_ports(proto) || len < 4)
		return 0;
	memcpy(&a, at, sizeof(a));
	memcpy(&b, at + 2, sizeof(b));
	return a < b ? (uint32_t)b << 16 | a : (uint32_t)a << 16 | b;
}

// Of an IPv4 packet of which len >= CV_IPV4_LEN bytes are there. Returns where its layer 4 begins, if
// it is whole and in these bytes; else 0.
static CV_INLINE uint32_t cv_ends_ipv4(const uint8_t *at, uint32_t len, struct cv_ends *ends)
{
	struct cv_ipv4 ip;
	uint32_t header;

	memcpy(&ip, at, sizeof(ip));
	CV_COPIED();
	*ends = (struct cv_ends){.proto = ip.proto};
	ends->lo[0] = ip.src < ip.dst ? ip.src : ip.dst;
	ends->hi[0] = ip.src < ip.dst ? ip.dst : ip.src;
	header = cv_ipv4_header_len(&ip);
	if (CV_UNLIKELY((ip.fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) || header < CV_IPV4_LEN ||
			header > len))
		return 0;
	ends->ports = cv_ends_ports(ip.proto, at + header, len - header);
	return header;
}

// The same for IPv6, len >= CV_IPV6_LEN. All fragments of a packet have the fragment header's protocol.
static CV_INLINE uint32_t cv_ends_ipv6(const uint8_t *at, uint32_t len, struct cv_ends *ends)
{
	uint64_t src[2], dst[2];
	uint32_t header = CV_IPV6_LEN, left = CV_IPV6_EXTENSIONS_MAX;
	uint8_t proto = at[6];
	bool swap;

	memcpy(src, at + 8, sizeof(src));
	memcpy(dst, at + 24, sizeof(dst));
	CV_COPIED();
	swap = src[0] > dst[0] || (src[0] == dst[0] && src[1] > dst[1]);
	*ends = (struct cv_ends){0};
	memcpy(ends->lo, swap ? dst : src, sizeof(src));
	memcpy(ends->hi, swap ? src : dst, sizeof(src));
	while (CV_UNLIKELY(cv_ipv6_is_extension(proto)) && proto != IPPROTO_FRAGMENT && left > 0 &&
		len - header >= 8) {
		const uint8_t words = at[header + 1], next = at[header];
		const uint32_t bytes = proto == IPPROTO_AH ? (words + 2u) * 4 : (words + 1u) * 8;

		CV_COPIED();
		if (bytes > len - header)
			break;
		header += bytes;
		proto = next;
		left--;
	}
	ends->proto = proto;
	if (CV_UNLIKELY(cv_ipv6_is_extension(proto)))
		return 0;
	ends->ports = cv_ends_ports(proto, at + header, len - header);
	return header;
}

// Of the packet that an ICMP error quotes at layer 4's bytes, if it is one: the flow's own.
static inline void cv_ends_quoted(
	bool ipv6, const uint8_t *icmp, uint32_t len, struct cv_ends *ends)
{
	const uint8_t type = len >= 8 ? icmp[0] : 0;
	const bool error = ipv6 ? type >= 1 && type <= 4 && len >= 8
				: type == 3 || type == 4 || type == 5 || type == 11 || type == 12;

	if (!error || len < 8u + (ipv6 ? CV_IPV6_LEN : CV_IPV4_LEN))
		return;
	if (ipv6)
		cv_ends_ipv6(icmp + 8, len - 8, ends);
	else
		cv_ends_ipv4(icmp + 8, len - 8, ends);
}

// 32 bits by a key that is secret. by_addresses: all packets between two addresses are one flow, and
// all fragments of its packets are of it; else a fragment is of the flow of its addresses and protocol.
// What is not IP is told by its MAC addresses. Reads are bounded by the view's length, also while
// somebody changes the bytes.
static CV_INLINE uint32_t cv_symmetric_hash(
	const struct cv_view *view, uint64_t key, bool by_addresses)
{
	const uint8_t *l3 = view->data + view->l3;
	const uint32_t len = (uint32_t)(view->len - view->l3);
	struct cv_ends ends = {0};
	uint32_t l4;

	if (CV_LIKELY(view->proto == CV_PROTO_IPV4 && len >= CV_IPV4_LEN)) {
		l4 = cv_ends_ipv4(l3, len, &ends);
		if (CV_UNLIKELY(ends.proto == IPPROTO_ICMP) && l4 != 0)
			cv_ends_quoted(false, l3 + l4, len - l4, &ends);
	} else if (view->proto == CV_PROTO_IPV6 && len >= CV_IPV6_LEN) {
		l4 = cv_ends_ipv6(l3, len, &ends);
		if (CV_UNLIKELY(ends.proto == IPPROTO_ICMPV6) && l4 != 0)
			cv_ends_quoted(true, l3 + l4, len - l4, &ends);
		key = cv_symmetric_mix(ends.lo[1] ^ key, ends.hi[1]);
	} else if (view->len >= CV_ETHER_LEN) {
		uint64_t dst = 0, src = 0;

		memcpy(&dst, view->data, 6);
		memcpy(&src, view->data + 6, 6);
		ends.lo[0] = dst < src ? dst : src;
		ends.hi[0] = dst < src ? src : dst;
	}
	key ^= cv_symmetric_mix(ends.lo[0] ^ key, ends.hi[0]);
	if (!by_addresses)
		key ^= (uint64_t)ends.proto << 32 | ends.ports;
	// One product more: flows that differ in one byte alone differ in few bits of the first.
	key = cv_symmetric_mix(key, key >> 32 | key << 32);
	return (uint32_t)cv_symmetric_mix(key, UINT64_C(0x9e3779b97f4a7c15));
}

#endif
