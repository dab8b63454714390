// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Homes of a burst, compiled for different processors, each as CV_FLOW_HOME_RUN: with AES the hash
// is inline.
#include "flow/common.h"
#include "flow/foreign_run.h"
#include "flow/fragments.h"
#include "flow/home.h"
#include "flow/lookup_run.h"
#include "flow/table.h"
#include "packet/ipv4.h"

#ifndef CV_FLOW_HOME_RUN_H
#define CV_FLOW_HOME_RUN_H

// A burst is looked up in a worker's own flows first if of the one before only one packet in so many was
// another's: for those it is in vain.
#define MOSTLY 4

struct cv_flow_home {
	const struct cv_flow_homes *homes;
	const struct cv_nf_flow *flow; // who rewrites; NULL: nobody
	const void *instance;
	uint8_t self;
	unsigned shift; // of TSC cycles to ticks of fragments
	struct cv_flow_zone *own; // this worker's; NULL: nothing is looked up in it
	bool mostly_own; // of the last burst's packets
	struct cv_flow_foreign *foreign; // NULL: nothing of others is read
	bool traced; // what was handed over meanwhile may be on its way
	struct cv_flow_fragments fragments;
};

typedef uint16_t cv_flow_home_run(
	struct cv_flow_home *home, struct cv_view *views, uint8_t *workers, uint16_t n);

cv_flow_home_run cv_flow_home_run_baseline, cv_flow_home_run_aes;

// Any packet, whatever it is.
uint8_t cv_flow_home_of_one(struct cv_flow_home *home, const struct cv_view *view);

static CV_INLINE uint8_t cv_flow_homes_at(const struct cv_flow_homes *homes, uint64_t hash)
{
	return homes->workers[(hash >> 32) * homes->count >> 32];
}

#endif

static CV_INLINE uint64_t hash_of(const struct cv_flow_secret *secret, uint64_t low, uint64_t high)
{
#ifdef __AES__
	__m128i x = _mm_set_epi64x((long long)high, (long long)low);

	x = _mm_xor_si128(x, _mm_load_si128((const __m128i *)secret->keys));
	return (uint64_t)_mm_cvtsi128_si64(cv_flow_aes_rounds(secret, x));
#else
	const uint64_t key[2] = {low, high};

	return cv_flow_hash(secret, key, sizeof(key));
#endif
}

// The worker of a tuple, or what says it (enum cv_flow_home_by).
static CV_INLINE uint8_t home_of_tuple(const struct cv_nf_flow *flow, const void *instance,
	const struct cv_flow_homes *homes, const struct cv_flow_tuple *tuple, uint8_t in)
{
	return flow == NULL ? CV_FLOW_HOME_BY_TUPLE : flow->home(instance, homes, tuple, in);
}

// The worker. By both ends, whichever is the source: addresses and ports as they are in memory.
static CV_INLINE uint8_t home_by_ipv4(
	const struct cv_flow_homes *homes, const struct cv_flow_tuple *tuple, uint8_t worker)
{
	const uint64_t src = tuple->src.ipv4 | (uint64_t)tuple->sport << 32;
	const uint64_t dst = tuple->dst.ipv4 | (uint64_t)tuple->dport << 32;
	uint64_t low, high;

	if (worker < CV_FLOW_HOME_BY_SOURCE)
		return worker;
	if (worker == CV_FLOW_HOME_BY_TUPLE) {
		low = (src < dst ? src : dst) | (uint64_t)tuple->proto << 48;
		high = src < dst ? dst : src;
	} else {
		low = (uint32_t)(worker == CV_FLOW_HOME_BY_SOURCE ? src : dst);
		high = 0;
	}
	return cv_flow_homes_at(homes, hash_of(&homes->secret, low, high));
}

// A trace is told nothing here: all are handed over as long as there is one, and until they have left.
static inline bool may_read(struct cv_flow_home *home)
{
	if (cv_trace_is_on())
		home->traced = true;
	for (unsigned i = 0; home->traced && i < home->foreign->peers_count; i++) {
		const struct cv_ring *ring = home->foreign->peers[i].ring;

		if (ring != NULL && !cv_ring_is_done(ring, cv_ring_pushed(ring)))
			return false;
	}
	home->traced = cv_trace_is_on();
	return !home->traced;
}

// What is the same for a burst: what is written meanwhile are bytes, which the compiler takes for any of these.
struct request {
	struct cv_flow_homes homes;
	const struct cv_nf_flow *flow;
	const void *instance;
	struct cv_flow_tuple tuple; // for the next packet
};

static CV_INLINE void request_init(struct request *request, const struct cv_flow_home *home)
{
	request->homes = *home->homes;
	request->flow = home->flow;
	request->instance = home->instance;
	request->tuple = (struct cv_flow_tuple){.family = 4};
}

// The worker of a packet; *common: it is one that another worker's flows may be read for.
static CV_INLINE uint8_t home_of_view(struct cv_flow_home *home, struct request *request,
	const struct cv_view *view, bool *common)
{
	const uint8_t *ip = view->data + view->l3;
	struct cv_flow_tuple *tuple = &request->tuple;
	uint8_t worker;

	*common = view->proto == CV_PROTO_IPV4 && cv_flow_common_ipv4(view) > 0;
	if (CV_UNLIKELY(!*common))
		return cv_flow_home_of_one(home, view);
	tuple->proto = ip[9];
	memcpy(&tuple->src.ipv4, ip + 12, 4);
	memcpy(&tuple->dst.ipv4, ip + 16, 4);
	memcpy(&tuple->sport, ip + CV_IPV4_LEN, 2);
	memcpy(&tuple->dport, ip + CV_IPV4_LEN + 2, 2);
	worker = home_of_tuple(request->flow, request->instance, &request->homes, tuple, view->in);
	return home_by_ipv4(&request->homes, tuple, worker);
}

// Packets that are others': how many, and which of them are of common kinds.
struct others {
	unsigned count, common_count;
	uint8_t common[CV_BURST_MAX];
};

static CV_INLINE void find_home(struct cv_flow_home *home, struct request *request,
	const struct cv_view *views, uint8_t *workers, unsigned i, struct others *others)
{
	bool common;
	unsigned other;

	workers[i] = home_of_view(home, request, &views[i], &common);
	other = workers[i] != home->self;
	others->common[others->common_count] = (uint8_t)i;
	others->common_count += other & common;
	others->count += other;
}

// Looks packets up in the worker's own flows: the flow path goes on with what is found. Those of settled
// flows are its own, whatever home they would have. Of n <= CV_BURST_MAX packets.
static CV_INLINE void look_up_own(struct cv_flow_home *home, struct request *request,
	struct cv_view *views, uint8_t *workers, unsigned n, struct others *others)
{
	struct cv_flow_zone *zone = home->own;
	struct cv_flow_lookup *lookup = &zone->lookup;
	struct cv_flow_lanes *lanes = &lookup->lanes;
	const uint8_t self = home->self;
	struct fresh fresh;
	struct query query;

	cv_flow_learn_changes(zone);
	query_init(&query, zone, views);
	lookup->bytes = 0;
	lookup->some_v6 = first_pass(&query, NULL, lanes, 0, n, &lookup->bytes);
	second_pass(&query, lanes, 0, n, lookup->some_v6, &fresh);
	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow_lane *lane = &lanes->lane[i];

		if (CV_LIKELY(lane->at < CV_FLOW_FRESH) &&
			CV_LIKELY(has_its_key(lane, lookup->some_v6 && lane->v6) &&
				  is_settled(&query, lane)))
			workers[i] = self;
		else
			find_home(home, request, views, workers, i, others);
	}
	lookup->some_fresh = fresh.count > 0;
	lookup->removals = zone->removals;
	lookup->views = views;
	lookup->n = n;
}

// Of n <= CV_BURST_MAX packets; looks: first at the worker's own flows. Returns how many go to others.
static CV_INLINE unsigned home_part(struct cv_flow_home *home, struct cv_flow_foreign *foreign,
	struct cv_view *views, uint8_t *workers, unsigned n, bool looks)
{
	struct others others = {.count = 0};
	struct request request;

	request_init(&request, home);
	if (looks)
		look_up_own(home, &request, views, workers, n, &others);
	else
		for (unsigned i = 0; i < n; i++)
			find_home(home, &request, views, workers, i, &others);
	home->mostly_own = others.count <= n / MOSTLY;
	if (foreign != NULL && others.common_count > 0)
		others.count -= foreign_run(
			foreign, home->self, views, workers, others.common, others.common_count);
	return others.count;
}

uint16_t CV_FLOW_HOME_RUN(
	struct cv_flow_home *home, struct cv_view *views, uint8_t *workers, uint16_t n)
{
	struct cv_flow_foreign *foreign =
		home->foreign != NULL && may_read(home) ? home->foreign : NULL;
	struct cv_flow_zone *own = home->own;
	unsigned others = 0;

	if (home->foreign != NULL)
		foreign_begin(home->foreign);
	if (own != NULL && home->mostly_own && n <= CV_BURST_MAX && own->restoring == NULL) {
		others = home_part(home, foreign, views, workers, n, true);
		if (others > 0)
			own->lookup.n = 0; // the burst will be another
		return (uint16_t)others;
	}
	for (unsigned i = 0; i < n; i += CV_BURST_MAX)
		others += home_part(home, foreign, views + i, workers + i,
			RTE_MIN(n - i, (unsigned)CV_BURST_MAX), false);
	return (uint16_t)others;
}
