// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Deciding: what functions say of a flow becomes its entry.
#include <rte_common.h>
#include <rte_prefetch.h>

#include "flow/tuples.h"
#include "flow/zone.h"

bool cv_flow_is_free(const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple)
{
	const bool v6 = tuple->family == 6;
	const struct cv_flow_table *table = &packet->zone->table[v6];
	union cv_flow_key key;
	uint64_t hash;

	cv_flow_set_answer(tuple, &key);
	hash = cv_flow_hash_of(packet->zone, v6, &key);
	if (packet->looks)
		return cv_flow_table_find(table, &key, hash) == CV_FLOW_NONE;
	rte_prefetch0(&table->buckets[cv_flow_first_bucket(table, hash)]);
	packet->zone->trusted = true;
	return true;
}

// What the functions of a group said of a flow.
struct decision {
	struct cv_flow_actions actions;
	uint8_t follows; // members
	uint8_t verdict; // of the last decider
	uint8_t deciders; // functions, in their order
};

static bool is_drop(const struct decision *decision)
{
	return decision->verdict != CV_NEXT && decision->verdict < CV_OUTPUT(0);
}

// Asks the functions in their order, until one does not say CV_NEXT. before: how many decided
// about this flow before, all of which keep something of it. changed: members whose configuration is
// another since.
static void ask(const struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_flow_packet *packet, const union cv_flow_key *key, bool v6, uint32_t index,
	unsigned before, uint8_t changed, struct decision *decision)
{
	const struct cv_flow_zone *zone = group->zone;
	struct cv_flow_actions *actions = &decision->actions;

	memset(decision, 0, sizeof(*decision));
	cv_flow_set_tuple(key, v6, &actions->tuple);
	for (unsigned i = 0; i < zone->members_count && decision->verdict == CV_NEXT; i++) {
		const unsigned member_index = group->order[i];
		const struct cv_flow_zone_member *member = &zone->members[member_index];

		actions->follow = false;
		packet->why = i >= before                    ? CV_FLOW_NEW
			      : changed & 1u << member_index ? CV_FLOW_CHANGED
							     : CV_FLOW_REPEAT;
		decision->verdict = member->flow->decide(member->instance, worker, packet, actions,
			cv_flow_slot(zone, v6, index, member_index));
		decision->deciders = (uint8_t)(i + 1);
		for (unsigned d = 0; d < 2; d++) // where two wrap, the first does
			if (actions->way[d].set & CV_FLOW_SET_WRAP && actions->way[d].wrapper == 0)
				actions->way[d].wrapper = (uint8_t)(1 + member_index);
		if (actions->follow && member->flow->follow != NULL)
			decision->follows |= (uint8_t)(1u << member_index);
	}
}

static enum cv_flow_timeout first_timeout(const struct cv_flow_parsed *parsed)
{
	switch (parsed->proto) {
	case IPPROTO_TCP:
		return CV_FLOW_TCP_OPENING;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return CV_FLOW_UDP_NEW;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return CV_FLOW_ICMP;
	default:
		return CV_FLOW_OTHER;
	}
}

// Lets the key of answers lead to a flow, unless they are another flow's for good reason. Returns
// false, and why that cannot be.
static bool add_answer(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	uint32_t index, const union cv_flow_key *answer, uint64_t hash, enum cv_flow_drop *why)
{
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index), *other;
	const uint32_t slot = cv_flow_table_find(table, answer, hash);

	if (slot != CV_FLOW_NONE) {
		other = cv_flow_at(table, slot >> 1);
		if (other->flags & CV_FLOW_DENIED) { // not any more: it answers this one
			cv_flow_end(zone, worker, v6, slot >> 1);
		} else if (other->flags & CV_FLOW_ONE_KEY && !(flow->flags & CV_FLOW_REWRITES)) {
			flow->flags |= CV_FLOW_ONE_KEY; // it left by an output
			return true;
		} else {
			*why = CV_FLOW_CONFLICT;
			return false;
		}
	}
	*why = CV_FLOW_TABLE_FULL;
	return cv_flow_table_add(table, hash, index, CV_FLOW_REPLY) == 0;
}

// Takes the ways of both directions. Returns false if there is no room for them.
static bool take_ways(
	struct cv_flow_zone *zone, const struct cv_flow_actions *actions, uint16_t way[2])
{
	const int forward = cv_flow_ways_take(&zone->ways, &actions->way[0], zone->now);
	const int reply = cv_flow_ways_take(&zone->ways, &actions->way[1], zone->now);

	if (forward >= 0 && reply >= 0) {
		way[0] = (uint16_t)forward;
		way[1] = (uint16_t)reply;
		return true;
	}
	cv_flow_ways_give(&zone->ways, forward < 0 ? 0 : (unsigned)forward);
	cv_flow_ways_give(&zone->ways, reply < 0 ? 0 : (unsigned)reply);
	return false;
}

// Writes what was decided into the entry of a flow whose forward key is there. Returns
// CV_FLOW_BY_FUNCTION (0), or why it cannot be: then nothing is left of it but the forward key. The
// bucket of the answer's key is asked for first and read last.
static enum cv_flow_drop write_decision(struct cv_flow_group *group, struct cv_nf_worker *worker,
	bool v6, uint32_t index, const union cv_flow_key *key, const struct decision *decision)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index);
	const struct cv_flow_actions *actions = &decision->actions;
	struct cv_flow_tuple before;
	union cv_flow_key answer, plain;
	enum cv_flow_drop why = CV_FLOW_TABLE_FULL;
	uint16_t ways[2];
	uint64_t hash;

	cv_flow_set_answer(&actions->tuple, &answer);
	hash = cv_flow_hash_of(zone, v6, &answer);
	rte_prefetch0(&table->buckets[cv_flow_first_bucket(table, hash)]);
	cv_flow_set_tuple(key, v6, &before);
	cv_flow_set_answer(&before, &plain);
	if (!cv_flow_ports_allowed(&before, &actions->tuple))
		return CV_FLOW_NOT_REWRITABLE;
	if (!take_ways(zone, actions, ways))
		return CV_FLOW_TABLE_FULL;
	flow->flags = memcmp(&plain, &answer, CV_FLOW_KEY_BYTES(v6)) != 0 ? CV_FLOW_REWRITES : 0;
	cv_flow_deltas(key, &answer, v6, &flow->ip_delta, &flow->l4_delta);
	memcpy(cv_flow_stored(flow, CV_FLOW_REPLY, v6), &answer, CV_FLOW_STORED_BYTES(v6));
	flow->follows = decision->follows | (flow->follows & CV_FLOW_WINDOWED);
	flow->deciders = decision->deciders;
	flow->verdict = decision->verdict;
	flow->epoch = zone->epoch;
	flow->group = group->index;
	if (decision->verdict != CV_NEXT)
		flow->flags |= CV_FLOW_OUTPUT;
	if (memcmp(&answer, key, CV_FLOW_KEY_BYTES(v6)) == 0 || flow->flags == CV_FLOW_OUTPUT)
		flow->flags |= CV_FLOW_ONE_KEY;
	else if (!add_answer(zone, worker, v6, index, &answer, hash, &why)) {
		cv_flow_ways_give(&zone->ways, ways[0]);
		cv_flow_ways_give(&zone->ways, ways[1]);
		return why;
	}
	flow->way[0] = ways[0];
	flow->way[1] = ways[1];
	return CV_FLOW_BY_FUNCTION;
}

static void write_denied(
	struct cv_flow_group *group, bool v6, uint32_t index, const struct decision *decision)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);

	flow->flags = CV_FLOW_DENIED | CV_FLOW_ONE_KEY;
	flow->timeout = CV_FLOW_DENIED_FOR;
	flow->deciders = decision->deciders;
	flow->verdict = decision->verdict;
	flow->epoch = zone->epoch;
	flow->group = group->index;
	zone->denied[v6]++;
}

// Takes an entry, and puts the forward key into it and into the table; CV_FLOW_NONE: full.
static uint32_t take_entry(
	struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed, uint64_t hash)
{
	struct cv_flow_table *table = &zone->table[parsed->v6];
	uint32_t index;
	struct cv_flow *flow;

	if (CV_UNLIKELY(zone->restoring != NULL) && cv_flow_restore_needs_room(zone, parsed->v6))
		return CV_FLOW_NONE;
	index = cv_flow_table_take(table);
	if (index == CV_FLOW_NONE)
		return index;
	flow = cv_flow_at(table, index);
	flow->proto = parsed->proto;
	cv_flow_see(flow, zone->now);
	memcpy(cv_flow_stored(flow, CV_FLOW_FORWARD, parsed->v6), &parsed->key,
		CV_FLOW_STORED_BYTES(parsed->v6));
	if (cv_flow_table_add(table, hash, index, CV_FLOW_FORWARD) == 0)
		return index;
	cv_flow_table_give(table, index);
	return CV_FLOW_NONE;
}

// Gives an entry back that was taken for this packet: no other packet of the burst was found to be
// of it, so nothing that was found before is another's now.
static void give_entry(struct cv_flow_zone *zone, bool v6, uint32_t index)
{
	cv_flow_remove_key(zone, v6, index, CV_FLOW_FORWARD);
	cv_flow_table_give(&zone->table[v6], index);
}

// A function that decides again later finds its slot as of a new flow.
static void clear_slot(struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned member)
{
	memset(cv_flow_slot(zone, v6, index, member), 0, zone->members[member].flow->slot_bytes);
}

// A connection whose SYN is not seen is never checked: its windows' scale is not known.
static void open_tcp(const struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed,
	struct cv_flow *flow, uint32_t index)
{
	flow->tcp_state = CV_FLOW_TCP_OPEN;
	if (zone->windows == CV_FLOW_WINDOWS_NONE ||
		(parsed->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK)) != CV_TCP_SYN)
		return;
	flow->follows |= CV_FLOW_WINDOWED;
	memset(cv_flow_slot_at(&zone->window[parsed->v6], index), 0, sizeof(struct cv_flow_window));
}

// Of a packet whose headers were seen to be common.
static void tuple_of(const struct cv_view *view, struct cv_flow_tuple *tuple)
{
	const uint8_t *ip = view->data + view->l3;
	const bool v6 = view->proto == CV_PROTO_IPV6;
	const uint8_t *l4 = ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN);

	tuple->family = v6 ? 6 : 4;
	tuple->proto = ip[v6 ? 6 : 9];
	memcpy(&tuple->sport, l4, 2);
	memcpy(&tuple->dport, l4 + 2, 2);
	memcpy(&tuple->src, ip + (v6 ? 8 : 12), v6 ? 16 : 4);
	memcpy(&tuple->dst, ip + (v6 ? 24 : 16), v6 ? 16 : 4);
}

void cv_flow_expect(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *views, const uint8_t *which, unsigned n)
{
	const struct cv_flow_zone *zone = group->zone;
	struct cv_flow_tuple tuples[CV_BURST_MAX];

	cv_flow_table_expect(&zone->table[0]);
	cv_flow_table_expect(&zone->table[1]);
	for (unsigned i = 0; i < n; i++)
		tuple_of(&views[which[i]], &tuples[i]);
	for (unsigned i = 0; i < zone->members_count; i++) {
		const struct cv_flow_zone_member *member = &zone->members[group->order[i]];

		if (member->flow->expect != NULL)
			member->flow->expect(member->instance, worker, tuples, n);
	}
}

// A flow that is still to come back may have the answers' key.
static void expect_answer(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, const struct cv_flow_parsed *parsed)
{
	struct cv_flow_tuple tuple;
	union cv_flow_key answer;

	cv_flow_set_tuple(&parsed->key, parsed->v6, &tuple);
	cv_flow_set_answer(&tuple, &answer);
	cv_flow_restore_for(
		zone, worker, parsed->v6, &answer, cv_flow_hash_of(zone, parsed->v6, &answer));
}

// Asks the functions about a new flow, and writes what they said. An answer's key that was taken for
// free and is not is a reason to ask once more, looking. CV_FLOW_BY_FUNCTION: it is written, or
// denied. Else why it cannot be.
static enum cv_flow_drop settle(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_flow_packet *packet, const union cv_flow_key *key, bool v6, uint32_t index,
	struct decision *decision)
{
	for (;;) {
		enum cv_flow_drop why;

		group->zone->trusted = false;
		ask(group, worker, packet, key, v6, index, 0, 0, decision);
		if (is_drop(decision))
			return CV_FLOW_BY_FUNCTION;
		why = write_decision(group, worker, v6, index, key, decision);
		if (why == CV_FLOW_BY_FUNCTION)
			return why;
		cv_flow_end_functions(group, worker, v6, index, 0, decision->deciders);
		if (why != CV_FLOW_CONFLICT || !group->zone->trusted)
			return why;
		for (unsigned i = 0; i < decision->deciders; i++)
			clear_slot(group->zone, v6, index, group->order[i]);
		packet->looks = true;
	}
}

uint32_t cv_flow_decide(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint64_t hash,
	uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	struct cv_flow_packet packet = cv_flow_packet_of(zone, view, parsed, CV_FLOW_FORWARD);
	uint64_t host = zone->hosts.limit == 0 ? 0 : cv_flow_host_hash(zone, v6, &parsed->key);
	enum cv_flow_drop why;
	struct decision decision;
	struct cv_flow *flow;
	uint32_t index;

	// Pairs with the release store of whoever says that all came back.
	if (CV_UNLIKELY(__atomic_load_n(&zone->refuses, __ATOMIC_ACQUIRE))) {
		*verdict = cv_flow_drop(group, view, CV_FLOW_RESTORING);
		return CV_FLOW_NONE;
	}
	if (CV_UNLIKELY(zone->restoring != NULL))
		expect_answer(zone, worker, parsed);
	index = take_entry(zone, parsed, hash);
	if (index == CV_FLOW_NONE) {
		*verdict = cv_flow_drop(group, view, CV_FLOW_TABLE_FULL);
		return CV_FLOW_NONE;
	}
	if (!cv_flow_hosts_add(&zone->hosts, host)) {
		give_entry(zone, v6, index);
		*verdict = cv_flow_drop(group, view, CV_FLOW_HOST_LIMIT);
		return CV_FLOW_NONE;
	}
	why = settle(group, worker, &packet, &parsed->key, v6, index, &decision);
	if (why == CV_FLOW_BY_FUNCTION && is_drop(&decision)) {
		cv_flow_hosts_remove(&zone->hosts, host);
		cv_flow_end_functions(group, worker, v6, index, 0, decision.deciders - 1);
		if (decision.actions.once || zone->denied[v6] >= zone->denied_max[v6]) {
			give_entry(zone, v6, index);
		} else {
			write_denied(group, v6, index, &decision);
			cv_flow_set_deadline(zone, v6, index, zone->now);
			cv_flow_count(zone);
		}
		*verdict = cv_flow_leave(group, decision.deciders - 1, view, decision.verdict);
		return CV_FLOW_NONE;
	}
	if (why != CV_FLOW_BY_FUNCTION) {
		cv_flow_hosts_remove(&zone->hosts, host);
		give_entry(zone, v6, index);
		*verdict = cv_flow_drop(group, view, why);
		return CV_FLOW_NONE;
	}
	flow = cv_flow_at(&zone->table[v6], index);
	flow->timeout = (uint8_t)first_timeout(parsed);
	if (parsed->proto == IPPROTO_TCP)
		open_tcp(zone, parsed, flow, index);
	cv_flow_set_deadline(zone, v6, index, zone->now);
	cv_count(&zone->counters.created, 1);
	cv_flow_count(zone);
	return CV_FLOW_SLOT(index, CV_FLOW_FORWARD);
}

uint32_t cv_flow_renew(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint32_t slot,
	uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	const uint32_t index = slot >> 1;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	struct cv_flow_group *decided = zone->groups[flow->group];
	const uint8_t changed = cv_flow_changed_since(zone, flow->epoch);
	const uint16_t ways[2] = {flow->way[0], flow->way[1]};
	const uint8_t replied = flow->flags & CV_FLOW_REPLIED;
	const uint8_t before = flow->deciders;
	struct cv_flow_packet packet = cv_flow_packet_of(zone, view, parsed, slot & 1);
	enum cv_flow_drop why;
	struct decision decision;
	union cv_flow_key key;

	packet.looks = true;
	*verdict = CV_NEXT;
	if (changed == 0) {
		flow->epoch = zone->epoch;
		return slot;
	}
	if (flow->flags & CV_FLOW_DENIED) {
		cv_flow_end(zone, worker, v6, index);
		return CV_FLOW_NONE;
	}
	cv_flow_unsettle(&zone->table[v6], index);
	cv_flow_key(flow, CV_FLOW_FORWARD, v6, &key);
	ask(decided, worker, &packet, &key, v6, index, before, changed, &decision);
	if (is_drop(&decision)) {
		const unsigned member = decided->order[decision.deciders - 1];

		flow->deciders = (uint8_t)RTE_MAX(before, decision.deciders - 1); // that said yes
		cv_flow_end(zone, worker, v6, index);
		cv_count(&zone->counters.invalidated, 1);
		*verdict = cv_flow_leave(group, group->position[member], view, decision.verdict);
		return CV_FLOW_NONE;
	}
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		cv_flow_remove_key(zone, v6, index, CV_FLOW_REPLY);
	if (decision.deciders < before) {
		cv_flow_end_functions(decided, worker, v6, index, decision.deciders, before);
		for (unsigned i = decision.deciders; i < before; i++)
			clear_slot(zone, v6, index, decided->order[i]);
	}
	flow->deciders = decision.deciders;
	why = write_decision(decided, worker, v6, index, &key, &decision);
	if (why != CV_FLOW_BY_FUNCTION) {
		flow->flags |= CV_FLOW_ONE_KEY; // that for replies is not there
		cv_flow_end(zone, worker, v6, index);
		cv_count(&zone->counters.invalidated, 1);
		*verdict = cv_flow_drop(group, view, why);
		return CV_FLOW_NONE;
	}
	cv_flow_ways_give(&zone->ways, ways[0]);
	cv_flow_ways_give(&zone->ways, ways[1]);
	flow->flags |= replied;
	zone->removals++; // a key leads elsewhere
	return slot;
}
