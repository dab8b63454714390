// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/mappings.h"

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "flow/hash.h"
#include "nf/nat/count.h"
#include "nf/nat/memory.h"

#define LINE 64

enum { BY_KEY, BY_EXTERNAL };

// What memory begins with, once it is frozen.
struct frozen {
	struct cv_flow_secret secret;
	uint32_t free;
	uint64_t count;
};

#define PENDING 8 // mappings

struct pending {
	uint32_t index; // CV_NAT_NONE: none
	uint32_t *bucket; // by external endpoint
};

struct cv_nat_mappings {
	struct cv_flow_secret secret;
	uint32_t max;
	uint32_t free; // the first of those that are
	uint32_t bucket_mask;
	// The last that were added, in a ring: each is put into its bucket by external endpoint when
	// so many more are there, and nobody has waited for that line of memory.
	struct pending pending[PENDING];
	uint32_t next_pending;
	uint64_t count;
	uint32_t *bucket[2];
	struct cv_nat_mapping *mapping;
	struct frozen *frozen;
};

static size_t buckets_for(uint32_t max)
{
	size_t buckets = 1;

	while (buckets < max)
		buckets *= 2;
	return buckets;
}

static size_t bytes_of(size_t count, size_t bytes)
{
	return RTE_ALIGN_CEIL(count * bytes, LINE);
}

size_t cv_nat_mappings_bytes(uint32_t max)
{
	return bytes_of(1, sizeof(struct frozen)) + bytes_of(max, sizeof(struct cv_nat_mapping)) +
	       2 * bytes_of(buckets_for(max), sizeof(uint32_t));
}

struct cv_nat_mappings *cv_nat_mappings_create(uint32_t max, void *memory)
{
	struct cv_nat_mappings *mappings =
		aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*mappings), LINE));
	const size_t buckets = buckets_for(max);

	if (mappings == NULL)
		return NULL;
	memset(mappings, 0, sizeof(*mappings));
	mappings->max = max;
	for (unsigned i = 0; i < PENDING; i++)
		mappings->pending[i].index = CV_NAT_NONE;
	mappings->bucket_mask = (uint32_t)(buckets - 1);
	mappings->frozen = memory;
	mappings->mapping = RTE_PTR_ADD(memory, bytes_of(1, sizeof(struct frozen)));
	mappings->bucket[0] =
		RTE_PTR_ADD(mappings->mapping, bytes_of(max, sizeof(*mappings->mapping)));
	mappings->bucket[1] = RTE_PTR_ADD(mappings->bucket[0], bytes_of(buckets, sizeof(uint32_t)));
	if (cv_flow_secret_make(&mappings->secret) != 0) {
		free(mappings);
		return NULL;
	}
	for (unsigned i = 0; i < 2; i++)
		memset(mappings->bucket[i], 0xff, buckets * sizeof(*mappings->bucket[i]));
	for (uint32_t i = 0; i < max; i++)
		mappings->mapping[i].next[0] = i + 1 < max ? i + 1 : CV_NAT_NONE;
	return mappings;
}

void cv_nat_mappings_destroy(struct cv_nat_mappings *mappings)
{
	free(mappings);
}

static void link_to(
	struct cv_nat_mappings *mappings, uint32_t index, unsigned which, uint32_t *bucket)
{
	mappings->mapping[index].next[which] = *bucket;
	*bucket = index;
}

static void link_pending(struct cv_nat_mappings *mappings, struct pending *pending)
{
	if (pending->index != CV_NAT_NONE)
		link_to(mappings, pending->index, BY_EXTERNAL, pending->bucket);
	pending->index = CV_NAT_NONE;
}

void cv_nat_mappings_settle(struct cv_nat_mappings *mappings)
{
	for (unsigned i = 0; i < PENDING; i++)
		link_pending(mappings, &mappings->pending[i]);
}

void cv_nat_mappings_freeze(struct cv_nat_mappings *mappings)
{
	cv_nat_mappings_settle(mappings);
	*mappings->frozen = (struct frozen){
		.secret = mappings->secret,
		.free = mappings->free,
		.count = mappings->count,
	};
}

static bool is_index(const struct cv_nat_mappings *mappings, uint32_t index)
{
	return index == CV_NAT_NONE || index < mappings->max;
}

bool cv_nat_mappings_lead_inside(const struct cv_nat_mappings *mappings)
{
	bool inside = true;

	for (uint32_t i = 0; i < mappings->max; i++)
		inside &= is_index(mappings, mappings->mapping[i].next[0]) &&
			  is_index(mappings, mappings->mapping[i].next[1]);
	for (size_t i = 0; i <= mappings->bucket_mask; i++)
		inside &= is_index(mappings, mappings->bucket[0][i]) &&
			  is_index(mappings, mappings->bucket[1][i]);
	return inside;
}

static uint32_t *bucket_by_key(const struct cv_nat_mappings *mappings, const struct cv_nat_key *key)
{
	const uint64_t hash = cv_flow_hash(&mappings->secret, key, sizeof(*key));

	return &mappings->bucket[BY_KEY][hash & mappings->bucket_mask];
}

static uint32_t *bucket_by_external(
	const struct cv_nat_mappings *mappings, rte_be32_t address, rte_be16_t port, uint8_t proto)
{
	struct cv_nat_key key;
	uint64_t hash;

	cv_flow_key_write(&key, address, 0, port, 0, proto);
	hash = cv_flow_hash(&mappings->secret, &key, sizeof(key));
	return &mappings->bucket[BY_EXTERNAL][hash & mappings->bucket_mask];
}

static uint32_t *bucket_of(const struct cv_nat_mappings *mappings,
	const struct cv_nat_mapping *mapping, unsigned which)
{
	return which == BY_KEY ? bucket_by_key(mappings, &mapping->key)
			       : bucket_by_external(mappings, mapping->external,
					 mapping->external_port, mapping->key.proto);
}

bool cv_nat_mappings_thaw(struct cv_nat_mappings *mappings)
{
	const struct frozen *frozen = mappings->frozen;

	if (!is_index(mappings, frozen->free) || frozen->count > mappings->max ||
		!cv_flow_secret_is_alike(&mappings->secret, &frozen->secret))
		return false;
	mappings->secret = frozen->secret;
	mappings->free = frozen->free;
	mappings->count = frozen->count;
	return true;
}

struct cv_nat_mapping *cv_nat_mapping_at(struct cv_nat_mappings *mappings, uint32_t index)
{
	return &mappings->mapping[index];
}

uint32_t cv_nat_mappings_by_key(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *key)
{
	uint32_t *bucket;

	return cv_nat_mappings_find(mappings, key, &bucket);
}

uint32_t cv_nat_mappings_find(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *key, uint32_t **bucket)
{
	uint32_t at;

	*bucket = bucket_by_key(mappings, key);
	at = **bucket;
	for (unsigned i = 0; i < CV_NAT_CHAIN_MAX && at != CV_NAT_NONE; i++) {
		if (memcmp(&mappings->mapping[at].key, key, sizeof(*key)) == 0)
			return at;
		at = mappings->mapping[at].next[BY_KEY];
	}
	return CV_NAT_NONE;
}

static bool is_external(
	const struct cv_nat_mapping *mapping, rte_be32_t address, rte_be16_t port, uint8_t proto)
{
	return mapping->external == address && mapping->external_port == port &&
	       mapping->key.proto == proto;
}

uint32_t cv_nat_mappings_by_external(
	const struct cv_nat_mappings *mappings, rte_be32_t address, rte_be16_t port, uint8_t proto)
{
	uint32_t at;

	for (unsigned i = 0; i < PENDING; i++) {
		at = mappings->pending[i].index;
		if (at != CV_NAT_NONE && is_external(&mappings->mapping[at], address, port, proto))
			return at;
	}
	at = *bucket_by_external(mappings, address, port, proto);
	for (unsigned i = 0; i < CV_NAT_CHAIN_MAX && at != CV_NAT_NONE; i++) {
		if (is_external(&mappings->mapping[at], address, port, proto))
			return at;
		at = mappings->mapping[at].next[BY_EXTERNAL];
	}
	return CV_NAT_NONE;
}

// A mapping may lie on two lines.
static void expect_mapping(const struct cv_nat_mappings *mappings, uint32_t index)
{
	const struct cv_nat_mapping *mapping = &mappings->mapping[index];

	rte_prefetch0(mapping);
	rte_prefetch0((const uint8_t *)(mapping + 1) - 1);
}

void cv_nat_mappings_expect(const struct cv_nat_mappings *mappings, const struct cv_nat_key *keys,
	unsigned n, const uint32_t **bucket)
{
	if (mappings->free != CV_NAT_NONE)
		expect_mapping(mappings, mappings->free);
	for (unsigned i = 0; i < n; i++) {
		bucket[i] = bucket_by_key(mappings, &keys[i]);
		rte_prefetch0(bucket[i]);
	}
}

void cv_nat_mappings_expect_first(
	const struct cv_nat_mappings *mappings, const uint32_t *const *bucket, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (*bucket[i] != CV_NAT_NONE)
			expect_mapping(mappings, *bucket[i]);
}

bool cv_nat_mappings_have_room(const struct cv_nat_mappings *mappings, unsigned n)
{
	const uint32_t first = mappings->free;

	return first != CV_NAT_NONE && (n < 2 || mappings->mapping[first].next[0] != CV_NAT_NONE);
}

uint32_t cv_nat_mappings_add(
	struct cv_nat_mappings *mappings, const struct cv_nat_mapping *mapping, bool by_key)
{
	return cv_nat_mappings_add_to(
		mappings, mapping, by_key ? bucket_by_key(mappings, &mapping->key) : NULL);
}

uint32_t cv_nat_mappings_add_to(
	struct cv_nat_mappings *mappings, const struct cv_nat_mapping *mapping, uint32_t *bucket)
{
	const uint32_t index = mappings->free;

	mappings->free = mappings->mapping[index].next[0];
	if (mappings->free != CV_NAT_NONE)
		expect_mapping(mappings, mappings->free);
	mappings->mapping[index] = *mapping;
	if (bucket != NULL)
		link_to(mappings, index, BY_KEY, bucket);
	if (!mapping->is_permit) {
		struct pending *pending = &mappings->pending[mappings->next_pending++ % PENDING];

		link_pending(mappings, pending);
		pending->index = index;
		pending->bucket = bucket_of(mappings, mapping, BY_EXTERNAL);
		rte_prefetch0(pending->bucket);
	}
	cv_nat_count(&mappings->count, 1);
	return index;
}

static void unlink_from(struct cv_nat_mappings *mappings, uint32_t index, unsigned which)
{
	struct cv_nat_mapping *mapping = &mappings->mapping[index];
	uint32_t *from = bucket_of(mappings, mapping, which);

	for (unsigned i = 0; *from != index; i++) {
		if (i == CV_NAT_CHAIN_MAX || *from == CV_NAT_NONE) // another process wrote it
			return;
		from = &mappings->mapping[*from].next[which];
	}
	*from = mapping->next[which];
}

void cv_nat_mappings_expect_remove(
	const struct cv_nat_mappings *mappings, const uint32_t *indices, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect_mapping(mappings, indices[i]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned which = 0; which < 2; which++)
			rte_prefetch0(bucket_of(mappings, &mappings->mapping[indices[i]], which));
}

// It is in no bucket by external endpoint yet, and will be in none. False: it is.
static bool take_pending(struct cv_nat_mappings *mappings, uint32_t index)
{
	for (unsigned i = 0; i < PENDING; i++)
		if (mappings->pending[i].index == index) {
			mappings->pending[i].index = CV_NAT_NONE;
			return true;
		}
	return false;
}

void cv_nat_mappings_remove(struct cv_nat_mappings *mappings, uint32_t index)
{
	struct cv_nat_mapping *mapping = &mappings->mapping[index];

	unlink_from(mappings, index, BY_KEY);
	if (!mapping->is_permit && !take_pending(mappings, index))
		unlink_from(mappings, index, BY_EXTERNAL);
	mapping->next[0] = mappings->free;
	mappings->free = index;
	cv_nat_count(&mappings->count, -1);
}

struct cv_nat_mapping cv_nat_mappings_before(const void *before, uint32_t index)
{
	struct cv_nat_mapping mapping;

	memcpy(&mapping,
		RTE_PTR_ADD(before, bytes_of(1, sizeof(struct frozen)) + index * sizeof(mapping)),
		sizeof(mapping));
	return mapping;
}

uint64_t cv_nat_mappings_count(const struct cv_nat_mappings *mappings)
{
	return cv_nat_counted(&mappings->count);
}
