// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the parts of the cache share.
#ifndef CV_CACHE_WORKER_H
#define CV_CACHE_WORKER_H

#include "chain/nf.h"
#include "flow/hash.h"
#include "nf/cache/pending.h"
#include "nf/cache/datagram.h"
#include "nf/cache/message.h"
#include "nf/cache/store.h"

// Written by their worker, read by others.
struct cv_cache_counts {
	uint64_t hits, misses;
	uint64_t others; // queries that are of another kind
	uint64_t learned, expired;
	uint64_t refused[CV_DNS_REFUSED];
};

// What one worker knows. Nobody else touches it, but to read counters.
struct cv_cache_worker {
	struct cv_cache_store store;
	struct cv_cache_pending pending;
	struct cv_cache_counts counts;
} __rte_cache_aligned;

// What an instance hands on to the one that takes its place.
struct cv_cache_state {
	unsigned owners; // instances
	uint64_t runners; // workers, a bit each
	struct cv_flow_secret secret;
	struct cv_cache_worker *worker[CV_WORKERS_MAX];
};

struct cv_cache {
	bool is_outside[CV_PORTS_MAX];
	uint16_t mtus[CV_PORTS_MAX];
	rte_be16_t port;
	uint32_t memory_mb;
	uint32_t max_ttl_s;
	uint64_t clock_per_tick; // of the TSC, in 2^-64
	struct cv_cache_state *state;
};

static CV_INLINE uint64_t cv_cache_clock(const struct cv_cache *cache, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * cache->clock_per_tick >> 64);
}

static CV_INLINE void cv_cache_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED); // with info()
}

// The tags of a view that was parsed: id, and whether it is that of a provider.
static CV_INLINE void cv_cache_tags(const struct cv_view *view, uint16_t tags[2])
{
	tags[0] = tags[1] = 0;
	for (unsigned at = CV_ETHER_LEN, i = 0; CV_UNLIKELY(at < view->l3) && i < 2;
		at += CV_VLAN_LEN, i++)
		tags[i] = (rte_be_to_cpu_16(cv_load_be16(view->data + at)) & 0xfff) |
			  (cv_load_be16(view->data + at - 2) == CV_PROTO_QINQ ? 0x2000 : 0x1000);
}

// A question by its server. Of server the address is read: 4 or 16 bytes.
void cv_cache_make_key(struct cv_cache_key *key, const struct cv_view *view, const uint8_t *server,
	bool v6, const struct cv_dns_question *question);

static inline uint64_t cv_cache_hash(
	const struct cv_cache_state *state, const struct cv_cache_key *key)
{
	return cv_flow_hash(&state->secret, key, cv_cache_key_len(key));
}

// The hash of all that an answer repeats, as asked: client is the end that asks.
uint64_t cv_cache_exchange_hash(const struct cv_cache_state *state, const struct cv_view *view,
	const struct cv_datagram *datagram, const struct cv_dns_question *question, bool is_answer);

// Queries among n packets that came in from clients are answered, where that is known: CV_ABSORBED. Others
// and all else pass. Returns how many were answered.
uint16_t cv_cache_answer(struct cv_cache *cache, struct cv_cache_worker *own,
	struct cv_nf_worker *worker, struct cv_view *view, uint8_t *verdict, uint16_t n);

// Learns from a packet that came in from servers.
void cv_cache_learn(const struct cv_cache *cache, struct cv_cache_worker *own,
	const struct cv_view *view, uint64_t clock);

#endif
