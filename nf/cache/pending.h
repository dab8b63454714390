// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Questions that went by and wait for their answers, of one worker, in a table that does not grow. Of each
// there is a keyed hash of all that its answer must repeat: both addresses and ports, tags, id, name (in
// its very case) and type. Whoever sends answers to what was not asked would have to guess 64 bits.
#ifndef CV_CACHE_PENDING_H
#define CV_CACHE_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#define CV_CACHE_PENDING_WAYS 4u
#define CV_CACHE_PENDING_S 10u // longer than clients wait

struct cv_cache_query {
	uint64_t hash; // 0: none
	uint32_t since; // by the clock
	uint8_t query_flags;
	uint8_t unused[3];
};

struct cv_cache_pending {
	struct cv_cache_query (*buckets)[CV_CACHE_PENDING_WAYS]; // a cache line each
	uint32_t count; // of buckets
};

static inline struct cv_cache_query *cv_cache_pending_bucket(
	const struct cv_cache_pending *pending, uint64_t hash)
{
	return pending->buckets[(hash >> 32) * pending->count >> 32];
}

// Remembers a question; the oldest of its bucket makes room. age: of CV_CACHE_PENDING_S by the clock.
static inline void cv_cache_pending_put(
	const struct cv_cache_pending *pending, uint64_t hash, uint8_t query_flags, uint32_t now)
{
	struct cv_cache_query *bucket = cv_cache_pending_bucket(pending, hash), *place = bucket;

	for (unsigned way = 0; way < CV_CACHE_PENDING_WAYS; way++) {
		struct cv_cache_query *at = &bucket[way];

		if (at->hash == (hash | 1)) {
			place = at;
			break;
		}
		if (place->hash != 0 && (at->hash == 0 || now - at->since > now - place->since))
			place = at;
	}
	*place =
		(struct cv_cache_query){.hash = hash | 1, .since = now, .query_flags = query_flags};
}

// Takes a question that waits, not longer than age, by the clock. Returns what it asked for, or -1.
static inline int cv_cache_pending_take(
	const struct cv_cache_pending *pending, uint64_t hash, uint32_t now, uint32_t age)
{
	struct cv_cache_query *bucket = cv_cache_pending_bucket(pending, hash);

	for (unsigned way = 0; way < CV_CACHE_PENDING_WAYS; way++) {
		struct cv_cache_query *at = &bucket[way];

		if (at->hash != (hash | 1))
			continue;
		at->hash = 0;
		return now - at->since <= age ? at->query_flags : -1;
	}
	return -1;
}

#endif
