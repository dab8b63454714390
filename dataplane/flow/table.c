// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/table.h"

#include <errno.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#define LINE 64
// Keys for which a bucket's line is provided: at three quarters a look-up reads 1.1 of them, and an
// insertion that has to move a key finds one that can be moved.
#define KEYS_PER_BUCKET 6
// How far from its two buckets keys are moved to make room for one. With one step one key in some
// ten million found none in a table of 20 million; with two, 144 buckets are looked at.
#define STEPS_MAX 2

static uint32_t buckets_for(uint32_t max)
{
	return (uint32_t)(((uint64_t)max * 2 + KEYS_PER_BUCKET - 1) / KEYS_PER_BUCKET) + 1;
}

static size_t entry_bytes(bool v6)
{
	return v6 ? sizeof(struct cv_flow_ipv6) : sizeof(struct cv_flow_ipv4);
}

size_t cv_flow_table_bytes(uint32_t max, unsigned beside_bytes, bool v6)
{
	return (size_t)buckets_for(max) * sizeof(struct cv_flow_bucket) +
	       (size_t)max * entry_bytes(v6) +
	       RTE_ALIGN_CEIL((size_t)max * sizeof(uint32_t), LINE) +
	       RTE_ALIGN_CEIL((size_t)max * beside_bytes, LINE);
}

void cv_flow_table_init(struct cv_flow_table *table, void *memory, uint32_t max,
	unsigned beside_bytes, bool v6, const struct cv_flow_secret *secret)
{
	uint8_t *at = memory;

	*table = (struct cv_flow_table){
		.buckets_count = buckets_for(max),
		.max = max,
		.free = CV_FLOW_NONE,
		.v6 = v6,
		.secret = secret,
	};
	table->buckets = (struct cv_flow_bucket *)at;
	at += (size_t)table->buckets_count * sizeof(struct cv_flow_bucket);
	table->flows = at;
	at += (size_t)max * entry_bytes(v6);
	table->deadlines = (uint32_t *)at;
	at += RTE_ALIGN_CEIL((size_t)max * sizeof(uint32_t), LINE);
	table->beside = at;
	table->beside_bytes = beside_bytes;
}

void cv_flow_table_expect(const struct cv_flow_table *table)
{
	const uint32_t next = table->free != CV_FLOW_NONE ? table->free : table->high;

	rte_prefetch0(cv_flow_at(table, next)); // may be behind the last: that is no fault
	rte_prefetch0(&table->deadlines[next]);
	rte_prefetch0(table->beside + (size_t)next * table->beside_bytes);
}

uint32_t cv_flow_table_take(struct cv_flow_table *table)
{
	uint32_t index = table->free;

	if (index != CV_FLOW_NONE)
		table->free = cv_flow_at(table, index)->epoch;
	else if (table->high < table->max)
		index = table->high++;
	else
		return CV_FLOW_NONE;
	table->used++;
	cv_flow_table_expect(table);
	cv_flow_table_touch(table, index);
	memset(cv_flow_at(table, index), 0, entry_bytes(table->v6));
	memset(table->beside + (size_t)index * table->beside_bytes, 0, table->beside_bytes);
	return index;
}

void cv_flow_table_give(struct cv_flow_table *table, uint32_t index)
{
	struct cv_flow *flow = cv_flow_at(table, index);

	table->deadlines[index] = 0;
	flow->flags = 0;
	flow->epoch = table->free;
	table->free = index;
	table->used--;
}

static bool put(struct cv_flow_bucket *bucket, uint16_t signature, uint32_t slot)
{
	uint32_t empty = cv_flow_bucket_match(bucket, 0);
	unsigned place;

	if (empty == 0)
		return false;
	place = (unsigned)__builtin_ctz(empty);
	bucket->signature[place] = signature;
	bucket->slot[place] = slot;
	return true;
}

// Moves one of the bucket's keys to its other bucket, in which room was made before if that is so
// many steps away. Returns whether there is an empty place now.
static bool make_room(struct cv_flow_table *table, uint32_t at, unsigned steps)
{
	struct cv_flow_bucket *bucket = &table->buckets[at];

	for (unsigned i = 0; i < CV_FLOW_BUCKET; i++) {
		const uint16_t signature = bucket->signature[i];
		const uint32_t slot = bucket->slot[i] ^ CV_FLOW_SECOND;
		const uint32_t to = cv_flow_other_bucket(at, signature, table->buckets_count);
		struct cv_flow_bucket *other = &table->buckets[to];

		if (to == at || !((steps == 0 || make_room(table, to, steps - 1)) &&
					put(other, signature, slot)))
			continue;
		if (bucket->slot[i] & CV_FLOW_SECOND)
			other->displaced--;
		else
			bucket->displaced++;
		bucket->signature[i] = 0;
		return true;
	}
	return false;
}

int cv_flow_table_add(
	struct cv_flow_table *table, uint64_t hash, uint32_t index, unsigned direction)
{
	uint16_t signature = cv_flow_signature(hash);
	uint32_t slot = CV_FLOW_SLOT(index, direction);
	uint32_t first = cv_flow_first_bucket(table, hash);
	uint32_t second = cv_flow_other_bucket(first, signature, table->buckets_count);

	for (unsigned steps = 0;; steps++) {
		if (put(&table->buckets[first], signature, slot))
			return 0;
		if (second != first &&
			put(&table->buckets[second], signature, slot | CV_FLOW_SECOND)) {
			table->buckets[first].displaced++;
			return 0;
		}
		if (steps == STEPS_MAX)
			return -ENOSPC;
		if (!make_room(table, first, steps))
			make_room(table, second, steps);
	}
}

static bool take_from(struct cv_flow_bucket *bucket, uint16_t signature, uint32_t slot)
{
	uint32_t same = cv_flow_bucket_match(bucket, signature);

	for (; same != 0; same &= same - 1) {
		unsigned place = (unsigned)__builtin_ctz(same);

		if (bucket->slot[place] != slot)
			continue;
		bucket->signature[place] = 0;
		return true;
	}
	return false;
}

void cv_flow_table_remove(
	struct cv_flow_table *table, uint64_t hash, uint32_t index, unsigned direction)
{
	uint16_t signature = cv_flow_signature(hash);
	uint32_t slot = CV_FLOW_SLOT(index, direction);
	uint32_t first = cv_flow_first_bucket(table, hash);
	uint32_t second = cv_flow_other_bucket(first, signature, table->buckets_count);

	if (take_from(&table->buckets[first], signature, slot))
		return;
	if (take_from(&table->buckets[second], signature, slot | CV_FLOW_SECOND))
		table->buckets[first].displaced--;
}

static uint32_t find_in(const struct cv_flow_table *table, const struct cv_flow_bucket *bucket,
	const union cv_flow_key *key, uint16_t signature)
{
	uint32_t same = cv_flow_bucket_match(bucket, signature);

	for (; same != 0; same &= same - 1) {
		uint32_t slot = bucket->slot[__builtin_ctz(same)] & ~CV_FLOW_SECOND;

		if (cv_flow_has_key(cv_flow_at(table, slot >> 1), slot & 1, table->v6, key))
			return slot;
	}
	return CV_FLOW_NONE;
}

uint32_t cv_flow_table_find(
	const struct cv_flow_table *table, const union cv_flow_key *key, uint64_t hash)
{
	uint16_t signature = cv_flow_signature(hash);
	uint32_t first = cv_flow_first_bucket(table, hash);
	const struct cv_flow_bucket *bucket = &table->buckets[first];
	uint32_t slot = find_in(table, bucket, key, signature);

	if (CV_LIKELY(slot != CV_FLOW_NONE || bucket->displaced == 0))
		return slot;
	bucket = &table->buckets[cv_flow_other_bucket(first, signature, table->buckets_count)];
	return find_in(table, bucket, key, signature);
}
