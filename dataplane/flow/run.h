// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hot half of the flow path: a burst of packets, most of flows that are known. Compiled for
// different processors, each as CV_FLOW_RUN: with AES the hash is inline.
//
// In three passes, so that what each reads of memory was asked for by the one before: keys and
// hashes; the buckets they lead to; the flows those lead to, which are applied in the packets'
// order. A packet of any other kind takes the long way (cv_flow_one()) in its turn.
//
// A part of the burst at a time, each pass a part ahead of the next one: while flows are applied, memory
// brings those of the packets behind, and buckets of the ones behind these.
//
// Packets of settled flows, up to one that takes the long way, are shown to followers together, then
// rewritten together: loops that call nothing for each packet keep what they need in registers.
#include <rte_prefetch.h>

#include "flow/common_run.h"
#include "flow/zone.h"

// Packets. What is asked for comes into the second cache, which has more lines on their way at a time than
// the first: there, with large tables, parts of this size would wait for each other.
#define PART CV_FLOW_OPENINGS

// What the passes hand on, for each packet.
struct lane {
	uint32_t
		at; // its bucket, then its slot; CV_FLOW_NONE: it is looked at for itself; or FRESH
	uint16_t signature;
	bool v6;
	uint8_t tcp_flags; // of TCP, else 0
	struct cv_flow *flow; // that the slot is of
	struct cv_view *view;
};

#define FRESH (CV_FLOW_NONE - 1) // of no flow that is known

// A burst, and what of its zone is read for every packet, where the compiler knows that it does not change.
struct run {
	struct cv_flow_group *group;
	struct cv_nf_worker *worker;
	struct cv_view *views;
	uint8_t *verdicts;
	const struct cv_flow_ways *ways;
	struct cv_flow_secret secret;
	struct {
		struct cv_flow_bucket *buckets;
		uint8_t *flows;
		uint32_t buckets_count;
		uint8_t *windows; // NULL: none are checked
	} table[2];
	uint32_t now, epoch;
	uint32_t stale; // since then a flow's time is not written anew
};

static CV_INLINE unsigned number_of(const struct run *run, const struct lane *lane)
{
	return (unsigned)(lane->view - run->views);
}

// Asks for a packet's bucket.
static CV_INLINE void expect_bucket(
	const struct run *run, struct lane *lane, uint64_t hash, bool v6)
{
	lane->v6 = v6;
	lane->signature = cv_flow_signature(hash);
	lane->at = cv_flow_bucket_of(hash, run->table[v6].buckets_count);
	rte_prefetch1(&run->table[v6].buckets[lane->at]);
}

// Returns whether some are IPv6. Adds up the packets' bytes. which: their numbers; NULL: 0 and so on.
static CV_INLINE bool first_pass(const struct run *run, const uint8_t *which, struct lane *lanes,
	unsigned begin, unsigned end, uint32_t *bytes)
{
	bool some_v6 = false;

	for (unsigned i = begin; i < end; i++) {
		struct cv_view *view = &run->views[which == NULL ? i : which[i]];
		const uint8_t *ip = view->data + view->l3;
		struct lane *lane = &lanes[i];

		lane->view = view;
		*bytes += view->len;
		if (CV_LIKELY(view->proto == CV_PROTO_IPV4 && cv_flow_is_common_ipv4(view))) {
			expect_bucket(run, lane, hash_ipv4(&run->secret, ip), false);
		} else if (view->proto == CV_PROTO_IPV6 && cv_flow_is_common_ipv6(view)) {
			expect_bucket(run, lane, hash_ipv6(&run->secret, ip), true);
			some_v6 = true;
		} else {
			lane->at = CV_FLOW_NONE;
			lane->v6 = false;
		}
	}
	return some_v6;
}

// The flow that most likely is a packet's: the first of a bucket whose signature is, as its slot,
// whose entry is asked for. Returns false if there is none.
static CV_INLINE bool find_likely(
	const struct run *run, const struct cv_flow_bucket *bucket, struct lane *lane, bool v6)
{
	const uint32_t same = cv_flow_bucket_match(bucket, lane->signature);
	uint8_t *entry;
	uint32_t slot;

	if (CV_UNLIKELY(same == 0))
		return false;
	slot = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
	entry = run->table[v6].flows + (size_t)(slot >> 1) * (v6 ? 128 : 64);
	rte_prefetch1(entry);
	if (run->table[v6].windows != NULL)
		rte_prefetch1(run->table[v6].windows +
			      (size_t)(slot >> 1) * sizeof(struct cv_flow_window));
	if (v6)
		rte_prefetch1(entry + RTE_CACHE_LINE_SIZE);
	lane->at = slot;
	lane->flow = (struct cv_flow *)entry;
	return true;
}

// Turns buckets into slots. Whether it is the packet's flow is seen in the third pass. Packets whose
// key may stand in its second bucket, in a full table one in twenty, are looked at when that was
// read as well. Only where some packets are IPv6 their lanes say which. Of packets of no flow that is
// known it asks for what will be read when they are decided on.
static CV_INLINE void second_pass(
	const struct run *run, struct lane *lanes, unsigned begin, unsigned end, bool some_v6)
{
	struct lane *displaced[PART];
	uint8_t fresh[PART];
	unsigned displaced_count = 0, fresh_count = 0;

	for (unsigned i = begin; i < end; i++) {
		struct lane *lane = &lanes[i];
		const bool v6 = some_v6 && lane->v6;
		const struct cv_flow_bucket *bucket;

		if (CV_UNLIKELY(lane->at == CV_FLOW_NONE))
			continue;
		bucket = &run->table[v6].buckets[lane->at];
		if (CV_LIKELY(find_likely(run, bucket, lane, v6)))
			continue;
		if (bucket->displaced == 0) {
			fresh[fresh_count++] = (uint8_t)number_of(run, lane);
			lane->at = FRESH;
			continue;
		}
		lane->at = cv_flow_other_bucket(
			lane->at, lane->signature, run->table[v6].buckets_count);
		rte_prefetch1(&run->table[v6].buckets[lane->at]);
		displaced[displaced_count++] = lane;
	}
	for (unsigned i = 0; i < displaced_count; i++) {
		struct lane *lane = displaced[i];
		const bool v6 = some_v6 && lane->v6;

		if (find_likely(run, &run->table[v6].buckets[lane->at], lane, v6))
			continue;
		fresh[fresh_count++] = (uint8_t)number_of(run, lane);
		lane->at = FRESH;
	}
	if (CV_UNLIKELY(fresh_count > 0))
		cv_flow_expect(run->group, run->worker, run->views, fresh, fresh_count);
}

// Whether a packet is of the flow that most likely is its, and changes nothing of it but when it was last
// seen. Else lane->at is what is known.
static CV_INLINE bool is_of_settled(
	const struct run *run, const struct cv_view *view, struct lane *lane, bool v6)
{
	const unsigned direction = lane->at & 1;
	struct cv_flow *flow = lane->flow;
	const uint8_t *ip = view->data + view->l3;
	const bool is_its =
		v6 ? has_key_ipv6(flow, direction, ip)
		   : has_key_ipv4(cv_flow_stored(flow, direction, false), flow->proto, ip);

	if (CV_UNLIKELY(!is_its)) {
		lane->at = CV_FLOW_NONE;
		return false;
	}
	lane->tcp_flags = tcp_flags_of(ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN), ip[v6 ? 6 : 9]);
	if (CV_UNLIKELY(flow->epoch != run->epoch ||
			(flow->flags & CV_FLOW_SETTLED(direction)) == 0 ||
			(lane->tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0))
		return false;
	if ((int32_t)(cv_flow_seen(flow) - run->stale) <= 0) // else the line stays clean
		cv_flow_see(flow, run->now);
	return true;
}

// Packets of a part that are of settled flows, or of none that is known, up to one that takes the long
// way.
struct settled {
	struct cv_flow_followed first[PART]; // those of settled flows that the first follower sees
	uint8_t which[PART], fresh[PART];
	unsigned count, fresh_count, first_count;
	uint8_t follows; // of any of their flows
};

static CV_INLINE void put_followed(struct cv_flow_followed *followed,
	const struct cv_flow_place *slots, const struct cv_view *view, const struct lane *lane,
	bool v6)
{
	const uint8_t *ip = view->data + view->l3;

	followed->tcp_flags = lane->tcp_flags;
	followed->direction = lane->at & 1;
	followed->view = view;
	followed->slot = cv_flow_slot_at(slots, lane->at >> 1);
	followed->l4 = (uint16_t)(view->l3 + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN));
	followed->bytes =
		(uint16_t)(v6 ? CV_IPV6_LEN + cv_tuple_load(ip + 4) : cv_tuple_load(ip + 2));
}

// Takes them, from begin on. Returns which packet is none, or end.
static CV_INLINE unsigned take_settled(const struct run *run, struct lane *lanes, unsigned begin,
	unsigned end, bool some_v6, struct settled *settled)
{
	const struct cv_flow_follower *first =
		&run->group->followers[0]; // of no bit: there is none
	const struct cv_flow_place slots[2] = {first->slots[0], first->slots[1]};
	const uint8_t first_bit = first->bit;
	struct cv_flow_followed *followed = settled->first;
	unsigned count = 0, fresh_count = 0, i;
	uint8_t follows = 0;

	for (i = begin; i < end; i++) {
		struct lane *lane = &lanes[i];
		const struct cv_view *view = lane->view;
		const bool v6 = some_v6 && lane->v6;

		if (CV_UNLIKELY(lane->at >= FRESH)) {
			if (lane->at == CV_FLOW_NONE)
				break;
			settled->fresh[fresh_count++] = (uint8_t)i;
			continue;
		}
		if (CV_UNLIKELY(v6 ? !is_of_settled(run, view, lane, true)
				   : !is_of_settled(run, view, lane, false)))
			break;
		follows |= lane->flow->follows;
		if (lane->flow->follows & first_bit) {
			if (v6)
				put_followed(followed, &slots[1], view, lane, true);
			else
				put_followed(followed, &slots[0], view, lane, false);
			followed++;
		}
		settled->which[count++] = (uint8_t)i;
	}
	settled->count = count;
	settled->fresh_count = fresh_count;
	settled->first_count = (unsigned)(followed - settled->first);
	settled->follows = follows;
	return i;
}

// Shows a follower n packets of them, at least one. Leaves those that pass. Returns how many do not.
static CV_INLINE unsigned show(const struct run *run, const struct lane *lanes,
	const struct cv_flow_follower *follower, const struct cv_flow_followed *packets, unsigned n,
	struct settled *settled)
{
	uint8_t verdicts[PART];
	unsigned left = 0, others;

	memset(verdicts, CV_NEXT, sizeof(verdicts));
	others = follower->follow(follower->instance, run->worker, packets, verdicts, n);
	if (CV_LIKELY(others == 0))
		return 0;
	for (unsigned k = 0; k < n; k++)
		if (verdicts[k] != CV_NEXT)
			run->verdicts[packets[k].view - run->views] =
				cv_flow_stop(run->group, follower, packets[k].view, verdicts[k]);
	for (unsigned k = 0; k < settled->count; k++)
		if (run->verdicts[number_of(run, &lanes[settled->which[k]])] == CV_NEXT)
			settled->which[left++] = settled->which[k];
	settled->count = left;
	return others;
}

// The same of a follower behind the first.
static CV_NOINLINE unsigned show_next(const struct run *run, const struct lane *lanes,
	const struct cv_flow_follower *follower, struct settled *settled)
{
	struct cv_flow_followed packets[PART];
	unsigned n = 0;

	for (unsigned k = 0; k < settled->count; k++) {
		const unsigned i = settled->which[k];

		if (lanes[i].flow->follows & follower->bit)
			put_followed(&packets[n++], &follower->slots[lanes[i].v6], lanes[i].view,
				&lanes[i], lanes[i].v6);
	}
	return n == 0 ? 0 : show(run, lanes, follower, packets, n, settled);
}

// What becomes of a packet of a settled flow, behind those who follow it. A verdict.
static CV_INLINE uint8_t apply(const struct run *run, const struct lane *lane, bool v6)
{
	struct cv_flow_group *group = run->group;
	struct cv_view *view = lane->view;
	struct cv_flow *flow = lane->flow;
	const unsigned direction = lane->at & 1;
	uint32_t ways; // both

	if (flow->flags & CV_FLOW_REWRITES)
		rewrite_common(flow, direction, view->data + view->l3, v6);
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
static CV_INLINE unsigned apply_to(const struct run *run, const struct lane *lane, bool some_v6)
{
	const uint8_t verdict =
		some_v6 && lane->v6 ? apply(run, lane, true) : apply(run, lane, false);

	if (CV_LIKELY(verdict == CV_NEXT))
		return 0;
	run->verdicts[number_of(run, lane)] = verdict;
	return 1;
}

// Packets that settled flows were found for, and what is to be of them.
static CV_INLINE unsigned apply_settled(
	const struct run *run, const struct lane *lanes, bool some_v6, struct settled *settled)
{
	const struct cv_flow_group *group = run->group;
	unsigned dropped = 0, begin;

	if (settled->first_count > 0)
		dropped += show(run, lanes, &group->followers[0], settled->first,
			settled->first_count, settled);
	for (unsigned i = 1; settled->follows != 0 && i < group->followers_count; i++)
		dropped += show_next(run, lanes, &group->followers[i], settled);
	if (settled->count == 0)
		return dropped;
	begin = settled->which[0];
	// None between them is missing, nearly always.
	if (CV_LIKELY(settled->which[settled->count - 1] == begin + settled->count - 1))
		for (unsigned i = begin; i < begin + settled->count; i++)
			dropped += apply_to(run, &lanes[i], some_v6);
	else
		for (unsigned k = 0; k < settled->count; k++)
			dropped += apply_to(run, &lanes[settled->which[k]], some_v6);
	return dropped;
}

// What was found may be another's, or not there any more.
static void forget(struct lane *lanes, unsigned begin, unsigned end)
{
	for (unsigned i = begin; i < end; i++)
		lanes[i].at = CV_FLOW_NONE;
}

// A packet that is looked at for itself, and the slot of its flow if that is known. Returns whether it
// does not go on.
static CV_INLINE unsigned look_at(const struct run *run, const struct lane *lane, uint32_t slot)
{
	const uint8_t verdict = cv_flow_one(run->group, run->worker, lane->view, slot);

	run->verdicts[number_of(run, lane)] = verdict;
	return verdict != CV_NEXT;
}

// Packets of no flow that is known begin one. Returns how many do not go on.
static __attribute__((noinline)) unsigned open_fresh(
	const struct run *run, struct lane *lanes, bool some_v6, const uint8_t *fresh, unsigned n)
{
	const struct cv_flow_follower *first = &run->group->followers[0];
	struct settled opened;
	uint64_t hashes[PART] = {0};
	uint32_t slots[PART], late;
	uint8_t numbers[PART] = {0};
	unsigned dropped = 0;

	opened.count = opened.first_count = 0;
	opened.follows = 0;
	for (unsigned k = 0; k < n; k++) {
		const struct lane *lane = &lanes[fresh[k]];
		const uint8_t *ip = lane->view->data + lane->view->l3;

		hashes[k] = lane->v6 ? hash_ipv6(&run->secret, ip) : hash_ipv4(&run->secret, ip);
		numbers[k] = (uint8_t)number_of(run, lane);
	}
	late = cv_flow_open(
		run->group, run->worker, run->views, run->verdicts, numbers, hashes, n, slots);
	for (unsigned k = 0; k < n; k++) {
		struct lane *lane = &lanes[fresh[k]];
		const uint8_t *ip = lane->view->data + lane->view->l3;
		const bool v6 = lane->v6;

		if (slots[k] == CV_FLOW_NONE) {
			dropped += (~late >> k & 1) && run->verdicts[numbers[k]] != CV_NEXT;
			continue;
		}
		lane->at = slots[k];
		lane->flow = (struct cv_flow *)(run->table[v6].flows +
						(size_t)(slots[k] >> 1) * (v6 ? 128 : 64));
		lane->tcp_flags =
			tcp_flags_of(ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN), ip[v6 ? 6 : 9]);
		opened.follows |= lane->flow->follows;
		if (lane->flow->follows & first->bit)
			put_followed(&opened.first[opened.first_count++], &first->slots[v6],
				lane->view, lane, v6);
		opened.which[opened.count++] = fresh[k];
	}
	dropped += apply_settled(run, lanes, some_v6, &opened);
	for (unsigned k = 0; k < n; k++)
		if (late >> k & 1)
			dropped += look_at(run, &lanes[fresh[k]], CV_FLOW_NONE);
	return dropped;
}

// matched: how many packets the second pass has seen. Returns how many do not go on.
static CV_INLINE unsigned third_pass(const struct run *run, struct lane *lanes, unsigned begin,
	unsigned end, unsigned matched, bool some_v6)
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
		dropped += look_at(run, &lanes[i], lanes[i].at);
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
	struct lane lanes[CV_BURST_MAX];
	bool some_v6 = false;

	while (applied < n) {
		const unsigned to_match = hashed, to_apply = matched;

		hashed = RTE_MIN(hashed + PART, n);
		some_v6 |= first_pass(run, which, lanes, to_match, hashed, bytes);
		if (some_v6) {
			second_pass(run, lanes, matched, to_match, true);
			dropped += third_pass(run, lanes, applied, to_apply, to_match, true);
		} else {
			second_pass(run, lanes, matched, to_match, false);
			dropped += third_pass(run, lanes, applied, to_apply, to_match, false);
		}
		matched = to_match;
		applied = to_apply;
	}
	return dropped;
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
	run.group = group;
	run.worker = worker;
	run.views = views;
	run.verdicts = verdicts;
	run.ways = &zone->ways;
	run.secret = zone->secret;
	run.now = zone->now;
	run.epoch = zone->epoch;
	run.stale = zone->now - zone->stale;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		run.table[v6].buckets = zone->table[v6].buckets;
		run.table[v6].buckets_count = zone->table[v6].buckets_count;
		run.table[v6].flows = zone->table[v6].flows;
		run.table[v6].windows =
			zone->windows == CV_FLOW_WINDOWS_NONE ? NULL : zone->window[v6].first;
	}
	memset(verdicts, CV_NEXT, n);
	if (zone->homes != NULL)
		left = leave_done(views, n, which, &bytes);
	dropped =
		left == n ? run_parts(&run, NULL, n, &bytes) : run_parts(&run, which, left, &bytes);
	count(group, n, bytes);
	return (uint16_t)dropped;
}
