// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A flow's tuple and its keys: one is made of the other.
#ifndef CV_FLOW_TUPLES_H
#define CV_FLOW_TUPLES_H

#include "flow/flow.h"
#include "flow/parse.h"
#include "flow/rewrite.h"
#include "flow/table.h"

static inline void cv_flow_set_tuple(
	const union cv_flow_key *key, bool v6, struct cv_flow_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	if (v6) {
		*tuple = (struct cv_flow_tuple){.family = 6,
			.proto = key->ipv6.proto,
			.sport = key->ipv6.sport,
			.dport = key->ipv6.dport};
		memcpy(tuple->src.ipv6, key->ipv6.src, 16);
		memcpy(tuple->dst.ipv6, key->ipv6.dst, 16);
	} else {
		*tuple = (struct cv_flow_tuple){.family = 4,
			.proto = key->ipv4.proto,
			.sport = key->ipv4.sport,
			.dport = key->ipv4.dport};
		tuple->src.ipv4 = key->ipv4.src;
		tuple->dst.ipv4 = key->ipv4.dst;
	}
}

// The key of the answers to packets with this tuple.
static inline void cv_flow_set_answer(const struct cv_flow_tuple *tuple, union cv_flow_key *key)
{
	if (tuple->family == 6) {
		memset(key, 0, sizeof(*key));
		memcpy(key->ipv6.src, tuple->dst.ipv6, 16);
		memcpy(key->ipv6.dst, tuple->src.ipv6, 16);
		key->ipv6.sport = tuple->dport;
		key->ipv6.dport = tuple->sport;
		key->ipv6.proto = tuple->proto;
	} else {
		cv_flow_key_write(&key->ipv4, tuple->dst.ipv4, tuple->src.ipv4, tuple->dport,
			tuple->sport, tuple->proto);
	}
}

// Whether the ports of a tuple may be other than before.
static inline bool cv_flow_ports_allowed(
	const struct cv_flow_tuple *was, const struct cv_flow_tuple *is)
{
	const bool icmp = cv_flow_is_icmp(is->proto, is->family == 6);

	if (was->sport == is->sport && was->dport == is->dport)
		return true;
	if (icmp) // the identifier, which is one of the two; the other is 0
		return (was->dport == 0 && is->dport == 0) || (was->sport == 0 && is->sport == 0);
	return cv_proto_has_ports(is->proto) && cv_flow_checksum_at(is->proto) != 0;
}

#endif
