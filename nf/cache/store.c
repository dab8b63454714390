// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/cache/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#define LARGE_PAGE ((size_t)2 << 20)
#define INDEX_SHARE 8 // of the bytes, one in so many is the index's
#define SECOND_TURNS 8 // that answers get while one new one is put

_Static_assert(sizeof(struct cv_cache_bucket) == 64, "a line");
_Static_assert(CV_CACHE_UNITS_MAX <= UINT8_MAX, "units of an answer");

void *cv_cache_memory(size_t bytes)
{
	const size_t align = bytes < LARGE_PAGE ? RTE_CACHE_LINE_SIZE : LARGE_PAGE;
	const size_t whole = RTE_ALIGN_CEIL(bytes, align);
	void *memory = aligned_alloc(align, whole);

	if (memory == NULL)
		return NULL;
	if (align == LARGE_PAGE)
		madvise(memory, whole, MADV_HUGEPAGE); // a kernel without them refuses
	memset(memory, 0, whole);
	return memory;
}

int cv_cache_store_init(struct cv_cache_store *store, size_t bytes)
{
	const size_t ring = bytes - bytes / INDEX_SHARE;

	memset(store, 0, sizeof(*store));
	store->units = (uint32_t)(ring / CV_CACHE_UNIT - CV_CACHE_UNITS_MAX);
	store->buckets_count = (uint32_t)(bytes / INDEX_SHARE / sizeof(*store->buckets));
	store->ring = cv_cache_memory(ring);
	store->buckets = cv_cache_memory(store->buckets_count * sizeof(*store->buckets));
	if (store->ring != NULL && store->buckets != NULL)
		return 0;
	cv_cache_store_free(store);
	return -ENOMEM;
}

void cv_cache_store_free(struct cv_cache_store *store)
{
	free(store->ring);
	free(store->buckets);
	store->ring = NULL;
	store->buckets = NULL;
}

static uint32_t place_of(const struct cv_cache_store *store, const struct cv_cache_answer *answer)
{
	return (uint32_t)(RTE_PTR_DIFF(answer, store->ring) / CV_CACHE_UNIT);
}

// The place in the index that leads to an answer, or NULL.
static uint32_t *way_to(const struct cv_cache_store *store, const struct cv_cache_answer *answer)
{
	struct cv_cache_bucket *bucket = cv_cache_bucket(store, answer->hash);

	for (unsigned way = 0; way < CV_CACHE_WAYS; way++)
		if (bucket->place[way] == place_of(store, answer) + 1)
			return &bucket->place[way];
	return NULL;
}

void cv_cache_store_forget(struct cv_cache_store *store, const struct cv_cache_answer *answer)
{
	uint32_t *way = way_to(store, answer);

	if (way == NULL)
		return;
	*way = 0;
	store->entries--;
}

// How far from being overwritten a place is.
static uint32_t age_left(const struct cv_cache_store *store, uint32_t place)
{
	return place >= store->tail ? place - store->tail
				    : place + store->units + CV_CACHE_UNITS_MAX - store->tail;
}

// The way of a new answer: that of the one it replaces, an empty one, or that of the oldest, but rather of
// one that nobody used.
static unsigned choose_way(
	struct cv_cache_store *store, const struct cv_cache_bucket *bucket, uint32_t tag)
{
	unsigned chosen = 0;
	uint64_t least = UINT64_MAX;

	for (unsigned way = 0; way < CV_CACHE_WAYS; way++)
		if (bucket->place[way] != 0 && bucket->tag[way] == tag)
			return way;
	for (unsigned way = 0; way < CV_CACHE_WAYS; way++)
		if (bucket->place[way] == 0)
			return way;
	for (unsigned way = 0; way < CV_CACHE_WAYS; way++) {
		const uint32_t place = bucket->place[way] - 1;
		const uint64_t left =
			(uint64_t)cv_cache_at(store, place)->used << 32 | age_left(store, place);

		if (left < least) {
			least = left;
			chosen = way;
		}
	}
	store->evicted++;
	return chosen;
}

// Puts the answer at the head into the index.
static void lead_to(struct cv_cache_store *store, uint64_t hash, uint32_t place)
{
	struct cv_cache_bucket *bucket = cv_cache_bucket(store, hash);
	const unsigned way = choose_way(store, bucket, (uint32_t)hash);

	store->entries += bucket->place[way] == 0;
	bucket->tag[way] = (uint32_t)hash;
	bucket->place[way] = place + 1;
}

// Answers begin below `units`, and there is room behind for the longest one: none is ever divided.
static uint32_t behind(const struct cv_cache_store *store, uint32_t place, unsigned units)
{
	return place + units >= store->units ? 0 : place + units;
}

static bool fits(const struct cv_cache_store *store, unsigned units)
{
	return store->lie == 0 || store->head > store->tail || store->tail - store->head >= units;
}

static struct cv_cache_answer *append(struct cv_cache_store *store, uint64_t hash, unsigned units)
{
	struct cv_cache_answer *answer = cv_cache_at(store, store->head);

	lead_to(store, hash, store->head);
	store->head = behind(store, store->head, units);
	store->lie++;
	return answer;
}

// Takes away the oldest answer; one that still holds and was used goes to the head instead, if it may.
// Returns whether it did.
static bool reclaim(struct cv_cache_store *store, uint64_t now, bool may_stay)
{
	struct cv_cache_answer *oldest = cv_cache_at(store, store->tail);
	const unsigned units = oldest->units;
	const bool holds = way_to(store, oldest) != NULL && cv_cache_holds(oldest, now);
	const bool stays = may_stay && holds && oldest->used;

	if (stays)
		memcpy(store->moving, oldest, units * CV_CACHE_UNIT);
	cv_cache_store_forget(store, oldest);
	store->tail = behind(store, store->tail, units);
	store->lie--;
	store->evicted += holds && !stays;
	if (!stays)
		return false;
	assert(fits(store, units)); // where it was
	oldest = append(store, ((struct cv_cache_answer *)store->moving)->hash, units);
	memcpy(oldest, store->moving, units * CV_CACHE_UNIT);
	oldest->used = 0;
	return true;
}

struct cv_cache_answer *cv_cache_store_put(
	struct cv_cache_store *store, uint64_t hash, size_t bytes, uint64_t now)
{
	const unsigned units = (unsigned)((bytes + CV_CACHE_UNIT - 1) / CV_CACHE_UNIT);
	struct cv_cache_answer *answer;
	unsigned turns = 0;

	while (!fits(store, units))
		turns += reclaim(store, now, turns < SECOND_TURNS);
	answer = append(store, hash, units);
	answer->hash = hash;
	answer->used = 0;
	answer->units = (uint8_t)units;
	return answer;
}
