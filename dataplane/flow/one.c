// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any packet, one by one: what is not the common case, and what is of no flow.
#include "flow/zone.h"

// How long a first fragment is remembered: 15 to 30 s.
#define FRAGMENT_TICKS (30 * CV_FLOW_TICKS_PER_S)

static void remember_fragment(
	struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	struct cv_flow_fragment_key key;
	uint32_t deadline = zone->now + FRAGMENT_TICKS;

	cv_flow_fragment_key_of(parsed, &key);
	cv_flow_fragments_put(&zone->fragments, cv_flow_hash(&zone->secret, &key, sizeof(key)),
		&key, slot, zone->now, deadline + (deadline == 0));
}

// The slot of a non-first fragment's flow, or CV_FLOW_NONE.
static uint32_t find_fragment(struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed)
{
	const struct cv_flow_table *table = &zone->table[parsed->v6];
	const unsigned addresses = parsed->v6 ? 32 : 8;
	struct cv_flow_fragment_key key;
	struct cv_flow *flow;
	uint32_t slot;

	cv_flow_fragment_key_of(parsed, &key);
	slot = cv_flow_fragments_find(
		&zone->fragments, cv_flow_hash(&zone->secret, &key, sizeof(key)), &key, zone->now);
	if (slot == CV_FLOW_NONE || table->deadlines[slot >> 1] == 0)
		return CV_FLOW_NONE;
	flow = cv_flow_at(table, slot >> 1); // perhaps of another flow since
	if (memcmp(cv_flow_stored(flow, slot & 1, parsed->v6), &parsed->key, addresses) != 0 ||
		flow->proto != parsed->proto)
		return CV_FLOW_NONE;
	return slot;
}

// The functions' own verdicts of what is of no flow.
static uint8_t other(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, enum cv_flow_other why)
{
	for (unsigned i = 0; i < group->zone->members_count; i++) {
		const struct cv_flow_zone_member *member = &group->zone->members[group->order[i]];
		uint8_t verdict =
			member->flow->other == NULL
				? CV_NEXT
				: member->flow->other(member->instance, worker, view, why);

		if (verdict != CV_NEXT)
			return cv_flow_leave(group, i, view, verdict);
	}
	return CV_NEXT;
}

// Whether a packet with such a verdict goes on.
static bool is_let_in(
	const struct cv_flow_zone *zone, enum cv_flow_window_verdict verdict, uint8_t tcp_flags)
{
	return verdict != CV_FLOW_WINDOW_OUTSIDE ||
	       (zone->windows == CV_FLOW_WINDOWS_RESETS && !(tcp_flags & CV_TCP_RST));
}

unsigned cv_flow_window_follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n)
{
	const struct cv_flow_zone *zone = instance;
	unsigned others = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_followed *packet = &packets[i];
		const enum cv_flow_window_verdict verdict =
			cv_flow_window_see(packet->slot, packet->direction, CV_FLOW_TCP_DONE,
				packet->view, packet->l4, packet->view->l3 + packet->bytes);

		if (is_let_in(zone, verdict, packet->tcp_flags))
			continue;
		verdicts[i] = CV_DROP(CV_FLOW_OUT_OF_WINDOW);
		others++;
	}
	return others;
}

// Checks the windows of any packet of the connection. Returns whether it goes on; *counts: whether it
// changes what is known of the flow.
static bool check_window(const struct cv_flow_zone *zone, const struct cv_view *view,
	const struct cv_flow_parsed *parsed, const struct cv_flow *flow, uint32_t slot,
	bool *counts)
{
	struct cv_flow_window *window = cv_flow_slot_at(&zone->window[parsed->v6], slot >> 1);
	enum cv_flow_window_verdict verdict = cv_flow_window_see(
		window, slot & 1, flow->tcp_state, view, parsed->l4, parsed->end);

	const bool goes_on = is_let_in(zone, verdict, parsed->tcp_flags);

	if (parsed->first_fragment && verdict == CV_FLOW_WINDOW_INSIDE)
		cv_flow_window_fragmented(window, slot & 1);
	*counts = goes_on && verdict != CV_FLOW_WINDOW_UNSURE;
	return goes_on;
}

// TCP's state, and the time-out that comes of it or of a first reply.
static void track(struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed,
	struct cv_flow *flow, uint32_t slot)
{
	const unsigned direction = slot & 1;
	const bool first_reply = direction == CV_FLOW_REPLY && !(flow->flags & CV_FLOW_REPLIED);
	uint8_t flags;
	bool settled;

	if (first_reply)
		flow->flags |= CV_FLOW_REPLIED;
	if (flow->proto == IPPROTO_TCP && parsed->kind == CV_FLOW_IS_FLOW) {
		const bool replied = flow->flags & CV_FLOW_REPLIED;
		enum cv_flow_tcp_state next =
			cv_flow_tcp_next(flow->tcp_state, direction, parsed->tcp_flags, replied);

		if (next == CV_FLOW_TCP_OPEN && next != flow->tcp_state) // again, by one end
			flow->flags &= (uint8_t)~CV_FLOW_REPLIED;
		if (next != flow->tcp_state || first_reply) {
			flow->tcp_state = (uint8_t)next;
			cv_flow_set_timeout(
				zone, parsed->v6, slot >> 1, cv_flow_tcp_timeout(next, replied));
		}
	}
	if (first_reply && flow->timeout == CV_FLOW_UDP_NEW)
		cv_flow_set_timeout(zone, parsed->v6, slot >> 1, CV_FLOW_UDP);
	cv_flow_see(flow, zone->now);
	settled = flow->proto != IPPROTO_TCP || flow->tcp_state == CV_FLOW_TCP_DONE;
	flags = flow->flags & (uint8_t) ~(CV_FLOW_SETTLED(0) | CV_FLOW_SETTLED(1));
	if (settled)
		flags |= CV_FLOW_SETTLED(CV_FLOW_FORWARD);
	if (settled && flags & CV_FLOW_REPLIED)
		flags |= CV_FLOW_SETTLED(CV_FLOW_REPLY);
	// Other workers may read the flow as it is now.
	__atomic_store_n(&flow->flags, flags, __ATOMIC_RELEASE);
}

bool cv_flow_track_first(
	struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	struct cv_flow *flow = cv_flow_at(&zone->table[parsed->v6], slot >> 1);

	if (flow->follows & CV_FLOW_WINDOWED)
		return false;
	track(zone, parsed, flow, slot);
	return true;
}

// A TCP connection that the other end opens between the ports of one that is over.
static bool is_reopened(
	const struct cv_flow *flow, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	return flow->proto == IPPROTO_TCP && parsed->kind == CV_FLOW_IS_FLOW &&
	       (slot & 1) == CV_FLOW_REPLY &&
	       (parsed->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK | CV_TCP_RST)) == CV_TCP_SYN &&
	       (flow->tcp_state == CV_FLOW_TCP_CLOSED || flow->tcp_state == CV_FLOW_TCP_RESET);
}

// Whether a packet is of its flow as that was decided anew: answers may come from elsewhere now.
static bool is_still_of(struct cv_flow *flow, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	const unsigned addresses = parsed->v6 ? 32 : 8;

	if ((slot & 1) == CV_FLOW_FORWARD)
		return true;
	return !(flow->flags & CV_FLOW_ONE_KEY) &&
	       memcmp(cv_flow_stored(flow, CV_FLOW_REPLY, parsed->v6), &parsed->key,
		       parsed->kind == CV_FLOW_IS_FRAGMENT ? addresses
							   : CV_FLOW_STORED_BYTES(parsed->v6)) == 0;
}

// Shows a packet to the functions that follow its flow. A verdict.
static uint8_t follow(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint32_t slot,
	uint8_t follows)
{
	struct cv_flow_followed packet = {
		.view = view,
		.l4 = parsed->l4,
		.bytes = (uint16_t)(parsed->end - parsed->l3),
		.tcp_flags = parsed->tcp_flags,
		.direction = slot & 1,
	};

	for (unsigned i = 0; i < group->followers_count; i++) {
		const struct cv_flow_follower *follower = &group->followers[i];
		uint8_t verdict = CV_NEXT;

		if (!(follows & follower->bit))
			continue;
		packet.slot = cv_flow_slot_at(&follower->slots[parsed->v6], slot >> 1);
		if (follower->follow(follower->instance, worker, &packet, &verdict, 1) != 0)
			return cv_flow_stop(group, follower, view, verdict);
	}
	return CV_NEXT;
}

// A packet, rewritten, goes where its flow does.
static uint8_t go_on(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	const struct cv_flow *flow, unsigned direction)
{
	const unsigned way = flow->way[direction];
	uint8_t verdict;

	if (way != 0 && cv_flow_ways_apply(&group->zone->ways, view, way)) {
		verdict = cv_flow_wrap(group, worker, view, way);
		if (verdict != CV_NEXT)
			return verdict;
	}
	if ((flow->flags & CV_FLOW_OUTPUT) && direction == CV_FLOW_FORWARD)
		return cv_flow_leave(
			group, cv_flow_last_position(group, flow), view, flow->verdict);
	return CV_NEXT;
}

// An ICMP error: of the flow that the packet inside of it belongs to, or of none.
static uint8_t error_of(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *view, const struct cv_flow_parsed *parsed)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	const unsigned bytes = v6 ? 16 : 4;
	struct cv_flow_inner inner;
	struct cv_flow *flow;
	uint64_t hash;
	uint32_t slot;

	if (parsed->first_fragment || !cv_flow_inner_read(view, parsed, &inner))
		return other(group, worker, view, CV_FLOW_UNRELATED);
	hash = cv_flow_hash_of(zone, v6, &inner.answer);
	slot = cv_flow_table_find(&zone->table[v6], &inner.answer, hash);
	if (slot == CV_FLOW_NONE && CV_UNLIKELY(zone->restoring != NULL))
		slot = cv_flow_restore_for(zone, worker, v6, &inner.answer, hash);
	// It goes to whoever sent the packet inside.
	if (slot == CV_FLOW_NONE || memcmp((const uint8_t *)&inner.answer + bytes,
					    (const uint8_t *)&parsed->key + bytes, bytes) != 0)
		return other(group, worker, view, CV_FLOW_UNRELATED);
	flow = cv_flow_at(&zone->table[v6], slot >> 1);
	// Of what a function denies now, or decided with another configuration, its packets tell.
	if (flow->flags & CV_FLOW_DENIED || cv_flow_changed_since(zone, flow->epoch) != 0)
		return other(group, worker, view, CV_FLOW_UNRELATED);
	if (flow->flags & CV_FLOW_REWRITES)
		cv_flow_rewrite_error(view, parsed, &inner, flow, slot & 1);
	return go_on(group, worker, view, flow, slot & 1);
}

bool cv_flow_is_traced(void)
{
	return cv_trace_is_on();
}

void cv_flow_because(const struct cv_flow_packet *packet, const void *instance,
	const struct cv_nf_because *because)
{
	if (cv_trace_is_on())
		cv_trace_because(packet->view, instance, because);
}

const char *const cv_flow_because_words[] = {
	[CV_FLOW_BECAUSE_NEW] = "new flow",
	[CV_FLOW_BECAUSE_FORWARD] = "known flow",
	[CV_FLOW_BECAUSE_REPLY] = "known flow, its answer",
	[CV_FLOW_BECAUSE_DENIED] = "flow that is denied",
	[CV_FLOW_BECAUSE_FOREIGN] = "known flow of another worker",
};

void cv_flow_explain(const void *instance, const struct cv_nf_worker *worker,
	const struct cv_view *view, struct cv_nf_because *because)
{
	const struct cv_flow_zone *zone = ((const struct cv_flow_group *)instance)->zone;
	struct cv_flow_parsed parsed;
	const struct cv_flow *flow;
	uint32_t slot;

	if (zone->homes != NULL && (view->in & CV_VIEW_DONE) != 0) {
		because->row = CV_FLOW_BECAUSE_FOREIGN;
		return;
	}
	cv_flow_parse(view, &parsed);
	if (parsed.kind != CV_FLOW_IS_FLOW)
		return;
	slot = cv_flow_table_find(&zone->table[parsed.v6], &parsed.key,
		cv_flow_hash_of(zone, parsed.v6, &parsed.key));
	because->row = CV_FLOW_BECAUSE_NEW;
	if (slot == CV_FLOW_NONE)
		return;
	flow = cv_flow_at(&zone->table[parsed.v6], slot >> 1);
	if (flow->epoch != zone->epoch && cv_flow_changed_since(zone, flow->epoch) != 0)
		return;
	because->row = flow->flags & CV_FLOW_DENIED ? CV_FLOW_BECAUSE_DENIED
		       : slot & 1                   ? CV_FLOW_BECAUSE_REPLY
						    : CV_FLOW_BECAUSE_FORWARD;
}

uint8_t cv_flow_pass(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	const struct cv_flow_parsed *parsed, uint32_t slot)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow *flow = cv_flow_at(&zone->table[parsed->v6], slot >> 1);
	bool counts = true;
	uint8_t verdict;

	if (flow->flags & CV_FLOW_DENIED)
		return cv_flow_leave(
			group, cv_flow_last_position(group, flow), view, flow->verdict);
	if (flow->follows & CV_FLOW_WINDOWED && parsed->kind == CV_FLOW_IS_FLOW &&
		!check_window(zone, view, parsed, flow, slot, &counts))
		return cv_flow_drop(group, view, CV_FLOW_OUT_OF_WINDOW);
	if (counts)
		track(zone, parsed, flow, slot);
	if ((flow->follows & ~CV_FLOW_WINDOWED) != 0) {
		verdict = follow(group, worker, view, parsed, slot,
			flow->follows & (uint8_t)~CV_FLOW_WINDOWED);
		if (verdict != CV_NEXT)
			return verdict;
	}
	if (flow->flags & CV_FLOW_REWRITES)
		cv_flow_rewrite(view, parsed, flow, slot & 1);
	return go_on(group, worker, view, flow, slot & 1);
}

uint8_t cv_flow_one(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	uint32_t slot)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow_parsed parsed;
	struct cv_flow *flow;
	uint64_t hash = 0;
	uint8_t verdict;

	cv_flow_parse(view, &parsed);
	switch (parsed.kind) {
	case CV_FLOW_IS_NON_IP:
		return other(group, worker, view, CV_FLOW_NON_IP);
	case CV_FLOW_IS_BAD:
		return other(group, worker, view, CV_FLOW_BAD_HEADER);
	case CV_FLOW_IS_ERROR:
		return error_of(group, worker, view, &parsed);
	case CV_FLOW_IS_FRAGMENT:
		slot = find_fragment(zone, &parsed);
		if (slot == CV_FLOW_NONE)
			return cv_flow_drop(group, view, CV_FLOW_NO_FIRST_FRAGMENT);
		break;
	default:
		hash = cv_flow_hash_of(zone, parsed.v6, &parsed.key);
		if (slot == CV_FLOW_NONE)
			slot = cv_flow_table_find(&zone->table[parsed.v6], &parsed.key, hash);
		if (slot == CV_FLOW_NONE && CV_UNLIKELY(zone->restoring != NULL))
			slot = cv_flow_restore_for(zone, worker, parsed.v6, &parsed.key, hash);
	}
	flow = slot == CV_FLOW_NONE ? NULL : cv_flow_at(&zone->table[parsed.v6], slot >> 1);
	if (flow != NULL && is_reopened(flow, &parsed, slot)) {
		cv_flow_end(zone, worker, parsed.v6, slot >> 1);
		slot = CV_FLOW_NONE;
	} else if (flow != NULL && flow->epoch != zone->epoch) {
		slot = cv_flow_renew(group, worker, view, &parsed, slot, &verdict);
		if (slot == CV_FLOW_NONE && verdict != CV_NEXT)
			return verdict;
		if (slot != CV_FLOW_NONE && !is_still_of(flow, &parsed, slot))
			slot = CV_FLOW_NONE;
	}
	if (slot == CV_FLOW_NONE) {
		if (parsed.kind == CV_FLOW_IS_FRAGMENT) // its flow has just ended, or it left it
			return cv_flow_drop(group, view, CV_FLOW_NO_FIRST_FRAGMENT);
		slot = cv_flow_decide(group, worker, view, &parsed, hash, &verdict);
		if (slot == CV_FLOW_NONE)
			return verdict;
	}
	if (parsed.first_fragment && parsed.kind == CV_FLOW_IS_FLOW)
		remember_fragment(zone, &parsed, slot);
	return cv_flow_pass(group, worker, view, &parsed, slot);
}
