// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/explain.h"

#include <stdio.h>
#include <string.h>

#include <rte_rib.h>

#include "dpdk/compat.h"
#include "nf/router/paths.h"

// What explain() leaves for in_words(): the row is 1 + an adjacency.
struct match {
	uint8_t v6;
	uint8_t length; // of the route's prefix
	uint8_t several; // the route has several next hops
	uint8_t destination[16];
};

_Static_assert(sizeof(struct match) <= sizeof(((struct cv_nf_because *)0)->more), "it has room");

#define LENGTH_UNKNOWN 255

// The length of the longest prefix that has an IPv4 address, in host order.
static uint8_t length_v4(const struct cv_fib *fib, uint32_t address)
{
	struct rte_rib_node *node =
		fib->v4 == NULL ? NULL : rte_rib_lookup(rte_fib_get_rib(fib->v4), address);
	uint8_t length = LENGTH_UNKNOWN;

	if (node != NULL)
		rte_rib_get_depth(node, &length);
	return length;
}

void cv_fib_explain(
	const struct cv_fib *fib, const struct cv_view *view, struct cv_nf_because *because)
{
	const uint8_t *l3 = view->data + view->l3;
	const unsigned room = view->len - view->l3;
	struct match match = {.length = LENGTH_UNKNOWN};
	uint32_t at;

	if (view->proto == CV_PROTO_IPV4 && room >= CV_IPV4_LEN) {
		uint32_t address;

		memcpy(match.destination, l3 + 16, 4);
		memcpy(&address, l3 + 16, 4);
		address = rte_be_to_cpu_32(address);
		at = cv_fib_find_v4(fib, address);
		match.length = length_v4(fib, address);
	} else if (view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN) {
		match.v6 = 1;
		memcpy(match.destination, l3 + 24, 16);
		at = cv_fib_find_v6(fib, match.destination);
	} else {
		return;
	}
	if (fib->adjacency[at].outcome == CV_FIB_PATHS) {
		match.several = 1;
		at = cv_paths_choose(fib, at, cv_paths_flow(view, fib->flow_key));
	}
	because->row = 1 + at;
	memcpy(because->more, &match, sizeof(match));
}

// The same of an IPv6 address, of a table that does not change.
static uint8_t length_v6(const struct cv_fib *fib, const uint8_t *address)
{
	struct rte_ipv6_addr destination;
	uint32_t next_hop;

	memcpy(destination.a, address, sizeof(destination.a));
	for (uint8_t length = 128; fib->v6 != NULL && length > 0; length--)
		if (rte_lpm6_is_rule_present(fib->v6, &destination, length, &next_hop) == 1)
			return length;
	return 0;
}

// The prefix of a length that has the destination, and a blank.
static void prefix_in_words(const struct match *match, uint8_t length, char words[])
{
	struct cv_prefix prefix = {.address.v6 = match->v6, .length = length};

	memcpy(prefix.address.bytes, match->destination, sizeof(match->destination));
	cv_prefix_mask(&prefix);
	strcat(cv_prefix_text(&prefix, words), " ");
}

static const char *const outcomes[] = {
	// NULL: packets leave by a port
	[CV_FIB_FORWARD] = NULL,
	[CV_FIB_NO_ROUTE] = "no route",
	[CV_FIB_LOCAL] = "an address of its own",
	[CV_FIB_BROADCAST] = "a broadcast address",
	[CV_FIB_BLACKHOLE] = "blackhole",
	[CV_FIB_UNREACHABLE] = "unreachable",
	[CV_FIB_PROHIBIT] = "prohibit",
};

void cv_fib_in_words(const struct cv_fib *fib, bool changes, const struct cv_neighbour_table *table,
	const char *const *ports, const struct cv_nf_because *because, char *words, size_t room)
{
	const uint32_t at = because->row - 1;
	char prefix[CV_PREFIX_TEXT + 1] = "", address[CV_PREFIX_TEXT];
	uint8_t outcome, port;
	struct cv_neighbour_key key;
	struct match match;

	if (at >= fib->adjacencies)
		return;
	memcpy(&match, because->more, sizeof(match));
	outcome = __atomic_load_n(&fib->adjacency[at].outcome, __ATOMIC_RELAXED);
	port = __atomic_load_n(&fib->adjacency[at].port, __ATOMIC_RELAXED);
	if (match.v6 && !changes)
		match.length = length_v6(fib, match.destination);
	if (match.length <= 128 && at != CV_FIB_AT_NO_ROUTE)
		prefix_in_words(&match, match.length, prefix);
	if (outcomes[outcome] != NULL)
		snprintf(words, room, "%s%s", prefix, outcomes[outcome]);
	else if (table != NULL && at >= fib->neighbours_at &&
		 cv_neighbour_table_key(table, at - fib->neighbours_at, &key))
		snprintf(words, room, "%svia %s dev %s%s", prefix,
			cv_address_text(&key.address, address), ports[key.port],
			match.several ? ", one of several" : "");
	else
		snprintf(words, room, "%sdev %s%s", prefix, ports[port],
			match.several ? ", one of several" : "");
}
