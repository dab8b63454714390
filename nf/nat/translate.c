// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What becomes of a flow: which mapping its source or destination is, or gets.
#include <netinet/in.h>

#include "nf/nat/nat.h"
#include "nf/nat/use.h"

#define TCP_RST 4
#define ICMP_ECHO_REQUEST 8
#define ICMP_TIMESTAMP_REQUEST 13
#define ICMP_INFORMATION_REQUEST 15
#define ICMP_MASK_REQUEST 17

bool cv_nat_is_among_external(const struct cv_nat *nat, rte_be32_t address)
{
	const uint32_t wanted = rte_be_to_cpu_32(address);
	unsigned low = 0, high = nat->external_count;

	while (low < high) {
		const unsigned middle = (low + high) / 2;
		const uint32_t at = rte_be_to_cpu_32(nat->external[middle]);

		if (at == wanted)
			return true;
		if (at < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

// Whether an ICMP message asks something of its receiver: the identifier is its source's port.
static bool is_query(const struct cv_flow_packet *packet)
{
	const uint8_t type = packet->view->data[packet->l4];

	return type == ICMP_ECHO_REQUEST || type == ICMP_TIMESTAMP_REQUEST ||
	       type == ICMP_INFORMATION_REQUEST || type == ICMP_MASK_REQUEST;
}

// Stands for an end of a forward, in 28 bits: one that has another is another forward.
static uint32_t digest_of(rte_be32_t address, rte_be16_t port)
{
	return (address * 0x9e3779b1 ^ port * 0x85ebca6b) >> 4;
}

// The forward by whose external end an internal one speaks; NULL: none. Whoever is remote.
static const struct cv_nat_mapping *forward_from(
	const struct cv_nat *nat, const struct cv_flow_tuple *tuple)
{
	const struct cv_nat_key key = {
		.internal = tuple->src.ipv4, .port = tuple->sport, .proto = tuple->proto};
	uint32_t index;

	if (nat->forwards == NULL)
		return NULL;
	index = cv_nat_mappings_by_key(nat->forwards, &key);
	return index == CV_NAT_NONE ? NULL : cv_nat_mapping_at(nat->forwards, index);
}

// The forward that an external destination is; NULL: none.
static const struct cv_nat_mapping *forward_to(
	const struct cv_nat *nat, const struct cv_flow_tuple *tuple)
{
	const rte_be16_t port = tuple->proto == IPPROTO_ICMP ? 0 : tuple->dport;
	uint32_t index;

	if (nat->forwards == NULL)
		return NULL;
	index = cv_nat_mappings_by_external(nat->forwards, tuple->dst.ipv4, port, tuple->proto);
	return index == CV_NAT_NONE ? NULL : cv_nat_mapping_at(nat->forwards, index);
}

// The source becomes an external one.
static uint8_t translate_source(struct cv_nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_tuple *tuple, struct cv_nat_slot *slot)
{
	const int kind = cv_nat_kind_of(tuple->proto);
	struct cv_nat_worker *home = cv_nat_use_home(own, packet, &tuple->src);
	const struct cv_nat_mapping *forward, *mapping;
	uint32_t index;
	uint8_t verdict;

	if (kind < 0) {
		struct cv_flow_tuple outside = *tuple;

		cv_nat_lock(home);
		outside.src.ipv4 = cv_nat_blocks_address(home->blocks, tuple->src.ipv4);
		cv_nat_unlock(home);
		if (!cv_flow_is_free(packet, &outside))
			return CV_DROP(CV_NAT_NO_PORT);
		slot->source = outside.src.ipv4;
		slot->is_address = true;
		*tuple = outside;
		return CV_NEXT;
	}
	if (tuple->proto == IPPROTO_ICMP && !is_query(packet))
		return CV_DROP(CV_NAT_UNSUPPORTED);
	if (packet->tcp_flags & TCP_RST)
		return CV_DROP(CV_NAT_NO_MAPPING);
	forward = forward_from(own->nat, tuple);
	if (forward != NULL) {
		slot->source = digest_of(forward->external, forward->external_port);
		slot->from_forward = true;
		tuple->src.ipv4 = forward->external;
		tuple->sport = forward->external_port;
		return CV_NEXT;
	}
	cv_nat_lock(home);
	verdict = cv_nat_use_source(
		own->nat, home, worker, packet, tuple, (enum cv_nat_kind)kind, &index);
	cv_nat_unlock(home);
	if (verdict != CV_NEXT)
		return verdict;
	slot->source = home->first + index + 1;
	mapping = cv_nat_mapping_at(home->mappings, index);
	tuple->src.ipv4 = mapping->external;
	tuple->sport = mapping->external_port;
	return CV_NEXT;
}

// Whether a packet to an external address may be for a mapping or a forward. Requests are for who is
// forwarded to; the identifier is the sender's.
static bool may_be_mapped(const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple)
{
	return cv_nat_kind_of(tuple->proto) >= 0 && !(packet->tcp_flags & TCP_RST) &&
	       (tuple->proto != IPPROTO_ICMP || is_query(packet));
}

static void put_destination(const struct cv_nat_mapping *mapping, struct cv_flow_tuple *tuple)
{
	tuple->dst.ipv4 = mapping->key.internal;
	if (tuple->proto != IPPROTO_ICMP)
		tuple->dport = mapping->key.port;
}

// A hairpin's packets leave by the port that they came in by.
static void turn_back(const struct cv_flow_packet *packet, struct cv_flow_actions *actions)
{
	for (unsigned i = 0; i < 2; i++) {
		actions->way[i].set |= CV_FLOW_SET_OUT;
		actions->way[i].out = packet->view->in;
	}
}

// To an external address: from outside, or from inside, a hairpin.
static uint8_t translate_destination(struct cv_nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions,
	struct cv_nat_slot *slot)
{
	const struct cv_nat *nat = own->nat;
	struct cv_flow_tuple *tuple = &actions->tuple;
	const bool from_outside = nat->lists.outside[packet->view->in];
	const bool may_be = may_be_mapped(packet, tuple);
	const struct cv_nat_mapping *forward = may_be ? forward_to(nat, tuple) : NULL;
	uint32_t number = CV_NAT_NONE;
	uint8_t verdict = CV_NEXT;

	if (!from_outside && !nat->hairpinning)
		return CV_DROP(CV_NAT_HAIRPIN);
	if (may_be && forward == NULL)
		number = cv_nat_use_destination(own, tuple);
	if (number == CV_NAT_NONE && forward == NULL)
		return CV_DROP(CV_NAT_NO_MAPPING);
	if (from_outside && forward == NULL) {
		const uint32_t used =
			cv_nat_use_from_outside(own, number, tuple->src.ipv4, worker->now);

		verdict = used == CV_NAT_NONE ? CV_DROP(CV_NAT_FILTERED) : CV_NEXT;
		number = used == CV_NAT_NONE ? number : used;
	} else if (!from_outside && cv_nat_is_inside(nat, tuple->src.ipv4)) {
		// Its source is external, too: RFC 4787 REQ-9.
		verdict = translate_source(own, worker, packet, tuple, slot);
	}
	if (verdict != CV_NEXT) {
		if (number != CV_NAT_NONE)
			cv_nat_use_end(own, number, worker->now);
		return verdict;
	}
	if (forward != NULL) {
		slot->destination = digest_of(forward->key.internal, forward->key.port);
		slot->to_forward = true;
		put_destination(forward, tuple);
	} else {
		slot->destination = (number + 1) & 0xfffffff;
		put_destination(cv_nat_use_at(own, number), tuple);
	}
	slot->is_hairpin = !from_outside;
	if (!from_outside)
		turn_back(packet, actions);
	return CV_NEXT;
}

// A flow's source, again. False: it is not what it was.
static bool repeat_source(const struct cv_nat_worker *own, struct cv_flow_tuple *tuple,
	const struct cv_nat_slot *slot)
{
	const struct cv_nat_mapping *mapping;

	if (slot->is_address) {
		tuple->src.ipv4 = slot->source;
		return true;
	}
	if (slot->from_forward) {
		mapping = forward_from(own->nat, tuple);
		if (mapping == NULL ||
			digest_of(mapping->external, mapping->external_port) != slot->source)
			return false;
	} else {
		mapping = cv_nat_use_at(own, slot->source - 1);
		if (tuple->src.ipv4 != mapping->key.internal || tuple->sport != mapping->key.port)
			return false;
	}
	tuple->src.ipv4 = mapping->external;
	tuple->sport = mapping->external_port;
	return true;
}

static bool repeat_destination(const struct cv_nat_worker *own, struct cv_flow_tuple *tuple,
	const struct cv_nat_slot *slot)
{
	const struct cv_nat_mapping *mapping;

	if (slot->to_forward) {
		mapping = forward_to(own->nat, tuple);
		if (mapping == NULL ||
			digest_of(mapping->key.internal, mapping->key.port) != slot->destination)
			return false;
	} else {
		mapping = cv_nat_use_at(own, slot->destination - 1);
		if (tuple->dst.ipv4 != mapping->external)
			return false;
	}
	put_destination(mapping, tuple);
	return true;
}

static bool has_source(const struct cv_nat_slot *slot)
{
	return slot->source != 0 || slot->from_forward;
}

static bool has_destination(const struct cv_nat_slot *slot)
{
	return slot->destination != 0 || slot->to_forward;
}

bool cv_nat_repeat(const struct cv_nat_worker *own, struct cv_flow_tuple *tuple,
	const struct cv_nat_slot *slot)
{
	return (!has_source(slot) || repeat_source(own, tuple, slot)) &&
	       (!has_destination(slot) || repeat_destination(own, tuple, slot));
}

// What was decided, again. A tuple that is not what it was ends the flow; the next packet begins it
// anew.
static uint8_t repeat(struct cv_nat_worker *own, const struct cv_flow_packet *packet,
	struct cv_flow_actions *actions, const struct cv_nat_slot *slot)
{
	if (!cv_nat_repeat(own, &actions->tuple, slot))
		return CV_DROP(CV_NAT_NO_MAPPING);
	if (slot->is_hairpin)
		turn_back(packet, actions);
	return CV_NEXT;
}

static bool is_group(rte_be32_t address)
{
	const uint32_t host = rte_be_to_cpu_32(address);

	return host >> 28 >= 14 || host >> 24 == 0 || host >> 24 == 127;
}

static uint8_t translate(struct cv_nat_worker *own, const struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions,
	struct cv_nat_slot *slot)
{
	const struct cv_nat *nat = own->nat;
	struct cv_flow_tuple *tuple = &actions->tuple;

	if (cv_nat_is_external(nat, tuple->dst.ipv4))
		return translate_destination(own, worker, packet, actions, slot);
	if (nat->lists.outside[packet->view->in])
		return cv_nat_is_inside(nat, tuple->dst.ipv4) ? CV_DROP(CV_NAT_NOT_EXTERNAL)
							      : CV_NEXT;
	if (!cv_nat_is_inside(nat, tuple->src.ipv4) || cv_nat_is_inside(nat, tuple->dst.ipv4))
		return CV_NEXT;
	if (is_group(tuple->dst.ipv4) || is_group(tuple->src.ipv4))
		return CV_DROP(CV_NAT_UNSUPPORTED);
	return translate_source(own, worker, packet, tuple, slot);
}

// Whether a flow is what it would be if it began now: CV_NEXT, or why it ends. One that is translated
// keeps what it has of a pool.
static uint8_t still(const struct cv_nat_worker *own, const struct cv_flow_tuple *tuple,
	const struct cv_nat_slot *slot)
{
	const struct cv_nat *nat = own->nat;
	const bool to_external = cv_nat_is_external(nat, tuple->dst.ipv4);
	const bool from_inside = cv_nat_is_inside(nat, tuple->src.ipv4);

	if (has_destination(slot) != to_external)
		return CV_DROP(CV_NAT_NO_MAPPING);
	if (slot->is_hairpin && !nat->hairpinning)
		return CV_DROP(CV_NAT_HAIRPIN);
	if (to_external && !slot->is_hairpin && !slot->to_forward) // it began outside
		return cv_nat_use_may_send(own, slot->destination - 1, tuple->src.ipv4)
			       ? CV_NEXT
			       : CV_DROP(CV_NAT_FILTERED);
	if (to_external && !slot->is_hairpin)
		return CV_NEXT;
	if (has_source(slot))
		return from_inside ? CV_NEXT : CV_DROP(CV_NAT_NO_MAPPING);
	return from_inside == cv_nat_is_inside(nat, tuple->dst.ipv4) ? CV_NEXT
								     : CV_DROP(CV_NAT_NO_MAPPING);
}

static struct cv_nat_worker *worker_of(const struct cv_nat *nat, const struct cv_nf_worker *worker)
{
	struct cv_nat_worker *own = &nat->state->workers[worker->index];

	own->nat = nat; // it may have run another one
	return own;
}

static uint8_t decide(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *kept)
{
	const struct cv_nat *nat = instance;
	struct cv_nat_worker *own = worker_of(nat, worker);
	uint8_t verdict;

	if (actions->tuple.family != 4)
		return CV_NEXT;
	if (packet->why == CV_FLOW_REPEAT)
		return repeat(own, packet, actions, kept);
	if (packet->why == CV_FLOW_CHANGED) {
		verdict = still(own, &actions->tuple, kept);
		return verdict != CV_NEXT ? verdict : repeat(own, packet, actions, kept);
	}
	// What is denied now may be allowed by the next packet from inside.
	actions->once = true;
	return translate(own, worker, packet, actions, kept);
}

static void expect(
	void *instance, struct cv_nf_worker *worker, const struct cv_flow_tuple *tuples, unsigned n)
{
	const struct cv_nat *nat = instance;

	cv_nat_use_expect(nat, worker_of(nat, worker), tuples, n);
}

bool cv_nat_slot_leads_inside(const void *instance, const void *kept)
{
	const struct cv_nat_state *state = ((const struct cv_nat *)instance)->state;
	const struct cv_nat_slot *slot = kept;

	return (!cv_nat_has_source(slot) || slot->source - 1 < state->mappings_all) &&
	       (slot->to_forward || slot->destination <= state->mappings_all);
}

static void expect_ended(
	void *instance, struct cv_nf_worker *worker, const void *const *kept, unsigned n)
{
	struct cv_nat_worker *own = worker_of(instance, worker);
	uint32_t numbers[CV_BURST_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct cv_nat_slot *slot = kept[i];

		if (cv_nat_has_source(slot))
			numbers[count++] = slot->source - 1;
	}
	cv_nat_use_expect_end(own, numbers, count);
}

static void ended(void *instance, struct cv_nf_worker *worker, const void *kept)
{
	struct cv_nat_worker *own = worker_of(instance, worker);
	const struct cv_nat_slot *slot = kept;

	if (cv_nat_has_source(slot))
		cv_nat_use_end(own, slot->source - 1, worker->now);
	if (cv_nat_has_destination(slot))
		cv_nat_use_end(own, slot->destination - 1, worker->now);
}

static uint8_t other(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
	enum cv_flow_other why)
{
	switch (why) {
	case CV_FLOW_NON_IP:
		return CV_NEXT;
	case CV_FLOW_UNRELATED:
		return view->proto == CV_PROTO_IPV6 ? CV_NEXT : CV_DROP(CV_NAT_UNRELATED_ERROR);
	default:
		return CV_DROP(CV_NAT_BAD_HEADER);
	}
}

static enum cv_flow_answers answers(const void *instance)
{
	return CV_FLOW_ANSWERS_REWRITTEN;
}

const struct cv_nf_flow cv_nat_flow = {
	.slot_bytes = sizeof(struct cv_nat_slot),
	.kept = &cv_nat_kept,
	.decide = decide,
	.expect = expect,
	.expect_ended = expect_ended,
	.ended = ended,
	.other = other,
	.answers = answers,
	.home = cv_nat_home,
};
