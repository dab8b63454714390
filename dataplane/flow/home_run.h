// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Homes of a burst, compiled for different processors, each as CV_FLOW_HOME_RUN: with AES the hash
// is inline.
#include "flow/common.h"
#include "flow/foreign_run.h"
#include "flow/fragments.h"
#include "flow/home.h"
#include "flow/table.h"
#include "packet/ipv4.h"

#ifndef CV_FLOW_HOME_RUN_H
#define CV_FLOW_HOME_RUN_H

struct cv_flow_home {
	const struct cv_flow_homes *homes;
	const struct cv_nf_flow *flow; // who rewrites; NULL: nobody
	const void *instance;
	uint8_t self;
	unsigned shift; // of TSC cycles to ticks of fragments
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
static CV_INLINE uint8_t home_of_tuple(
	const struct cv_flow_home *home, const struct cv_flow_tuple *tuple, uint8_t in)
{
	return home->flow == NULL ? CV_FLOW_HOME_BY_TUPLE
				  : home->flow->home(home->instance, home->homes, tuple, in);
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

// Of n <= CV_BURST_MAX packets.
static CV_INLINE unsigned home_part(struct cv_flow_home *home, struct cv_flow_foreign *foreign,
	struct cv_view *views, uint8_t *workers, unsigned n)
{
	// Read once: what is written meanwhile are bytes, which the compiler takes for any of these.
	const struct cv_flow_homes homes = *home->homes;
	const struct cv_nf_flow *const flow = home->flow;
	const void *const instance = home->instance;
	const uint8_t self = home->self;
	struct cv_flow_tuple tuple = {.family = 4};
	uint8_t which[CV_BURST_MAX];
	unsigned others = 0, foreign_count = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct cv_view *view = &views[i];
		const uint8_t *ip = view->data + view->l3;
		uint8_t worker = CV_FLOW_HOME_BY_TUPLE;

		if (CV_UNLIKELY(view->proto != CV_PROTO_IPV4 || cv_flow_common_ipv4(view) == 0)) {
			worker = cv_flow_home_of_one(home, view);
			workers[i] = worker;
			others += worker != self;
			continue;
		}
		tuple.proto = ip[9];
		memcpy(&tuple.src.ipv4, ip + 12, 4);
		memcpy(&tuple.dst.ipv4, ip + 16, 4);
		memcpy(&tuple.sport, ip + CV_IPV4_LEN, 2);
		memcpy(&tuple.dport, ip + CV_IPV4_LEN + 2, 2);
		if (flow != NULL)
			worker = flow->home(instance, &homes, &tuple, view->in);
		worker = home_by_ipv4(&homes, &tuple, worker);
		workers[i] = worker;
		which[foreign_count] = (uint8_t)i;
		foreign_count += worker != self;
	}
	others += foreign_count;
	if (foreign != NULL && foreign_count > 0)
		others -= foreign_run(foreign, self, views, workers, which, foreign_count);
	return others;
}

uint16_t CV_FLOW_HOME_RUN(
	struct cv_flow_home *home, struct cv_view *views, uint8_t *workers, uint16_t n)
{
	struct cv_flow_foreign *foreign =
		home->foreign != NULL && may_read(home) ? home->foreign : NULL;
	unsigned others = 0;

	if (home->foreign != NULL)
		foreign_begin(home->foreign);
	for (unsigned i = 0; i < n; i += CV_BURST_MAX)
		others += home_part(home, foreign, views + i, workers + i,
			RTE_MIN(n - i, (unsigned)CV_BURST_MAX));
	return (uint16_t)others;
}
