// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which worker keeps a flow, where several share them: the home of its internal address. All of a
// subscriber's mappings are there, so that he keeps his external address (RFC 4787 REQ-2) and his
// mappings do not depend on who is remote (REQ-1). Each worker has blocks of ports of its own, which
// say whose an external port is; a forward's is its internal host's.
//
// Where both ends are internal, a hairpin, packets and answers show one end each by its external
// address, and go to the lower one of the two homes. That one reaches into the other's mappings.
//
// Protocols without ports go by the remote address: nothing else is the same in both directions.
#include "nf/nat/nat.h"

#include <errno.h>
#include <stdlib.h>

static bool is_one_of(const rte_be32_t *addresses, unsigned count, rte_be32_t address)
{
	return bsearch(&address, addresses, count, sizeof(address), cv_nat_compare_addresses) !=
	       NULL;
}

// The internal address that an external address and port is forwarded to; NULL: it is not.
static const rte_be32_t *forwarded(const struct cv_nat *nat, const struct cv_flow_tuple *tuple)
{
	const struct cv_nat_forward key = {
		.proto = tuple->proto, .external = tuple->dst.ipv4, .external_port = tuple->dport};
	const struct cv_nat_forward *forward = bsearch(&key, nat->lists.forwards,
		nat->lists.forwards_count, sizeof(key), cv_nat_compare_forwards);

	return forward != NULL ? &forward->internal : NULL;
}

static uint8_t home_of(const struct cv_flow_homes *homes, rte_be32_t address)
{
	const union cv_flow_address of = {.ipv4 = address};

	return cv_flow_home_of_address(homes, 4, &of);
}

static uint8_t home_of_external(const struct cv_nat *nat, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple)
{
	const rte_be32_t *internal = nat->lists.forwards_count > 0 ? forwarded(nat, tuple) : NULL;

	return internal != NULL ? home_of(homes, *internal)
				: cv_nat_owner(nat->state, tuple->dport);
}

// Neither end is external: by the one that may be internal. Of two, or of none, nothing is rewritten.
static uint8_t home_of_internal(
	const struct cv_nat *nat, const struct cv_flow_tuple *tuple, bool ports)
{
	bool src = cv_nat_is_inside(nat, tuple->src.ipv4);
	bool dst = cv_nat_is_inside(nat, tuple->dst.ipv4);

	if (src == dst &&
		nat->lists.forwards_count > 0) { // a forward may lead to one that is not inside
		src = is_one_of(nat->targets, nat->lists.forwards_count, tuple->src.ipv4);
		dst = is_one_of(nat->targets, nat->lists.forwards_count, tuple->dst.ipv4);
	}
	if (src == dst)
		return CV_FLOW_HOME_BY_TUPLE;
	return src == ports ? CV_FLOW_HOME_BY_SOURCE : CV_FLOW_HOME_BY_DESTINATION;
}

// Of any packet.
static CV_NOINLINE uint8_t home_of_any(const struct cv_nat *nat, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple, uint8_t in)
{
	const bool ports = cv_nat_kind_of(tuple->proto) >= 0;
	uint8_t here, there;

	if (tuple->family != 4)
		return CV_FLOW_HOME_BY_TUPLE;
	if (!cv_nat_is_external(nat, tuple->dst.ipv4))
		return home_of_internal(nat, tuple, ports);
	if (!ports)
		return CV_FLOW_HOME_BY_SOURCE;
	there = home_of_external(nat, homes, tuple);
	if (nat->lists.outside[in] || !cv_nat_is_inside(nat, tuple->src.ipv4))
		return there;
	here = home_of(homes, tuple->src.ipv4);
	return here < there ? here : there; // there may be none
}

// Nearly all packets, of UDP and TCP, one end of which is inside, are told without a call.
uint8_t cv_nat_home(const void *instance, const struct cv_flow_homes *homes,
	const struct cv_flow_tuple *tuple, uint8_t in)
{
	const struct cv_nat *nat = instance;

	if (CV_UNLIKELY(tuple->family != 4 ||
			(tuple->proto != IPPROTO_UDP && tuple->proto != IPPROTO_TCP)))
		return home_of_any(nat, homes, tuple, in);
	if (cv_nat_may_be_external(nat, tuple->dst.ipv4)) {
		if (CV_LIKELY(nat->external_dense && nat->lists.outside[in] &&
			      nat->lists.forwards_count == 0))
			return cv_nat_owner(nat->state, tuple->dport);
	} else {
		const bool src = cv_nat_is_inside(nat, tuple->src.ipv4);

		if (CV_LIKELY(src != cv_nat_is_inside(nat, tuple->dst.ipv4)))
			return src ? CV_FLOW_HOME_BY_SOURCE : CV_FLOW_HOME_BY_DESTINATION;
	}
	return home_of_any(nat, homes, tuple, in);
}

// Addresses that forwards lead to, ascending.
int cv_nat_home_init(struct cv_nat *nat)
{
	const struct cv_nat_lists *lists = &nat->lists;

	nat->targets = calloc(lists->forwards_count + 1u, sizeof(*nat->targets));
	if (nat->targets == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < lists->forwards_count; i++)
		nat->targets[i] = lists->forwards[i].internal;
	qsort(nat->targets, nat->lists.forwards_count, sizeof(*nat->targets),
		cv_nat_compare_addresses);
	return 0;
}
