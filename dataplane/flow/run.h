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

// What the passes hand on, for each packet, beside what a follower is shown.
struct lane {
	uint32_t
		at; // its bucket, then its slot; CV_FLOW_NONE: it is looked at for itself; or FRESH
	uint16_t signature;
	bool v6;
	uint8_t *ip; // the packet's layer 3
	struct cv_flow *flow; // that the slot is of
};

#define FRESH (CV_FLOW_NONE - 1) // of no flow that is known

struct lanes {
	struct lane lane[CV_BURST_MAX];
	// As the first follower sees them: those that all follow, in one piece. direction and slot are of
	// the slot; the rest is of common packets.
	struct cv_flow_followed packet[CV_BURST_MAX];
};

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
	struct cv_flow_place slots[2]; // of the first follower; of nothing: there is none
	uint32_t now, epoch;
	uint32_t stale; // since then a flow's time is not written anew
};

static CV_INLINE unsigned number_of(const struct run *run, const struct cv_flow_followed *packet)
{
	return (unsigned)(packet->view - run->views);
}

// Its view: of the run's own, which followers only read.
static CV_INLINE struct cv_view *view_of(const struct cv_flow_followed *packet)
{
	return (struct cv_view *)(uintptr_t)packet->view;
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

// What is known of a packet of a common kind.
static CV_INLINE void put_common(struct cv_flow_followed *packet, const uint8_t *ip, unsigned l3,
	unsigned bytes, unsigned header, uint8_t proto)
{
	packet->l4 = (uint16_t)(l3 + header);
	packet->bytes = (uint16_t)bytes;
	packet->tcp_flags = tcp_flags_of(ip + header, proto);
}

// Returns whether some are IPv6. Adds up the packets' bytes. which: their numbers; NULL: 0 and so on.
static CV_INLINE bool first_pass(const struct run *run, const uint8_t *which, struct lanes *lanes,
	unsigned begin, unsigned end, uint32_t *bytes)
{
	bool some_v6 = false;

	for (unsigned i = begin; i < end; i++) {
		struct cv_view *view = &run->views[which == NULL ? i : which[i]];
		const unsigned l3 = view->l3;
		uint8_t *ip = view->data + l3;
		struct lane *lane = &lanes->lane[i];
		struct cv_flow_followed *packet = &lanes->packet[i];
		unsigned common;
		uint8_t proto;

		packet->view = view;
		lane->ip = ip;
		*bytes += view->len;
		if (CV_LIKELY(view->proto == CV_PROTO_IPV4 &&
			      (common = cv_flow_common_ipv4(view)) > 0)) {
			proto = ip[9];
			put_common(packet, ip, l3, common, CV_IPV4_LEN, proto);
			expect_bucket(run, lane, hash_ipv4(&run->secret, ip, proto), false);
		} else if (view->proto == CV_PROTO_IPV6 &&
			   (common = cv_flow_common_ipv6(view)) > 0) {
			put_common(packet, ip, l3, common, CV_IPV6_LEN, ip[6]);
			expect_bucket(run, lane, hash_ipv6(&run->secret, ip), true);
			some_v6 = true;
		} else {
			lane->at = CV_FLOW_NONE;
			lane->v6 = false;
		}
	}
	return some_v6;
}

// A packet's flow, by its slot.
static CV_INLINE struct cv_flow *put_slot(const struct run *run, struct lane *lane,
	struct cv_flow_followed *packet, uint32_t slot, bool v6)
{
	lane->at = slot;
	lane->flow =
		(struct cv_flow *)(run->table[v6].flows + (size_t)(slot >> 1) * (v6 ? 128 : 64));
	packet->direction = slot & 1;
	packet->slot = cv_flow_slot_at(&run->slots[v6], slot >> 1);
	return lane->flow;
}

// The flow that most likely is a packet's: the first of a bucket whose signature is, whose entry is asked
// for. Returns false if there is none.
static CV_INLINE bool find_likely(
	const struct run *run, struct lane *lane, struct cv_flow_followed *packet, bool v6)
{
	const struct cv_flow_bucket *bucket = &run->table[v6].buckets[lane->at];
	const uint32_t same = cv_flow_bucket_match(bucket, lane->signature);
	const uint8_t *entry;
	uint32_t slot;

	if (CV_UNLIKELY(same == 0))
		return false;
	slot = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
	entry = (const uint8_t *)put_slot(run, lane, packet, slot, v6);
	rte_prefetch1(entry);
	if (run->table[v6].windows != NULL)
		rte_prefetch1(run->table[v6].windows +
			      (size_t)(slot >> 1) * sizeof(struct cv_flow_window));
	if (v6)
		rte_prefetch1(entry + RTE_CACHE_LINE_SIZE);
	return true;
}

// Turns buckets into slots. Whether it is the packet's flow is seen in the third pass. Packets whose
// key may stand in its second bucket, in a full table one in twenty, are looked at when that was
// read as well. Only where some packets are IPv6 their lanes say which. Of packets of no flow that is
// known it asks for what will be read when they are decided on.
static CV_INLINE void second_pass(
	const struct run *run, struct lanes *lanes, unsigned begin, unsigned end, bool some_v6)
{
	uint8_t displaced[PART], fresh[PART];
	unsigned displaced_count = 0, fresh_count = 0;

	for (unsigned i = begin; i < end; i++) {
		struct lane *lane = &lanes->lane[i];
		struct cv_flow_followed *packet = &lanes->packet[i];
		const bool v6 = some_v6 && lane->v6;

		if (CV_UNLIKELY(lane->at == CV_FLOW_NONE))
			continue;
		if (CV_LIKELY(find_likely(run, lane, packet, v6)))
			continue;
		if (run->table[v6].buckets[lane->at].displaced == 0) {
			fresh[fresh_count++] = (uint8_t)number_of(run, packet);
			lane->at = FRESH;
			continue;
		}
		lane->at = cv_flow_other_bucket(
			lane->at, lane->signature, run->table[v6].buckets_count);
		rte_prefetch1(&run->table[v6].buckets[lane->at]);
		displaced[displaced_count++] = (uint8_t)i;
	}
	for (unsigned k = 0; k < displaced_count; k++) {
		struct lane *lane = &lanes->lane[displaced[k]];
		struct cv_flow_followed *packet = &lanes->packet[displaced[k]];

		if (find_likely(run, lane, packet, some_v6 && lane->v6))
			continue;
		fresh[fresh_count++] = (uint8_t)number_of(run, packet);
		lane->at = FRESH;
	}
	if (CV_UNLIKELY(fresh_count > 0))
		cv_flow_expect(run->group, run->worker, run->views, fresh, fresh_count);
}

// Whether a packet is of the flow that most likely is its, and changes nothing of it but when it was last
// seen. Else lane->at is what is known.
static CV_INLINE bool is_of_settled(
	const struct run *run, struct lane *lane, uint8_t tcp_flags, bool v6)
{
	const unsigned direction = lane->at & 1;
	struct cv_flow *flow = lane->flow;
	const uint8_t *ip = lane->ip;
	const bool is_its =
		v6 ? has_key_ipv6(flow, direction, ip)
		   : has_key_ipv4(cv_flow_stored(flow, direction, false), flow->proto, ip);

	if (CV_UNLIKELY(!is_its)) {
		lane->at = CV_FLOW_NONE;
		return false;
	}
	if (CV_UNLIKELY(flow->epoch != run->epoch ||
			(flow->flags & CV_FLOW_SETTLED(direction)) == 0 ||
			(tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0))
		return false;
	if ((int32_t)(cv_flow_seen(flow) - run->stale) <= 0) // else the line stays clean
		cv_flow_see(flow, run->now);
	return true;
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
static CV_INLINE unsigned take_settled(const struct run *run, struct lanes *lanes, unsigned begin,
	unsigned end, bool some_v6, struct settled *settled)
{
	unsigned fresh_count = 0, count = 0, i;
	uint8_t any = 0, all = UINT8_MAX;

	for (i = begin; i < end; i++) {
		struct lane *lane = &lanes->lane[i];
		const uint8_t tcp_flags = lanes->packet[i].tcp_flags;

		if (CV_UNLIKELY(lane->at >= FRESH)) {
			if (lane->at == CV_FLOW_NONE)
				break;
			settled->fresh[fresh_count++] = (uint8_t)i;
			continue;
		}
		if (CV_UNLIKELY(some_v6 && lane->v6 ? !is_of_settled(run, lane, tcp_flags, true)
						    : !is_of_settled(run, lane, tcp_flags, false)))
			break;
		any |= lane->flow->follows;
		all &= lane->flow->follows;
	}
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
static CV_NOINLINE unsigned collect(const struct lanes *lanes,
	const struct cv_flow_follower *follower, const struct settled *settled,
	struct cv_flow_followed packets[PART])
{
	unsigned n = 0;

	for (unsigned k = 0; k < settled->count; k++) {
		const unsigned i = settled_at(settled, k);
		const struct lane *lane = &lanes->lane[i];

		if (!(lane->flow->follows & follower->bit))
			continue;
		packets[n] = lanes->packet[i];
		packets[n++].slot = cv_flow_slot_at(&follower->slots[lane->v6], lane->at >> 1);
	}
	return n;
}

// Shows them to a follower. Leaves those that pass. Returns how many do not.
static CV_INLINE unsigned show(
	const struct run *run, const struct lanes *lanes, unsigned number, struct settled *settled)
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
			run->verdicts[number_of(run, &packets[k])] =
				cv_flow_stop(run->group, follower, packets[k].view, verdicts[k]);
	for (unsigned k = 0; k < settled->count; k++) {
		const unsigned i = settled_at(settled, k);

		if (run->verdicts[number_of(run, &lanes->packet[i])] == CV_NEXT)
			settled->which[left++] = (uint8_t)i;
	}
	settled->dense = false;
	settled->count = left;
	return others;
}

// What becomes of a packet of a settled flow, behind those who follow it. A verdict.
static CV_INLINE uint8_t apply(const struct run *run, const struct lane *lane,
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
static CV_INLINE unsigned apply_to(const struct run *run, const struct lane *lane,
	const struct cv_flow_followed *packet, bool some_v6)
{
	const uint8_t verdict = some_v6 && lane->v6 ? apply(run, lane, packet, true)
						    : apply(run, lane, packet, false);

	if (CV_LIKELY(verdict == CV_NEXT))
		return 0;
	run->verdicts[number_of(run, packet)] = verdict;
	return 1;
}

// Packets that settled flows were found for, and what is to be of them.
static CV_INLINE unsigned apply_settled(
	const struct run *run, const struct lanes *lanes, bool some_v6, struct settled *settled)
{
	unsigned dropped = 0;

	for (unsigned i = 0; settled->any != 0 && i < run->group->followers_count; i++)
		dropped += show(run, lanes, i, settled);
	if (CV_LIKELY(settled->dense)) {
		const struct lane *lane = &lanes->lane[settled->begin],
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
static void forget(struct lanes *lanes, unsigned begin, unsigned end)
{
	for (unsigned i = begin; i < end; i++)
		lanes->lane[i].at = CV_FLOW_NONE;
}

// A packet that is looked at for itself, and the slot of its flow if that is known. Returns whether it
// does not go on.
static CV_INLINE unsigned look_at(
	const struct run *run, const struct cv_flow_followed *packet, uint32_t slot)
{
	const unsigned number = number_of(run, packet);

	run->verdicts[number] = cv_flow_one(run->group, run->worker, view_of(packet), slot);
	return run->verdicts[number] != CV_NEXT;
}

// Packets of no flow that is known begin one. Returns how many do not go on.
static CV_NOINLINE unsigned open_fresh(
	const struct run *run, struct lanes *lanes, bool some_v6, const uint8_t *fresh, unsigned n)
{
	struct settled opened = {.dense = false};
	uint64_t hashes[PART] = {0};
	uint32_t slots[PART], late;
	uint8_t numbers[PART] = {0};
	unsigned dropped = 0;

	for (unsigned k = 0; k < n; k++) {
		const struct lane *lane = &lanes->lane[fresh[k]];

		hashes[k] = lane->v6 ? hash_ipv6(&run->secret, lane->ip)
				     : hash_ipv4(&run->secret, lane->ip, lane->ip[9]);
		numbers[k] = (uint8_t)number_of(run, &lanes->packet[fresh[k]]);
	}
	late = cv_flow_open(
		run->group, run->worker, run->views, run->verdicts, numbers, hashes, n, slots);
	for (unsigned k = 0; k < n; k++) {
		struct lane *lane = &lanes->lane[fresh[k]];

		if (slots[k] == CV_FLOW_NONE) {
			dropped += (~late >> k & 1) && run->verdicts[numbers[k]] != CV_NEXT;
			continue;
		}
		put_slot(run, lane, &lanes->packet[fresh[k]], slots[k], lane->v6);
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
static CV_INLINE unsigned third_pass(const struct run *run, struct lanes *lanes, unsigned begin,
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
	struct lanes lanes;
	bool some_v6 = false;

	while (applied < n) {
		const unsigned to_match = hashed, to_apply = matched;

		hashed = RTE_MIN(hashed + PART, n);
		some_v6 |= first_pass(run, which, &lanes, to_match, hashed, bytes);
		if (some_v6) {
			second_pass(run, &lanes, matched, to_match, true);
			dropped += third_pass(run, &lanes, applied, to_apply, to_match, true);
		} else {
			second_pass(run, &lanes, matched, to_match, false);
			dropped += third_pass(run, &lanes, applied, to_apply, to_match, false);
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
		run.slots[v6] = group->followers[0].slots[v6];
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
