// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/filter.h"

#include "chain/filter_ops.h"
#include "packet/tuple.h"

// What the terms of a filter look at, of one packet.
struct facts {
	uint8_t family; // 4, 6; 0: none
	uint8_t proto;
	bool has_ports;
	uint16_t sport, dport;
	struct cv_address src, dst;
};

static void read_ipv4(const uint8_t *ip, uint32_t len, struct facts *facts)
{
	struct cv_tuple_ipv4 tuple;
	const enum cv_tuple_kind kind = cv_tuple_ipv4(ip, len, &tuple);

	if (len < 20)
		return;
	// A packet whose lengths are wrong still has addresses: it is what one looks for.
	facts->family = 4;
	facts->proto = ip[9];
	memcpy(facts->src.bytes, ip + 12, 4);
	memcpy(facts->dst.bytes, ip + 16, 4);
	facts->has_ports = kind == CV_TUPLE_PORTS;
	if (facts->has_ports) {
		facts->sport = rte_be_to_cpu_16(tuple.sport);
		facts->dport = rte_be_to_cpu_16(tuple.dport);
	}
}

static void read_ipv6(const uint8_t *ip, uint32_t len, struct facts *facts)
{
	struct cv_tuple_ipv6 tuple = {.proto = 0};
	const enum cv_tuple_kind kind = cv_tuple_ipv6(ip, len, &tuple);

	if (len < 40)
		return;
	facts->family = 6;
	facts->proto =
		kind == CV_TUPLE_BAD_HEADER || kind == CV_TUPLE_BAD_FRAGMENT ? ip[6] : tuple.proto;
	facts->src.v6 = facts->dst.v6 = true;
	memcpy(facts->src.bytes, ip + 8, 16);
	memcpy(facts->dst.bytes, ip + 24, 16);
	facts->has_ports = kind == CV_TUPLE_PORTS;
	if (facts->has_ports) {
		facts->sport = rte_be_to_cpu_16(tuple.sport);
		facts->dport = rte_be_to_cpu_16(tuple.dport);
	}
}

static bool has_vlan(const struct cv_view *view, uint16_t id)
{
	const int vlan = cv_view_vlan(view);

	return id == CV_FILTER_ANY ? vlan >= 0 : vlan == id;
}

static bool is_at(const struct cv_filter_term *term, bool src, bool dst)
{
	return (term->side != CV_FILTER_DST && src) || (term->side != CV_FILTER_SRC && dst);
}

static bool in_range(const struct cv_filter_term *term, uint16_t port)
{
	return port >= term->value && port <= term->high;
}

static bool holds(const struct cv_filter_term *term, const struct cv_view *view, unsigned chain,
	const struct facts *facts)
{
	switch (term->kind) {
	case CV_FILTER_ETHER:
		return view->proto == rte_cpu_to_be_16(term->value);
	case CV_FILTER_PROTO:
		return facts->family != 0 && facts->proto == term->value &&
		       (term->family == 0 || facts->family == term->family);
	case CV_FILTER_VLAN:
		return has_vlan(view, term->value);
	case CV_FILTER_PREFIX:
		return facts->family != 0 && is_at(term, cv_prefix_has(&term->prefix, &facts->src),
						     cv_prefix_has(&term->prefix, &facts->dst));
	case CV_FILTER_PORTS:
		return facts->has_ports &&
		       is_at(term, in_range(term, facts->sport), in_range(term, facts->dport));
	case CV_FILTER_IN:
		return view->in == term->value;
	case CV_FILTER_CHAIN:
		return chain == term->value;
	case CV_FILTER_DROP:
	default:
		return false;
	}
}

uint32_t cv_filter_test(const struct cv_filter *filter, const struct cv_view *view, unsigned chain)
{
	const uint32_t len = (uint32_t)view->len - view->l3;
	struct facts facts = {.family = 0};
	uint32_t terms = 0;

	if (filter->terms_count == 0)
		return 0;
	if (view->proto == CV_PROTO_IPV4)
		read_ipv4(view->data + view->l3, len, &facts);
	else if (view->proto == CV_PROTO_IPV6)
		read_ipv6(view->data + view->l3, len, &facts);
	for (unsigned i = 0; i < filter->terms_count; i++)
		terms |= (uint32_t)holds(&filter->terms[i], view, chain, &facts) << i;
	return terms;
}

// Kleene's logic: what a value may be, a bit for each of false and true.
enum { MAY_BE_FALSE = 1, MAY_BE_TRUE = 2 };

static unsigned not_of(unsigned a)
{
	return (a & MAY_BE_TRUE) >> 1 | (a & MAY_BE_FALSE) << 1;
}

static unsigned and_of(unsigned a, unsigned b)
{
	return ((a | b) & MAY_BE_FALSE) | (a & b & MAY_BE_TRUE);
}

// What the filter may say, of what terms may be.
static unsigned say(const struct cv_filter *filter, uint32_t terms, uint32_t unknown)
{
	unsigned stack[CV_FILTER_STACK_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < filter->ops_count; i++) {
		const unsigned op = filter->ops[i];

		if (op == CV_FILTER_NOT) {
			stack[n - 1] = not_of(stack[n - 1]);
		} else if (op == CV_FILTER_AND) {
			n--;
			stack[n - 1] = and_of(stack[n - 1], stack[n]);
		} else if (op == CV_FILTER_OR) {
			n--;
			stack[n - 1] = not_of(and_of(not_of(stack[n - 1]), not_of(stack[n])));
		} else {
			stack[n++] = unknown >> op & 1 ? MAY_BE_FALSE | MAY_BE_TRUE
				     : terms >> op & 1 ? MAY_BE_TRUE
						       : MAY_BE_FALSE;
		}
	}
	return n == 0 ? MAY_BE_TRUE : stack[0];
}

bool cv_filter_takes(const struct cv_filter *filter, uint32_t terms)
{
	return say(filter, terms, 0) == MAY_BE_TRUE;
}

bool cv_filter_may_take(const struct cv_filter *filter, uint32_t terms)
{
	return say(filter, terms, filter->drops) & MAY_BE_TRUE;
}

uint32_t cv_filter_dropped(const struct cv_filter *filter, uint32_t terms, const char *reason)
{
	for (unsigned i = 0; i < filter->terms_count; i++)
		if (filter->drops >> i & 1 && strcmp(filter->terms[i].name, reason) == 0)
			terms |= UINT32_C(1) << i;
	return terms;
}
