// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hot half of the flow path: a burst of packets, most of flows that are known. Compiled for
// different processors, each as CV_FLOW_RUN: with AES the hash is inline.
//
// In three passes, so that what each reads of memory was asked for by the one before: keys and
// hashes; the buckets they lead to (lookup_run.h); the flows those lead to, which are applied in the packets'
// order. A packet of any other kind takes the long way (cv_flow_one()) in its turn.
//
// A part of the burst at a time, each pass a part ahead of the next one: while flows are applied, memory
// brings those of the packets behind, and buckets of the ones behind these.
//
// Packets of settled flows, up to one that takes the long way, are shown to followers together, then
// rewritten together: loops that call nothing for each packet keep what they need in registers.
#include "flow/lookup_run.h"

// Packets. The passes are so far apart: with large tables a smaller part would wait for what it asked for.
#define PART CV_FLOW_OPENINGS

struct run {
	struct query query;
	struct cv_flow_group *group;
	struct cv_nf_worker *worker;
	uint8_t *verdicts;
	const struct cv_flow_ways *ways;
	struct cv_flow_place slots[2]; // of the first follower; anywhere: there is none
	uint32_t now;
	uint32_t stale; // since then a flow's time is not written anew
};

// Asks for what will be read when packets of no flow that is known are decided on.
static CV_INLINE void expect_fresh(const struct run *run, const struct fresh *fresh)
{
	if (CV_UNLIKELY(fresh->count > 0))
		cv_flow_expect(
			run->group, run->worker, run->query.views, fresh->which, fresh->count);
}

// Whether a packet is of the flow that most likely is its, and changes nothing of it but when it was last
// seen. Else lane->at is what is known.
static CV_INLINE bool is_of_settled(const struct run *run, struct cv_flow_lane *lane,
	const struct cv_flow_followed *packet, bool v6)
{
	struct cv_flow *flow = lane->flow;

	if (CV_UNLIKELY(!has_its_key(lane, v6))) {
		lane->at = CV_FLOW_NONE;
		return false;
	}
	if (CV_UNLIKELY(!is_settled(&run->query, lane) ||
			(packet->tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0))
		return false;
	if ((int32_t)(cv_flow_seen(flow) - run->stale) <= 0) // else the line stays clean
		cv_flow_see(flow, run->now);
	return true;
}

// What the first follower sees of a packet's flow.
static CV_INLINE void put_followed(const struct run *run, const struct cv_flow_lane *lane,
	struct cv_flow_followed *packet, bool v6)
{
	packet->direction = lane->at & 1;
	packet->slot = cv_flow_slot_at(&run->slots[v6], lane->at >> 1);
}

// Packets of a part that are of settled flows, up to one that takes the long way, and those between them
// that are of no flow that is known.
struct settled {
	unsigned begin, count, fresh_count;
	bool dense; // they are those from begin on; else which says it
	uint8_t any, all; // what their flows have of follows
	uint8_t which[PART], fresh[PART];
};

static CV_INLINE unsigned settled_at(const struct settled *settled, unsigned k)
{
	return settled->dense ? settled->begin + k : settled->which[k];
}

// Takes them, from begin on. Returns which packet is none, or end.
static CV_INLINE unsigned take_settled(const struct run *run, struct cv_flow_lanes *lanes,
	unsigned begin, unsigned end, bool some_v6, struct settled *settled)
{
	struct cv_flow_lane *lane = &lanes->lane[begin], *const behind = &lanes->lane[end];
	struct cv_flow_followed *packet = &lanes->packet[begin];
	unsigned fresh_count = 0, count = 0, i;
	uint8_t any = 0, all = UINT8_MAX;

	for (; lane < behind; lane++, packet++) {
		const bool v6 = some_v6 && lane->v6;

		if (CV_UNLIKELY(lane->at >= CV_FLOW_FRESH)) {
			if (lane->at == CV_FLOW_NONE)
				break;
			settled->fresh[fresh_count++] = (uint8_t)(lane - lanes->lane);
			continue;
		}
		if (CV_UNLIKELY(v6 ? !is_of_settled(run, lane, packet, true)
				   : !is_of_settled(run, lane, packet, false)))
			break;
		put_followed(run, lane, packet, v6);
		any |= lane->flow->follows;
		all &= lane->flow->follows;
	}
	i = (unsigned)(lane - lanes->lane);
	settled->begin = begin;
	settled->any = any;
	settled->all = all;
	settled->dense = fresh_count == 0;
	settled->fresh_count = fresh_count;
	if (CV_UNLIKELY(fresh_count > 0))
		for (unsigned k = begin, next = 0; k < i; k++) {
			if (next < fresh_count && settled->fresh[next] == k)
				next++;
			else
				settled->which[count++] = (uint8_t)k;
		}
	settled->count = i - begin - fresh_count;
	return i;
}

// Those that a follower is to see, in a piece. Returns how many.
static CV_NOINLINE unsigned collect(const struct cv_flow_lanes *lanes,
	const struct cv_flow_follower *follower, const struct settled *settled,
	struct cv_flow_followed packets[PART])
{
	unsigned n = 0;

	for (unsigned k = 0; k < settled->count; k++) {
		const unsigned i = settled_at(settled, k);
		const struct cv_flow_lane *lane = &lanes->lane[i];

		if (!(lane->flow->follows & follower->bit))
			continue;
		packets[n] = lanes->packet[i];
		packets[n++].slot = cv_flow_slot_at(&follower->slots[lane->v6], lane->at >> 1);
	}
	return n;
}

// Shows them to a follower. Leaves those that pass. Returns how many do not.
static CV_INLINE unsigned show(const struct run *run, const struct cv_flow_lanes *lanes,
	unsigned number, struct settled *settled)
{
	const struct cv_flow_follower *follower = &run->group->followers[number];
	const struct cv_flow_followed *packets = &lanes->packet[settled->begin];
	struct cv_flow_followed collected[PART];
	unsigned n = settled->count, left = 0, others;
	uint8_t verdicts[PART];

	if (CV_UNLIKELY(number > 0 || !settled->dense || !(settled->all & follower->bit))) {
		packets = collected;
		n = collect(lanes, follower, settled, collected);
		if (n == 0)
			return 0;
	}
	memset(verdicts, CV_NEXT, sizeof(verdicts));
	others = follower->follow(follower->instance, run->worker, packets, verdicts, n);
	if (CV_LIKELY(others == 0))
		return 0;
	for (unsigned k = 0; k < n; k++)
		if (verdicts[k] != CV_NEXT)
			run->verdicts[number_of(&run->query, &packets[k])] =
				cv_flow_stop(run->group, follower, packets[k].view, verdicts[k]);
	for (unsigned k = 0; k < settled->count; k++) {
		const unsigned i = settled_at(settled, k);

		if (run->verdicts[number_of(&run->query, &lanes->packet[i])] == CV_NEXT)
			settled->which[left++] = (uint8_t)i;
	}
	settled->dense = false;
	settled->count = left;
	return others;
}

// What becomes of a packet of a settled flow, behind those who follow it. A verdict.
static CV_INLINE uint8_t apply(const struct run *run, const struct cv_flow_lane *lane,
	const struct cv_flow_followed *packet, bool v6)
{
	struct cv_flow_group *group = run->group;
	struct cv_view *view = view_of(packet);
	struct cv_flow *flow = lane->flow;
	const unsigned direction = lane->at & 1;
	uint32_t ways; // both

	if (flow->flags & CV_FLOW_REWRITES)
		rewrite_common(flow, direction, lane->ip, v6);
	memcpy(&ways, flow->way, sizeof(ways));
	// The other direction's way changes nothing.
	if (ways != 0 && cv_flow_ways_apply(run->ways, view, flow->way[direction])) {
		const uint8_t verdict =
			cv_flow_wrap(group, run->worker, view, flow->way[direction]);

		if (CV_UNLIKELY(verdict != CV_NEXT))
			return verdict;
	}
	if (CV_UNLIKELY(flow->flags & CV_FLOW_OUTPUT) && direction == CV_FLOW_FORWARD)
		return cv_flow_leave(
			group, cv_flow_last_position(group, flow), view, flow->verdict);
	return CV_NEXT;
}

// The same. Returns whether it does not go on.
static CV_INLINE unsigned apply_to(const struct run *run, const struct cv_flow_lane *lane,
	const struct cv_flow_followed *packet, bool some_v6)
{
	const uint8_t verdict = some_v6 && lane->v6 ? apply(run, lane, packet, true)
						    : apply(run, lane, packet, false);

	if (CV_LIKELY(verdict == CV_NEXT))
		return 0;
	run->verdicts[number_of(&run->query, packet)] = verdict;
	return 1;
}

// Packets that settled flows were found for, and what is to be of them.
static CV_INLINE unsigned apply_settled(const struct run *run, const struct cv_flow_lanes *lanes,
	bool some_v6, struct settled *settled)
{
	unsigned dropped = 0;

	for (unsigned i = 0; settled->any != 0 && i < run->group->followers_count; i++)
		dropped += show(run, lanes, i, settled);
	if (CV_LIKELY(settled->dense)) {
		const struct cv_flow_lane *lane = &lanes->lane[settled->begin],
					  *end = lane + settled->count;
		const struct cv_flow_followed *packet = &lanes->packet[settled->begin];

		for (; lane < end; lane++, packet++)
			dropped += apply_to(run, lane, packet, some_v6);
	} else {
		for (unsigned k = 0; k < settled->count; k++) {
			const unsigned i = settled->which[k];

			dropped += apply_to(run, &lanes->lane[i], &lanes->packet[i], some_v6);
		}
	}
	return dropped;
}

// What was found may be another's, or not there any more.
static void forget(struct cv_flow_lanes *lanes, unsigned begin, unsigned end)
{
	for (unsigned i = begin; i < end; i++)
		lanes->lane[i].at = CV_FLOW_NONE;
}

// A packet that is looked at for itself, and the slot of its flow if that is known. Returns whether it
// does not go on.
static CV_INLINE unsigned look_at(
	const struct run *run, const struct cv_flow_followed *packet, uint32_t slot)
{
	const unsigned number = number_of(&run->query, packet);

	run->verdicts[number] = cv_flow_one(run->group, run->worker, view_of(packet), slot);
	return run->verdicts[number] != CV_NEXT;
}

// Packets of no flow that is known begin one. Returns how many do not go on.
static CV_NOINLINE unsigned open_fresh(const struct run *run, struct cv_flow_lanes *lanes,
	bool some_v6, const uint8_t *fresh, unsigned n)
{
	struct settled opened = {.dense = false};
	uint64_t hashes[PART] = {0};
	uint32_t slots[PART], late;
	uint8_t numbers[PART] = {0};
	unsigned dropped = 0;

	for (unsigned k = 0; k < n; k++) {
		const struct cv_flow_lane *lane = &lanes->lane[fresh[k]];

		hashes[k] = lane->v6 ? hash_ipv6(&run->query.secret, lane->ip)
				     : hash_ipv4(&run->query.secret, lane->ip, lane->ip[9]);
		numbers[k] = (uint8_t)number_of(&run->query, &lanes->packet[fresh[k]]);
	}
	late = cv_flow_open(run->group, run->worker, run->query.views, run->verdicts, numbers,
		hashes, n, slots);
	for (unsigned k = 0; k < n; k++) {
		struct cv_flow_lane *lane = &lanes->lane[fresh[k]];

		if (slots[k] == CV_FLOW_NONE) {
			dropped += (~late >> k & 1) && run->verdicts[numbers[k]] != CV_NEXT;
			continue;
		}
		put_slot(&run->query, lane, slots[k], lane->v6);
		put_followed(run, lane, &lanes->packet[fresh[k]], lane->v6);
		opened.any |= lane->flow->follows;
		opened.which[opened.count++] = fresh[k];
	}
	dropped += apply_settled(run, lanes, some_v6, &opened);
	for (unsigned k = 0; k < n; k++)
		if (late >> k & 1)
			dropped += look_at(run, &lanes->packet[fresh[k]], CV_FLOW_NONE);
	return dropped;
}

// matched: how many packets the second pass has seen. Returns how many do not go on.
static CV_INLINE unsigned third_pass(const struct run *run, struct cv_flow_lanes *lanes,
	unsigned begin, unsigned end, unsigned matched, bool some_v6)
{
	const struct cv_flow_zone *zone = run->group->zone;
	unsigned dropped = 0;

	for (unsigned i = begin; i < end; i++) {
		const uint64_t removals = zone->removals;
		struct settled settled;

		i = take_settled(run, lanes, i, end, some_v6, &settled);
		dropped += apply_settled(run, lanes, some_v6, &settled);
		if (CV_UNLIKELY(settled.fresh_count > 0)) {
			dropped +=
				open_fresh(run, lanes, some_v6, settled.fresh, settled.fresh_count);
			if (zone->removals != removals)
				forget(lanes, i, matched);
		}
		if (i == end)
			break;
		dropped += look_at(run, &lanes->packet[i], lanes->lane[i].at);
		if (zone->removals != removals)
			forget(lanes, i + 1, matched);
	}
	return dropped;
}

// All passes, over n packets of which these are the numbers; NULL: 0 and so on. Returns how many do not go
// on.
static CV_INLINE unsigned run_parts(
	const struct run *run, const uint8_t *which, unsigned n, uint32_t *bytes)
{
	unsigned hashed = 0, matched = 0, applied = 0, dropped = 0;
	struct cv_flow_lanes lanes;
	bool some_v6 = false;
	struct fresh fresh;

	while (applied < n) {
		const unsigned to_match = hashed, to_apply = matched;

		hashed = RTE_MIN(hashed + PART, n);
		some_v6 |= first_pass(&run->query, which, &lanes, to_match, hashed, bytes);
		if (some_v6) {
			second_pass(&run->query, &lanes, matched, to_match, true, &fresh);
			expect_fresh(run, &fresh);
			dropped += third_pass(run, &lanes, applied, to_apply, to_match, true);
		} else {
			second_pass(&run->query, &lanes, matched, to_match, false, &fresh);
			expect_fresh(run, &fresh);
			dropped += third_pass(run, &lanes, applied, to_apply, to_match, false);
		}
		matched = to_match;
		applied = to_apply;
	}
	return dropped;
}

static CV_INLINE bool some_are_done(const struct cv_view *views, unsigned n)
{
	uint8_t in = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < n; i++)
		in |= views[i].in;
	return in & CV_VIEW_DONE;
}

// Packets of flows that another worker keeps, and that were rewritten where it was asked (foreign.h), only
// are counted. Without a branch, as there is no telling which they are. Returns how many are left.
static CV_INLINE unsigned leave_done(
	struct cv_view *views, unsigned n, uint8_t which[CV_BURST_MAX], uint32_t *bytes)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint32_t done = -(uint32_t)(views[i].in / CV_VIEW_DONE); // all bits

		views[i].in &= (uint8_t)~CV_VIEW_DONE;
		*bytes += views[i].len & done;
		which[left] = (uint8_t)i;
		left += 1 + done;
	}
	return left;
}

static CV_INLINE bool is_looked_up(
	const struct cv_flow_zone *zone, const struct cv_view *views, unsigned n)
{
	const struct cv_flow_lookup *lookup = &zone->lookup;

	return lookup->n == n && lookup->views == views && lookup->removals == zone->removals;
}

// The last pass over a burst that was looked up before: the packets of these numbers, which are all if n of
// them are left. It looks at each flow again, as those before it in the burst may have ended it. Returns how
// many do not go on.
static CV_NOINLINE unsigned run_looked_up(
	const struct run *run, const uint8_t *which, unsigned left, unsigned n, uint32_t *bytes)
{
	struct cv_flow_lookup *lookup = &run->group->zone->lookup;
	struct cv_flow_lanes *lanes = &lookup->lanes;
	unsigned dropped = 0;

	*bytes = lookup->bytes;
	for (unsigned i = 0; left < n && i < left; i++) { // which[i] >= i
		lanes->lane[i] = lanes->lane[which[i]];
		lanes->packet[i] = lanes->packet[which[i]];
	}
	for (unsigned begin = 0; begin < left; begin += PART) {
		const unsigned end = RTE_MIN(begin + PART, left);
		struct fresh fresh = {.count = 0};

		for (unsigned i = begin; lookup->some_fresh && i < end; i++)
			if (lanes->lane[i].at == CV_FLOW_FRESH)
				put_fresh(&run->query, &lanes->lane[i], &lanes->packet[i], &fresh);
		expect_fresh(run, &fresh);
		dropped += third_pass(run, lanes, begin, end, left, lookup->some_v6);
	}
	return dropped;
}

// Each function counts what it would have been shown.
static CV_INLINE void count(struct cv_flow_group *group, uint32_t packets, uint32_t bytes)
{
	const unsigned functions = group->zone->members_count;

	if (CV_UNLIKELY(group->some_left)) {
		for (unsigned i = 0; i < functions; i++) {
			packets -= group->left[i].packets;
			bytes -= group->left[i].bytes;
			cv_count(&group->counters[i]->packets, packets);
			cv_count(&group->counters[i]->bytes, bytes);
		}
		memset(group->left, 0, sizeof(group->left));
		group->some_left = false;
		return;
	}
	for (unsigned i = 0; i < functions; i++) {
		cv_count(&group->counters[i]->packets, packets);
		cv_count(&group->counters[i]->bytes, bytes);
	}
}

uint16_t CV_FLOW_RUN(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, uint16_t n)
{
	struct cv_flow_zone *zone = group->zone;
	uint8_t which[CV_BURST_MAX];
	unsigned dropped, left = n;
	uint32_t bytes = 0;
	struct run run;

	zone->now = (uint32_t)(worker->now >> zone->shift);
	cv_flow_learn_changes(zone);
	query_init(&run.query, zone, views);
	run.group = group;
	run.worker = worker;
	run.verdicts = verdicts;
	run.ways = &zone->ways;
	run.now = zone->now;
	run.stale = zone->now - zone->stale;
	for (unsigned v6 = 0; v6 < 2; v6++)
		run.slots[v6] = group->followers_count > 0
					? group->followers[0].slots[v6]
					: (struct cv_flow_place){zone->table[v6].flows, 0};
	memset(verdicts, CV_NEXT, n);
	if (zone->homes != NULL && some_are_done(views, n))
		left = leave_done(views, n, which, &bytes);
	if (is_looked_up(zone, views, n))
		dropped = run_looked_up(&run, which, left, n, &bytes);
	else if (left == n)
		dropped = run_parts(&run, NULL, n, &bytes);
	else
		dropped = run_parts(&run, which, left, &bytes);
	zone->lookup.n = 0;
	count(group, n, bytes);
	return (uint16_t)dropped;
}
