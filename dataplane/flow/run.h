// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hot half of the flow path: a burst of packets, most of flows that are known. Compiled for
// different processors, each as CV_FLOW_RUN: with AES the hash is inline.
//
// In three passes, so that what each reads of memory was asked for by the one before: keys and
// hashes; the buckets they lead to; the flows those lead to, which are applied in the packets'
// order. A packet of any other kind takes the long way (cv_flow_one()) in its turn.
#include <rte_prefetch.h>

#include "flow/common_run.h"
#include "flow/zone.h"

// What the passes hand on, for each packet.
struct lane {
	uint32_t at; // its bucket, then its slot; CV_FLOW_NONE: it is looked at for itself; or DONE
	uint16_t signature;
	uint8_t tcp_flags; // of TCP, else 0
	bool v6;
};

#define DONE (CV_FLOW_NONE - 1) // its flow is another worker's, which was asked (foreign.h)

// What of a zone is read for every packet, where the compiler knows that it does not change.
struct fixed {
	struct cv_flow_secret secret;
	struct {
		struct cv_flow_bucket *buckets;
		uint8_t *flows;
		uint32_t buckets_count;
		uint8_t *windows; // NULL: none are checked
	} table[2];
	uint32_t now, epoch, stale;
};

// Returns whether some are IPv6. Adds up the packets' bytes. shared: other workers have such flows.
static CV_INLINE bool first_pass(const struct fixed *fixed, struct cv_view *views, unsigned n,
	struct lane *lanes, uint32_t *bytes, const bool shared)
{
	bool some_v6 = false;

	for (unsigned i = 0; i < n; i++) {
		struct cv_view *view = &views[i];
		const uint8_t *ip = view->data + view->l3;
		struct lane *lane = &lanes[i];
		uint64_t hash;
		bool v6 = false;

		*bytes += view->len;
		if (shared && (view->in & CV_VIEW_DONE) != 0) {
			view->in &= (uint8_t)~CV_VIEW_DONE;
			lane->at = DONE;
			lane->v6 = false;
			continue;
		}
		if (CV_LIKELY(view->proto == CV_PROTO_IPV4 && cv_flow_is_common_ipv4(view))) {
			hash = hash_ipv4(&fixed->secret, ip);
			lane->tcp_flags = tcp_flags_of(ip + CV_IPV4_LEN, ip[9]);
		} else if (view->proto == CV_PROTO_IPV6 && cv_flow_is_common_ipv6(view)) {
			hash = hash_ipv6(&fixed->secret, ip);
			lane->tcp_flags = tcp_flags_of(ip + CV_IPV6_LEN, ip[6]);
			v6 = some_v6 = true;
		} else {
			lane->at = CV_FLOW_NONE;
			lane->v6 = false;
			continue;
		}
		lane->v6 = v6;
		lane->signature = cv_flow_signature(hash);
		lane->at = cv_flow_bucket_of(hash, fixed->table[v6].buckets_count);
		rte_prefetch0(&fixed->table[v6].buckets[lane->at]);
	}
	return some_v6;
}

// The flow that most likely is a packet's: the first of a bucket whose signature is, as its slot,
// whose entry is asked for; CV_FLOW_NONE: there is none.
static CV_INLINE uint32_t likely_flow(
	const struct fixed *fixed, const struct cv_flow_bucket *bucket, uint16_t signature, bool v6)
{
	const uint32_t same = cv_flow_bucket_match(bucket, signature);
	const uint8_t *entry;
	uint32_t slot;

	if (CV_UNLIKELY(same == 0))
		return CV_FLOW_NONE;
	slot = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
	entry = fixed->table[v6].flows + (size_t)(slot >> 1) * (v6 ? 128 : 64);
	rte_prefetch0(entry);
	if (fixed->table[v6].windows != NULL)
		rte_prefetch0(fixed->table[v6].windows +
			      (size_t)(slot >> 1) * sizeof(struct cv_flow_window));
	if (v6)
		rte_prefetch0(entry + RTE_CACHE_LINE_SIZE);
	return slot;
}

// Turns buckets into slots. Whether it is the packet's flow is seen in the third pass. Packets whose
// key may stand in its second bucket, in a full table one in twenty, are looked at when that was
// read as well. Only where some packets are IPv6 their lanes say which. Returns how many are of no
// flow that is known, whose numbers are put into fresh.
static CV_INLINE unsigned second_pass(const struct fixed *fixed, unsigned n, struct lane *lanes,
	bool some_v6, uint8_t fresh[CV_BURST_MAX])
{
	struct lane *displaced[CV_BURST_MAX];
	unsigned displaced_count = 0, fresh_count = 0;

	for (unsigned i = 0; i < n; i++) {
		struct lane *lane = &lanes[i];
		const bool v6 = some_v6 && lane->v6;
		const struct cv_flow_bucket *bucket;
		uint32_t slot;

		if (CV_UNLIKELY(lane->at >= DONE))
			continue;
		bucket = &fixed->table[v6].buckets[lane->at];
		slot = likely_flow(fixed, bucket, lane->signature, v6);
		if (CV_UNLIKELY(slot == CV_FLOW_NONE)) {
			if (bucket->displaced == 0) {
				fresh[fresh_count++] = (uint8_t)i;
			} else {
				slot = cv_flow_other_bucket(
					lane->at, lane->signature, fixed->table[v6].buckets_count);
				rte_prefetch0(&fixed->table[v6].buckets[slot]);
				displaced[displaced_count++] = lane;
			}
		}
		lane->at = slot;
	}
	for (unsigned i = 0; i < displaced_count; i++) {
		struct lane *lane = displaced[i];
		const bool v6 = some_v6 && lane->v6;

		lane->at = likely_flow(
			fixed, &fixed->table[v6].buckets[lane->at], lane->signature, v6);
		if (lane->at == CV_FLOW_NONE)
			fresh[fresh_count++] = (uint8_t)(lane - lanes);
	}
	return fresh_count;
}

// One packet and the flow that most likely is its. Whatever is not the common case takes the long
// way.
static CV_INLINE uint8_t apply(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct fixed *fixed, struct cv_view *view, const struct lane *lane,
	struct cv_flow_packet *packet, bool v6)
{
	const uint32_t slot = lane->at;
	const unsigned direction = slot & 1;
	struct cv_flow *flow =
		(struct cv_flow *)(fixed->table[v6].flows + (size_t)(slot >> 1) * (v6 ? 128 : 64));
	uint8_t *ip = view->data + view->l3, verdict;
	const bool is_its =
		v6 ? has_key_ipv6(flow, direction, ip) : has_key_ipv4(flow, direction, ip);

	if (CV_UNLIKELY(!is_its))
		return cv_flow_one(group, worker, view, CV_FLOW_NONE);
	if (CV_UNLIKELY((flow->epoch != fixed->epoch) |
			((flow->flags & CV_FLOW_SETTLED(direction)) == 0) |
			((lane->tcp_flags & (CV_TCP_FIN | CV_TCP_SYN | CV_TCP_RST)) != 0)))
		return cv_flow_one(group, worker, view, slot);
	if ((int32_t)(fixed->now - cv_flow_seen(flow)) >=
		(int32_t)fixed->stale) // else the line stays clean
		cv_flow_see(flow, fixed->now);
	if (flow->follows != 0) {
		packet->view = view;
		packet->l4 = (uint16_t)(view->l3 + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN));
		packet->tcp_flags = lane->tcp_flags;
		packet->direction = (uint8_t)direction;
		verdict = cv_flow_follow(group, worker, packet, v6, slot >> 1, flow->follows);
		if (CV_UNLIKELY(verdict != CV_NEXT))
			return verdict;
	}
	if (flow->flags & CV_FLOW_REWRITES)
		rewrite_common(flow, direction, ip, v6);
	// The other direction's way changes nothing.
	if ((flow->way[0] | flow->way[1]) != 0 &&
		cv_flow_ways_apply(&group->zone->ways, view, flow->way[direction])) {
		verdict = cv_flow_wrap(group, worker, view, flow->way[direction]);
		if (CV_UNLIKELY(verdict != CV_NEXT))
			return verdict;
	}
	if (CV_UNLIKELY(flow->flags & CV_FLOW_OUTPUT) && direction == CV_FLOW_FORWARD)
		return cv_flow_leave(
			group, cv_flow_last_position(group, flow), view, flow->verdict);
	return CV_NEXT;
}

static CV_INLINE uint16_t third_pass(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct fixed *fixed, struct cv_view *views, uint8_t *verdicts, unsigned n,
	const struct lane *lanes, bool some_v6)
{
	struct cv_flow_zone *zone = group->zone;
	const uint64_t removals = zone->removals;
	struct cv_flow_packet packet = {.zone = zone};
	unsigned dropped = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct lane *lane = &lanes[i];
		uint8_t verdict;

		// After a flow was removed, what the second pass saw may be another's.
		if (lane->at == DONE)
			verdict = CV_NEXT;
		else if (CV_UNLIKELY((lane->at == CV_FLOW_NONE) | (zone->removals != removals)))
			verdict = cv_flow_one(group, worker, &views[i], CV_FLOW_NONE);
		else if (some_v6 && lane->v6)
			verdict = apply(group, worker, fixed, &views[i], lane, &packet, true);
		else
			verdict = apply(group, worker, fixed, &views[i], lane, &packet, false);
		verdicts[i] = verdict;
		dropped += verdict != CV_NEXT;
	}
	return (uint16_t)dropped;
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
	struct lane lanes[CV_BURST_MAX];
	uint8_t fresh[CV_BURST_MAX];
	unsigned fresh_count;
	struct fixed fixed;
	uint32_t bytes = 0;
	uint16_t dropped;
	bool some_v6;

	zone->now = (uint32_t)(worker->now >> zone->shift);
	cv_flow_learn_changes(zone);
	fixed.secret = zone->secret;
	fixed.now = zone->now;
	fixed.epoch = zone->epoch;
	fixed.stale = zone->stale;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		fixed.table[v6].buckets = zone->table[v6].buckets;
		fixed.table[v6].buckets_count = zone->table[v6].buckets_count;
		fixed.table[v6].flows = zone->table[v6].flows;
		fixed.table[v6].windows =
			zone->windows == CV_FLOW_WINDOWS_NONE ? NULL : zone->window[v6].first;
	}
	some_v6 = zone->homes == NULL ? first_pass(&fixed, views, n, lanes, &bytes, false)
				      : first_pass(&fixed, views, n, lanes, &bytes, true);
	fresh_count = some_v6 ? second_pass(&fixed, n, lanes, true, fresh)
			      : second_pass(&fixed, n, lanes, false, fresh);
	if (CV_UNLIKELY(fresh_count > 0))
		cv_flow_expect(group, worker, views, fresh, fresh_count);
	dropped = some_v6 ? third_pass(group, worker, &fixed, views, verdicts, n, lanes, true)
			  : third_pass(group, worker, &fixed, views, verdicts, n, lanes, false);
	count(group, n, bytes);
	return dropped;
}
