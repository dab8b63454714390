// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Looks packets up in the flows of their worker: two of the hot half's passes, compiled for different
// processors. So that what each reads of memory was asked for by the one before: keys and hashes, then the
// buckets they lead to. What is asked for comes into the second cache, which has more lines on their way at
// a time than the first.
#ifndef CV_FLOW_LOOKUP_RUN_H
#define CV_FLOW_LOOKUP_RUN_H

#include <rte_prefetch.h>

#include "flow/common_run.h"
#include "flow/lookup.h"
#include "flow/zone.h"

// A burst, and what of its zone is read for every packet, where the compiler knows that it does not change.
struct query {
	struct cv_view *views;
	struct cv_flow_secret secret;
	struct {
		struct cv_flow_bucket *buckets;
		uint8_t *flows;
		uint32_t buckets_count;
		uint8_t *windows; // NULL: none are checked
	} table[2];
	uint32_t epoch;
};

// Packets of no flow that is known: the numbers of their views.
struct fresh {
	unsigned count;
	uint8_t which[CV_BURST_MAX];
};

static CV_INLINE void query_init(
	struct query *query, const struct cv_flow_zone *zone, struct cv_view *views)
{
	query->views = views;
	query->secret = zone->secret;
	query->epoch = zone->epoch;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		query->table[v6].buckets = zone->table[v6].buckets;
		query->table[v6].buckets_count = zone->table[v6].buckets_count;
		query->table[v6].flows = zone->table[v6].flows;
		query->table[v6].windows =
			zone->windows == CV_FLOW_WINDOWS_NONE ? NULL : zone->window[v6].first;
	}
}

static CV_INLINE unsigned number_of(
	const struct query *query, const struct cv_flow_followed *packet)
{
	return (unsigned)(packet->view - query->views);
}

// Its view: one of the burst's, which followers only read.
static CV_INLINE struct cv_view *view_of(const struct cv_flow_followed *packet)
{
	return (struct cv_view *)(uintptr_t)packet->view;
}

// Asks for a packet's bucket.
static CV_INLINE void expect_bucket(
	const struct query *query, struct cv_flow_lane *lane, uint64_t hash, bool v6)
{
	lane->v6 = v6;
	lane->signature = cv_flow_signature(hash);
	lane->at = cv_flow_bucket_of(hash, query->table[v6].buckets_count);
	rte_prefetch1(&query->table[v6].buckets[lane->at]);
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
static CV_INLINE bool first_pass(const struct query *query, const uint8_t *which,
	struct cv_flow_lanes *lanes, unsigned begin, unsigned end, uint32_t *bytes)
{
	bool some_v6 = false;

	for (unsigned i = begin; i < end; i++) {
		struct cv_view *view = &query->views[which == NULL ? i : which[i]];
		const unsigned l3 = view->l3;
		uint8_t *ip = view->data + l3;
		struct cv_flow_lane *lane = &lanes->lane[i];
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
			expect_bucket(query, lane, hash_ipv4(&query->secret, ip, proto), false);
		} else if (view->proto == CV_PROTO_IPV6 &&
			   (common = cv_flow_common_ipv6(view)) > 0) {
			put_common(packet, ip, l3, common, CV_IPV6_LEN, ip[6]);
			expect_bucket(query, lane, hash_ipv6(&query->secret, ip), true);
			some_v6 = true;
		} else {
			lane->at = CV_FLOW_NONE;
			lane->v6 = false;
		}
	}
	return some_v6;
}

static CV_INLINE void put_slot(
	const struct query *query, struct cv_flow_lane *lane, uint32_t slot, bool v6)
{
	lane->at = slot;
	lane->flow =
		(struct cv_flow *)(query->table[v6].flows + (size_t)(slot >> 1) * (v6 ? 128 : 64));
}

// The flow that most likely is a packet's: the first of a bucket whose signature is, whose entry is asked
// for. Returns false if there is none.
static CV_INLINE bool find_likely(const struct query *query, struct cv_flow_lane *lane, bool v6)
{
	const struct cv_flow_bucket *bucket = &query->table[v6].buckets[lane->at];
	const uint32_t same = cv_flow_bucket_match(bucket, lane->signature);
	uint32_t slot;

	if (CV_UNLIKELY(same == 0))
		return false;
	slot = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;
	put_slot(query, lane, slot, v6);
	rte_prefetch1(lane->flow);
	if (query->table[v6].windows != NULL)
		rte_prefetch1(query->table[v6].windows +
			      (size_t)(slot >> 1) * sizeof(struct cv_flow_window));
	if (v6)
		rte_prefetch1((const uint8_t *)lane->flow + RTE_CACHE_LINE_SIZE);
	return true;
}

static CV_INLINE void put_fresh(const struct query *query, struct cv_flow_lane *lane,
	const struct cv_flow_followed *packet, struct fresh *fresh)
{
	fresh->which[fresh->count++] = (uint8_t)number_of(query, packet);
	lane->at = CV_FLOW_FRESH;
}

// Turns buckets into slots. Whether it is the packet's flow is seen in its entry. Packets whose key may
// stand in its second bucket, in a full table one in twenty, are looked at when that was read as well.
// Only where some packets are IPv6 their lanes say which.
static CV_INLINE void second_pass(const struct query *query, struct cv_flow_lanes *lanes,
	unsigned begin, unsigned end, bool some_v6, struct fresh *fresh)
{
	uint8_t displaced[CV_BURST_MAX];
	unsigned displaced_count = 0;

	fresh->count = 0;
	for (unsigned i = begin; i < end; i++) {
		struct cv_flow_lane *lane = &lanes->lane[i];
		const bool v6 = some_v6 && lane->v6;

		if (CV_UNLIKELY(lane->at == CV_FLOW_NONE))
			continue;
		if (CV_LIKELY(find_likely(query, lane, v6)))
			continue;
		if (query->table[v6].buckets[lane->at].displaced == 0) {
			put_fresh(query, lane, &lanes->packet[i], fresh);
			continue;
		}
		lane->at = cv_flow_other_bucket(
			lane->at, lane->signature, query->table[v6].buckets_count);
		rte_prefetch1(&query->table[v6].buckets[lane->at]);
		displaced[displaced_count++] = (uint8_t)i;
	}
	for (unsigned k = 0; k < displaced_count; k++) {
		struct cv_flow_lane *lane = &lanes->lane[displaced[k]];

		if (!find_likely(query, lane, some_v6 && lane->v6))
			put_fresh(query, lane, &lanes->packet[displaced[k]], fresh);
	}
}

// Whether a packet is of the flow that most likely is its.
static CV_INLINE bool has_its_key(const struct cv_flow_lane *lane, bool v6)
{
	const unsigned direction = lane->at & 1;
	struct cv_flow *flow = lane->flow;

	return v6 ? has_key_ipv6(flow, direction, lane->ip)
		  : has_key_ipv4(cv_flow_stored(flow, direction, false), flow->proto, lane->ip);
}

// Whether its flow's packets of this direction change nothing of it, and nothing has changed since it was
// decided.
static CV_INLINE bool is_settled(const struct query *query, const struct cv_flow_lane *lane)
{
	return lane->flow->epoch == query->epoch &&
	       (lane->flow->flags & CV_FLOW_SETTLED(lane->at & 1)) != 0;
}

#endif
