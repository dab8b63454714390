// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/mappings.h"

#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

#include "chain/nf.h"
#include "nf/nat/count.h"
#include "nf/nat/memory.h"
#include "flow/hash.h"

enum { BY_KEY, BY_EXTERNAL };

struct cv_nat_mappings {
	struct cv_flow_secret secret;
	uint32_t max;
	uint32_t free; // the first of those that are
	// The last that was added: it is put into its bucket by external endpoint when the next one
	// is added, and nobody has waited for that line of memory. CV_NAT_NONE: none.
	uint32_t unlinked;
	uint32_t bucket_mask;
	uint64_t count;
	uint32_t *bucket[2];
	struct cv_nat_mapping *mapping;
};

struct cv_nat_mappings *cv_nat_mappings_create(uint32_t max)
{
	struct cv_nat_mappings *mappings = aligned_alloc(64, (sizeof(*mappings) + 63) / 64 * 64);
	size_t buckets = 1;

	if (mappings == NULL)
		return NULL;
	memset(mappings, 0, sizeof(*mappings));
	while (buckets < max)
		buckets *= 2;
	mappings->max = max;
	mappings->unlinked = CV_NAT_NONE;
	mappings->bucket_mask = (uint32_t)(buckets - 1);
	mappings->mapping = cv_nat_zalloc(max, sizeof(*mappings->mapping));
	for (unsigned i = 0; i < 2; i++) {
		mappings->bucket[i] = cv_nat_zalloc(buckets, sizeof(*mappings->bucket[i]));
		if (mappings->bucket[i] != NULL)
			memset(mappings->bucket[i], 0xff, buckets * sizeof(*mappings->bucket[i]));
	}
	if (mappings->mapping == NULL || mappings->bucket[0] == NULL ||
		mappings->bucket[1] == NULL || cv_flow_secret_make(&mappings->secret) != 0) {
		cv_nat_mappings_destroy(mappings);
		return NULL;
	}
	for (uint32_t i = 0; i < max; i++)
		mappings->mapping[i].next[0] = i + 1 < max ? i + 1 : CV_NAT_NONE;
	return mappings;
}

void cv_nat_mappings_destroy(struct cv_nat_mappings *mappings)
{
	if (mappings == NULL)
		return;
	free(mappings->mapping);
	free(mappings->bucket[0]);
	free(mappings->bucket[1]);
	free(mappings);
}

struct cv_nat_mapping *cv_nat_mapping_at(struct cv_nat_mappings *mappings, uint32_t index)
{
	return &mappings->mapping[index];
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

uint32_t cv_nat_mappings_by_key(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *key)
{
	uint32_t at = *bucket_by_key(mappings, key);

	while (at != CV_NAT_NONE && memcmp(&mappings->mapping[at].key, key, sizeof(*key)) != 0)
		at = mappings->mapping[at].next[BY_KEY];
	return at;
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

	if (mappings->unlinked != CV_NAT_NONE &&
		is_external(&mappings->mapping[mappings->unlinked], address, port, proto))
		return mappings->unlinked;
	at = *bucket_by_external(mappings, address, port, proto);
	while (at != CV_NAT_NONE && !is_external(&mappings->mapping[at], address, port, proto))
		at = mappings->mapping[at].next[BY_EXTERNAL];
	return at;
}

void cv_nat_mappings_expect(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *keys, unsigned n)
{
	const uint32_t *bucket[CV_BURST_MAX];

	if (mappings->free != CV_NAT_NONE)
		rte_prefetch0(&mappings->mapping[mappings->free]);
	for (unsigned i = 0; i < n; i++) {
		bucket[i] = bucket_by_key(mappings, &keys[i]);
		rte_prefetch0(bucket[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (*bucket[i] != CV_NAT_NONE)
			rte_prefetch0(&mappings->mapping[*bucket[i]]);
}

bool cv_nat_mappings_have_room(const struct cv_nat_mappings *mappings)
{
	return mappings->free != CV_NAT_NONE;
}

static uint32_t *bucket_of(const struct cv_nat_mappings *mappings,
	const struct cv_nat_mapping *mapping, unsigned which)
{
	return which == BY_KEY ? bucket_by_key(mappings, &mapping->key)
			       : bucket_by_external(mappings, mapping->external,
					 mapping->external_port, mapping->key.proto);
}

static void link_to(struct cv_nat_mappings *mappings, uint32_t index, unsigned which)
{
	struct cv_nat_mapping *mapping = &mappings->mapping[index];
	uint32_t *bucket = bucket_of(mappings, mapping, which);

	mapping->next[which] = *bucket;
	*bucket = index;
}

uint32_t cv_nat_mappings_add(
	struct cv_nat_mappings *mappings, const struct cv_nat_mapping *mapping, bool by_key)
{
	const uint32_t index = mappings->free;

	mappings->free = mappings->mapping[index].next[0];
	if (mappings->free != CV_NAT_NONE)
		rte_prefetch0(&mappings->mapping[mappings->free]);
	mappings->mapping[index] = *mapping;
	if (by_key)
		link_to(mappings, index, BY_KEY);
	if (!mapping->is_permit) {
		if (mappings->unlinked != CV_NAT_NONE)
			link_to(mappings, mappings->unlinked, BY_EXTERNAL);
		mappings->unlinked = index;
		rte_prefetch0(bucket_of(mappings, mapping, BY_EXTERNAL));
	}
	cv_nat_count(&mappings->count, 1);
	return index;
}

static void unlink_from(struct cv_nat_mappings *mappings, uint32_t index, unsigned which)
{
	struct cv_nat_mapping *mapping = &mappings->mapping[index];
	uint32_t *from = bucket_of(mappings, mapping, which);

	while (*from != index)
		from = &mappings->mapping[*from].next[which];
	*from = mapping->next[which];
}

void cv_nat_mappings_expect_remove(
	const struct cv_nat_mappings *mappings, const uint32_t *indices, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&mappings->mapping[indices[i]]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned which = 0; which < 2; which++)
			rte_prefetch0(bucket_of(mappings, &mappings->mapping[indices[i]], which));
}

void cv_nat_mappings_remove(struct cv_nat_mappings *mappings, uint32_t index)
{
	struct cv_nat_mapping *mapping = &mappings->mapping[index];

	unlink_from(mappings, index, BY_KEY);
	if (mappings->unlinked == index)
		mappings->unlinked = CV_NAT_NONE;
	else if (!mapping->is_permit)
		unlink_from(mappings, index, BY_EXTERNAL);
	mapping->next[0] = mappings->free;
	mappings->free = index;
	cv_nat_count(&mappings->count, -1);
}

uint64_t cv_nat_mappings_count(const struct cv_nat_mappings *mappings)
{
	return cv_nat_counted(&mappings->count);
}
