// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One of several next hops, by a packet's flow: all packets of a flow take the same, and so do all
// fragments of a packet.
#ifndef CV_PATHS_H
#define CV_PATHS_H

#include "nf/router/fib.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"
#include "packet/view.h"

static CV_INLINE uint64_t cv_paths_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ UINT64_C(0xa0761d6478bd642f)) *
				    (b ^ UINT64_C(0xe7037ed1a0b428db));

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// One product more: flows that differ in one byte alone differ in few bits of the first, and with one
// key of 256 not in those that choose.
static CV_INLINE uint32_t cv_paths_fold(uint64_t mixed, uint64_t key)
{
	return (uint32_t)cv_paths_mix(mixed, key);
}

// Whether an IPv6 packet is a fragment, or its headers do not add up: only addresses are sure to be the
// same in all parts of what it is a part of. A fragment behind the first does not say the protocol if
// there are destination options.
static CV_INLINE bool cv_paths_is_part(const uint8_t *ip, enum cv_tuple_kind kind)
{
	const uint8_t *fragment;

	if (kind != CV_TUPLE_PORTS && kind != CV_TUPLE_NO_PORTS)
		return true;
	if (CV_LIKELY(!cv_ipv6_is_extension(ip[6])))
		return false;
	cv_ipv6_l4(ip, &fragment);
	return fragment != NULL;
}

// 32 random bits that a packet's flow has in common: addresses, protocol and ports; of a fragment
// those that all its fragments have. The packet is one that the router forwards.
static CV_INLINE uint32_t cv_paths_flow(const struct cv_view *view, uint64_t key)
{
	const uint8_t *l3 = view->data + view->l3;
	const uint16_t len = view->len - view->l3;
	union {
		struct cv_tuple_ipv4 v4;
		struct cv_tuple_ipv6 v6;
		uint64_t word[5];
	} tuple = {.word = {0}};

	if (view->proto == CV_PROTO_IPV4) {
		cv_tuple_ipv4(l3, len, &tuple.v4);
		if (((const struct cv_ipv4 *)l3)->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET))
			tuple.v4.sport = tuple.v4.dport = 0;
		return cv_paths_fold(cv_paths_mix(tuple.word[0] ^ key, tuple.word[1]), key);
	}
	if (CV_UNLIKELY(cv_paths_is_part(l3, cv_tuple_ipv6(l3, len, &tuple.v6)))) {
		memset(&tuple, 0, sizeof(tuple));
		memcpy(tuple.v6.src, l3 + 8, sizeof(tuple.v6.src));
		memcpy(tuple.v6.dst, l3 + 24, sizeof(tuple.v6.dst));
	}
	key = cv_paths_mix(tuple.word[0] ^ key, tuple.word[1]);
	key = cv_paths_mix(tuple.word[2] ^ key, tuple.word[3]);
	return cv_paths_fold(cv_paths_mix(tuple.word[4] ^ key, key), key);
}

// The adjacency of the next hop that the flow's share falls on; at is of CV_FIB_PATHS.
static CV_INLINE uint32_t cv_paths_choose(const struct cv_fib *fib, uint32_t at, uint32_t flow)
{
	const struct cv_adjacency *paths = &fib->adjacency[at];

	return fib->path[paths->first + (uint32_t)((uint64_t)flow * paths->count >> 32)];
}

#endif
