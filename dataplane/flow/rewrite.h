// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a flow changes in its packets. Checksums are updated, not made anew: what was wrong stays so.
// A UDP checksum of zero (none) stays zero, and one that becomes zero is written as 0xffff.
#ifndef CV_FLOW_REWRITE_H
#define CV_FLOW_REWRITE_H

#include <stdint.h>

#include "flow/flow.h"
#include "flow/parse.h"
#include "flow/table.h"
#include "packet/checksum.h"

// The sum that rewriting adds in a direction: replies undo what forward packets get.
static CV_INLINE uint16_t cv_flow_delta(uint16_t forward, unsigned direction)
{
	return forward ^ (uint16_t)-direction;
}

// A checksum after its words' sum grew by delta: RFC 1624 equation 3.
static CV_INLINE rte_be16_t cv_flow_checksum(rte_be16_t checksum, uint16_t delta)
{
	uint16_t difference;
	// ~(~checksum + delta) is checksum - delta, in ones' complement.
	const bool borrow = __builtin_sub_overflow(checksum, delta, &difference);

	return (rte_be16_t)(difference - borrow);
}

static CV_INLINE void cv_flow_checksum_at_update(uint8_t *at, uint16_t delta, bool udp)
{
	rte_be16_t checksum = cv_load_be16(at);

	if (udp && checksum == 0)
		return;
	checksum = cv_flow_checksum(checksum, delta);
	if (udp && checksum == 0)
		checksum = 0xffff;
	memcpy(at, &checksum, 2);
}

// What forward rewriting from one key to that which replies have adds to the sums of the IP header
// and of layer 4.
static inline void cv_flow_deltas(const union cv_flow_key *from, const union cv_flow_key *reply,
	bool v6, uint16_t *ip_delta, uint16_t *l4_delta)
{
	const unsigned addresses = v6 ? 32 : 8;
	const uint8_t proto = v6 ? from->ipv6.proto : from->ipv4.proto;
	const uint8_t *a = (const uint8_t *)from, *b = (const uint8_t *)reply;
	uint64_t old = cv_checksum_add(0, a, addresses), new = cv_checksum_add(0, b, addresses);
	const uint64_t old_ports = cv_checksum_add(0, a + addresses, 4);
	const uint64_t new_ports = cv_checksum_add(0, b + addresses, 4);

	// No sum is below 0: this is nothing in one's complement, and more than a sum of nine words.
	new += UINT64_C(0xffff) << 20;
	*ip_delta = cv_checksum_fold(new - old);
	if (proto == IPPROTO_ICMP) // its checksum is not over the addresses
		new = old + (UINT64_C(0xffff) << 20);
	*l4_delta = cv_checksum_fold(new - old + new_ports - old_ports);
}

// Writes the addresses that a packet of this direction leaves with: those that its answers have,
// turned around.
static inline void cv_flow_put_addresses(
	struct cv_flow *flow, unsigned direction, bool v6, uint8_t *ip)
{
	const uint8_t *answer = cv_flow_stored(flow, !direction, v6);

	if (v6) {
		memcpy(ip + 8, answer + 16, 16);
		memcpy(ip + 24, answer, 16);
	} else {
		memcpy(ip + 12, answer + 4, 4);
		memcpy(ip + 16, answer, 4);
	}
}

// The same for the ports, or the identifier, at the beginning of layer 4.
static inline void cv_flow_put_ports(struct cv_flow *flow, unsigned direction, bool v6, uint8_t *l4)
{
	const uint8_t *ports = cv_flow_stored(flow, !direction, v6) + (v6 ? 32 : 8);

	if (cv_flow_is_icmp(flow->proto, v6)) {
		const enum cv_flow_icmp kind = cv_flow_icmp_kind(flow->proto, l4[0]);

		// A request's sport, which is its answers' dport, and the other way round.
		if (kind == CV_FLOW_ICMP_REQUEST)
			memcpy(l4 + 4, ports + 2, 2);
		else if (kind == CV_FLOW_ICMP_ANSWER)
			memcpy(l4 + 4, ports, 2);
	} else if (cv_proto_has_ports(flow->proto)) {
		memcpy(l4, ports + 2, 2);
		memcpy(l4 + 2, ports, 2);
	}
}

// Rewrites any packet of the flow: with options, extension headers, fragments.
static inline void cv_flow_rewrite(const struct cv_view *view, const struct cv_flow_parsed *parsed,
	struct cv_flow *flow, unsigned direction)
{
	uint8_t *ip = view->data + parsed->l3, *l4 = view->data + parsed->l4;
	const unsigned checksum_at = cv_flow_checksum_at(flow->proto);

	cv_flow_put_addresses(flow, direction, parsed->v6, ip);
	if (!parsed->v6)
		cv_flow_checksum_at_update(
			ip + 10, cv_flow_delta(flow->ip_delta, direction), false);
	if (parsed->kind == CV_FLOW_IS_FRAGMENT)
		return;
	cv_flow_put_ports(flow, direction, parsed->v6, l4);
	if (checksum_at == 0)
		return;
	cv_flow_checksum_at_update(l4 + checksum_at, cv_flow_delta(flow->l4_delta, direction),
		flow->proto == IPPROTO_UDP);
	// An echo reply whose identifier has become zero may be all zeros: the one case in which
	// updating does not lead to what is right, for a sum of zero is nothing's but theirs.
	if (flow->proto == IPPROTO_ICMP && cv_load_be16(l4 + 2) == 0 &&
		cv_checksum_add(0, l4, parsed->end - parsed->l4) == 0)
		memset(l4 + 2, 0xff, 2);
}

// The packet inside of an ICMP error.
struct cv_flow_inner {
	union cv_flow_key answer; // the key of its answers
	uint16_t ip, l4; // offsets of view->data
	uint16_t room; // bytes of layer 4 that are there, of the 20 that matter
	uint8_t proto;
};

// Reads the packet inside of an ICMP error. Returns false: cut short, a fragment, or an error
// itself.
bool cv_flow_inner_read(const struct cv_view *view, const struct cv_flow_parsed *parsed,
	struct cv_flow_inner *inner);

// Rewrites an ICMP error about the flow that travels in this direction, and the packet inside of it.
void cv_flow_rewrite_error(const struct cv_view *view, const struct cv_flow_parsed *parsed,
	const struct cv_flow_inner *inner, struct cv_flow *flow, unsigned direction);

// What a way changes of layer 3 and tags.
void cv_flow_rewrite_way(const struct cv_view *view, const struct cv_flow_way *way, unsigned which);

#endif
