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
	union cv_flow_key key;

	if (!packet->looks) {
		packet->zone->trusted = true;
		return true;
	}
	cv_flow_set_answer(tuple, &key);
	return cv_flow_table_find(&packet->zone->table[v6], &key,
		       cv_flow_hash_of(packet->zone, v6, &key)) == CV_FLOW_NONE;
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

static void begin(const union cv_flow_key *key, bool v6, struct decision *decision)
{
	cv_flow_set_tuple(key, v6, &decision->actions.tuple);
	memset(decision->actions.way, 0, sizeof(decision->actions.way));
	decision->actions.follow = decision->actions.once = false;
	decision->follows = decision->verdict = decision->deciders = 0;
}

// What the member at a position said is written into actions; its verdict.
static void heard(const struct cv_flow_group *group, unsigned position, uint8_t verdict,
	struct decision *decision)
{
	const unsigned member = group->order[position];
	struct cv_flow_actions *actions = &decision->actions;

	decision->verdict = verdict;
	decision->deciders = (uint8_t)(position + 1);
	for (unsigned d = 0; d < 2; d++) // where two wrap, the first does
		if (actions->way[d].set & CV_FLOW_SET_WRAP && actions->way[d].wrapper == 0)
			actions->way[d].wrapper = (uint8_t)(1 + member);
	if (actions->follow && group->zone->members[member].flow->follow != NULL)
		decision->follows |= (uint8_t)(1u << member);
}

// Asks the functions in their order, until one does not say CV_NEXT. before: how many decided
// about this flow before, all of which keep something of it. changed: members whose configuration is
// another since.
static void ask(const struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_flow_packet *packet, const union cv_flow_key *key, bool v6, uint32_t index,
	unsigned before, uint8_t changed, struct decision *decision)
{
	const struct cv_flow_zone *zone = group->zone;

	begin(key, v6, decision);
	for (unsigned i = 0; i < zone->members_count && decision->verdict == CV_NEXT; i++) {
		const unsigned member_index = group->order[i];
		const struct cv_flow_zone_member *member = &zone->members[member_index];

		decision->actions.follow = false;
		packet->why = i >= before                    ? CV_FLOW_NEW
			      : changed & 1u << member_index ? CV_FLOW_CHANGED
							     : CV_FLOW_REPEAT;
		heard(group, i,
			member->flow->decide(member->instance, worker, packet, &decision->actions,
				cv_flow_slot(zone, v6, index, member_index)),
			decision);
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

// The key of a flow's answers.
struct answer {
	union cv_flow_key key;
	uint64_t hash;
};

// What a flow's answers will have, by what was decided. Asks for the buckets of their key: a new one is
// looked for in its second as well, where others of its first had to go there.
static struct answer answer_of(
	const struct cv_flow_zone *zone, bool v6, const struct decision *decision)
{
	const struct cv_flow_table *table = &zone->table[v6];
	struct answer answer;
	uint32_t first;

	cv_flow_set_answer(&decision->actions.tuple, &answer.key);
	answer.hash = cv_flow_hash_of(zone, v6, &answer.key);
	first = cv_flow_first_bucket(table, answer.hash);
	rte_prefetch0(&table->buckets[first]);
	rte_prefetch0(&table->buckets[cv_flow_other_bucket(
		first, cv_flow_signature(answer.hash), table->buckets_count)]);
	return answer;
}

// Lets the key of answers lead to a flow, unless they are another flow's for good reason. Returns
// false, and why that cannot be.
static bool add_answer(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	uint32_t index, const struct answer *answer, enum cv_flow_drop *why)
{
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index), *other;
	const uint32_t slot = cv_flow_table_find(table, &answer->key, answer->hash);

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
	return cv_flow_table_add(table, answer->hash, index, CV_FLOW_REPLY) == 0;
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
// bucket of the answer's key is read last.
static enum cv_flow_drop write_decision(struct cv_flow_group *group, struct cv_nf_worker *worker,
	bool v6, uint32_t index, const union cv_flow_key *key, const struct answer *answer,
	const struct decision *decision)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index);
	const struct cv_flow_actions *actions = &decision->actions;
	struct cv_flow_tuple before;
	union cv_flow_key plain;
	enum cv_flow_drop why = CV_FLOW_TABLE_FULL;
	uint16_t ways[2];

	cv_flow_set_tuple(key, v6, &before);
	cv_flow_set_answer(&before, &plain);
	if (!cv_flow_ports_allowed(&before, &actions->tuple))
		return CV_FLOW_NOT_REWRITABLE;
	if (!take_ways(zone, actions, ways))
		return CV_FLOW_TABLE_FULL;
	flow->flags =
		memcmp(&plain, &answer->key, CV_FLOW_KEY_BYTES(v6)) != 0 ? CV_FLOW_REWRITES : 0;
	cv_flow_deltas(key, &answer->key, v6, &flow->ip_delta, &flow->l4_delta);
	memcpy(cv_flow_stored(flow, CV_FLOW_REPLY, v6), &answer->key, CV_FLOW_STORED_BYTES(v6));
	flow->follows = decision->follows | (flow->follows & CV_FLOW_WINDOWED);
	flow->deciders = decision->deciders;
	flow->verdict = decision->verdict;
	flow->epoch = zone->epoch;
	flow->group = group->index;
	if (decision->verdict != CV_NEXT)
		flow->flags |= CV_FLOW_OUTPUT;
	if (memcmp(&answer->key, key, CV_FLOW_KEY_BYTES(v6)) == 0 || flow->flags == CV_FLOW_OUTPUT)
		flow->flags |= CV_FLOW_ONE_KEY;
	else if (!add_answer(zone, worker, v6, index, answer, &why)) {
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
		struct answer answer;

		group->zone->trusted = false;
		ask(group, worker, packet, key, v6, index, 0, 0, decision);
		if (is_drop(decision))
			return CV_FLOW_BY_FUNCTION;
		answer = answer_of(group->zone, v6, decision);
		why = write_decision(group, worker, v6, index, key, &answer, decision);
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

// A flow that is about to be: its first packet, its entry, with the forward key, and what is decided.
struct opening {
	struct cv_flow_parsed parsed;
	struct cv_flow_packet packet;
	uint64_t host; // hash of its source
	uint32_t index;
	uint8_t at; // its packet's place among those that came together
	struct decision decision;
	struct answer answer; // for the case that it is let pass
};

// Takes what each flow takes. Returns CV_FLOW_BY_FUNCTION (0), or why that cannot be.
static enum cv_flow_drop take(struct cv_flow_zone *zone, struct opening *opening, uint64_t hash)
{
	const bool v6 = opening->parsed.v6;

	opening->host =
		zone->hosts.limit == 0 ? 0 : cv_flow_host_hash(zone, v6, &opening->parsed.key);
	opening->index = take_entry(zone, &opening->parsed, hash);
	if (opening->index == CV_FLOW_NONE)
		return CV_FLOW_TABLE_FULL;
	if (cv_flow_hosts_add(&zone->hosts, opening->host))
		return CV_FLOW_BY_FUNCTION;
	give_entry(zone, v6, opening->index);
	return CV_FLOW_HOST_LIMIT;
}

// Of a flow that was decided on, or why it cannot be. Its slot, or CV_FLOW_NONE with the verdict.
static uint32_t conclude(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct opening *opening, enum cv_flow_drop why,
	uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	const struct cv_flow_parsed *parsed = &opening->parsed;
	const struct decision *decision = &opening->decision;
	const uint32_t index = opening->index;
	const bool v6 = parsed->v6;
	struct cv_flow *flow;

	if (why == CV_FLOW_BY_FUNCTION && is_drop(decision)) {
		cv_flow_hosts_remove(&zone->hosts, opening->host);
		cv_flow_end_functions(group, worker, v6, index, 0, decision->deciders - 1);
		if (decision->actions.once || zone->denied[v6] >= zone->denied_max[v6]) {
			give_entry(zone, v6, index);
		} else {
			write_denied(group, v6, index, decision);
			cv_flow_set_deadline(zone, v6, index, zone->now);
			cv_flow_count(zone);
		}
		*verdict = cv_flow_leave(group, decision->deciders - 1, view, decision->verdict);
		return CV_FLOW_NONE;
	}
	if (why != CV_FLOW_BY_FUNCTION) {
		cv_flow_hosts_remove(&zone->hosts, opening->host);
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

uint32_t cv_flow_decide(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint64_t hash,
	uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	struct opening opening = {.parsed = *parsed,
		.packet = cv_flow_packet_of(zone, view, parsed, CV_FLOW_FORWARD)};
	enum cv_flow_drop why;

	// Pairs with the release store of whoever says that all came back.
	if (CV_UNLIKELY(__atomic_load_n(&zone->refuses, __ATOMIC_ACQUIRE))) {
		*verdict = cv_flow_drop(group, view, CV_FLOW_RESTORING);
		return CV_FLOW_NONE;
	}
	if (CV_UNLIKELY(zone->restoring != NULL))
		expect_answer(zone, worker, parsed);
	why = take(zone, &opening, hash);
	if (why != CV_FLOW_BY_FUNCTION) {
		*verdict = cv_flow_drop(group, view, why);
		return CV_FLOW_NONE;
	}
	why = settle(group, worker, &opening.packet, &parsed->key, parsed->v6, opening.index,
		&opening.decision);
	return conclude(group, worker, view, &opening, why, verdict);
}

// The same of a flow's packets and of the answers to them, where no function rewrites them.
static uint64_t ends_of(const struct cv_flow_parsed *parsed)
{
	const union cv_flow_key *key = &parsed->key;
	uint64_t a[2], b[2];

	if (!parsed->v6)
		return (uint64_t)(uint16_t)(key->ipv4.sport ^ key->ipv4.dport) << 32 |
		       (key->ipv4.src ^ key->ipv4.dst);
	memcpy(a, key->ipv6.src, 16);
	memcpy(b, key->ipv6.dst, 16);
	return a[0] ^ b[0] ^ cv_flow_rotate(a[1] ^ b[1], 16) ^
	       (uint64_t)(uint16_t)(key->ipv6.sport ^ key->ipv6.dport);
}

// Those of a burst's flows so far, and a bit for each, which most others do not have.
struct ends_seen {
	uint64_t all[CV_FLOW_OPENINGS];
	uint64_t bits[16];
	unsigned count;
};

// Adds one. Returns whether it was there.
static bool is_seen(struct ends_seen *seen, uint64_t ends)
{
	const uint64_t hash = ends * 0x9e3779b97f4a7c15;
	uint64_t *bits = &seen->bits[hash >> 60], bit = UINT64_C(1) << (hash >> 54 & 63);
	uint64_t same = 0;

	if (CV_UNLIKELY((*bits & bit) != 0))
		for (unsigned i = 0; i < seen->count; i++)
			same |= seen->all[i] == ends;
	*bits |= bit;
	seen->all[seen->count++] = ends;
	return same != 0;
}

// Begins as many as can be. Returns how many; *late has a bit for each packet that is to be looked at by
// itself, behind them: it may be of the same flow as one before, an answer even, or there is no room for
// it or those behind.
static unsigned begin_openings(struct cv_flow_zone *zone, const struct cv_view *views,
	const uint8_t *which, const uint64_t *hashes, struct opening *openings, unsigned n,
	uint32_t *late)
{
	struct ends_seen seen;
	unsigned count = 0;

	seen.count = 0;
	memset(seen.bits, 0, sizeof(seen.bits));
	for (unsigned i = 0; i < n; i++) {
		struct opening *opening = &openings[count];
		const struct cv_flow_parsed *parsed = &opening->parsed;
		const struct cv_view *view = &views[which[i]];

		cv_flow_parse_common(view, &opening->parsed);
		if (is_seen(&seen, ends_of(parsed)) ||
			cv_flow_table_find(&zone->table[parsed->v6], &parsed->key, hashes[i]) !=
				CV_FLOW_NONE) {
			*late |= 1u << i;
			continue;
		}
		if (take(zone, opening, hashes[i]) != CV_FLOW_BY_FUNCTION) {
			*late |= UINT32_MAX << i;
			break;
		}
		opening->at = (uint8_t)i;
		opening->packet = cv_flow_packet_of(zone, view, parsed, CV_FLOW_FORWARD);
		begin(&parsed->key, parsed->v6, &opening->decision);
		count++;
	}
	return count;
}

// Asks the function at a position about all flows that the ones before let pass.
static void ask_all(const struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct opening *openings, unsigned n, unsigned position)
{
	const struct cv_flow_zone *zone = group->zone;
	const unsigned index = group->order[position];
	const struct cv_flow_zone_member *member = &zone->members[index];
	struct cv_flow_opening requested[CV_FLOW_OPENINGS];
	struct decision *decisions[CV_FLOW_OPENINGS];
	uint8_t verdicts[CV_FLOW_OPENINGS];
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		struct opening *of = &openings[i];

		if (of->decision.verdict != CV_NEXT)
			continue;
		of->decision.actions.follow = false;
		decisions[count] = &of->decision;
		requested[count++] = (struct cv_flow_opening){&of->packet, &of->decision.actions,
			cv_flow_slot(zone, of->parsed.v6, of->index, index)};
	}
	if (count > 0 && member->flow->decide_all != NULL)
		member->flow->decide_all(member->instance, worker, requested, verdicts, count);
	else
		for (unsigned i = 0; i < count; i++)
			verdicts[i] = member->flow->decide(member->instance, worker,
				requested[i].packet, requested[i].actions, requested[i].slot);
	for (unsigned i = 0; i < count; i++)
		heard(group, position, verdicts[i], decisions[i]);
}

// A flow is not: whatever was decided is to be decided again.
static void undo(
	struct cv_flow_group *group, struct cv_nf_worker *worker, const struct opening *opening)
{
	struct cv_flow_zone *zone = group->zone;
	const struct decision *decision = &opening->decision;
	const bool v6 = opening->parsed.v6;

	cv_flow_end_functions(group, worker, v6, opening->index, 0,
		decision->deciders - (unsigned)is_drop(decision));
	cv_flow_hosts_remove(&zone->hosts, opening->host);
	give_entry(zone, v6, opening->index);
}

// Writes what was decided, in the packets' order, and the slots of those that go on. Returns how many: up
// to one that cannot be, or is dropped by a function that an earlier one has given something back to since.
static unsigned conclude_all(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, const uint8_t *which,
	const struct opening *openings, unsigned n, uint32_t *slots)
{
	unsigned given_back = 0; // positions, the first so many

	for (unsigned i = 0; i < n; i++) {
		const struct opening *opening = &openings[i];
		const struct decision *decision = &opening->decision;
		struct cv_view *view = &views[which[opening->at]];
		uint8_t *verdict = &verdicts[which[opening->at]];
		uint32_t slot;

		if (is_drop(decision)) {
			if (decision->deciders <= given_back)
				return i;
			given_back = decision->deciders - 1u;
		} else if (write_decision(group, worker, opening->parsed.v6, opening->index,
				   &opening->parsed.key, &opening->answer,
				   decision) != CV_FLOW_BY_FUNCTION) {
			return i;
		}
		slot = conclude(group, worker, view, opening, CV_FLOW_BY_FUNCTION, verdict);
		if (slot == CV_FLOW_NONE)
			continue;
		if (cv_flow_track_first(group->zone, &opening->parsed, slot))
			slots[opening->at] = slot;
		else
			*verdict = cv_flow_pass(group, worker, view, &opening->parsed, slot);
	}
	return n;
}

uint32_t cv_flow_open(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, const uint8_t *which, const uint64_t *hashes,
	unsigned n, uint32_t *slots)
{
	struct cv_flow_zone *zone = group->zone;
	struct opening openings[CV_FLOW_OPENINGS];
	unsigned begun, done;
	uint32_t late = 0;

	for (unsigned i = 0; i < n; i++)
		slots[i] = CV_FLOW_NONE;

	// With the store of whoever says that all came back, as in cv_flow_decide().
	if (n == 1 || zone->restoring != NULL || cv_trace_is_on() ||
		__atomic_load_n(&zone->refuses, __ATOMIC_ACQUIRE)) {
		begun = 0;
		late = UINT32_MAX;
	} else {
		begun = begin_openings(zone, views, which, hashes, openings, n, &late);
	}
	for (unsigned i = 0; i < zone->members_count; i++)
		ask_all(group, worker, openings, begun, i);
	for (unsigned i = 0; i < begun; i++)
		openings[i].answer = answer_of(zone, openings[i].parsed.v6, &openings[i].decision);
	done = conclude_all(group, worker, views, verdicts, which, openings, begun, slots);
	for (unsigned i = begun; i-- > done;) {
		undo(group, worker, &openings[i]);
		late |= 1u << openings[i].at;
	}
	return late;
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
	struct answer answer;
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
	answer = answer_of(zone, v6, &decision);
	why = write_decision(decided, worker, v6, index, &key, &answer, &decision);
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
