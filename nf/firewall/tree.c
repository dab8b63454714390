// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdlib.h>

#include <rte_prefetch.h>

#include "nf/firewall/tree.h"
#include "nf/firewall/tree_layout.h"
#include "packet/compiler.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

void cv_firewall_tree_free(struct cv_firewall_tree *tree)
{
	if (tree == NULL)
		return;
	free(tree->memory);
	free(tree);
}

bool cv_firewall_tree_is_cut_well(const struct cv_firewall_tree *tree)
{
	return tree->roots <= 1;
}

struct key {
	uint32_t word[WORDS];
} __attribute__((aligned(16)));

#ifdef __SSE4_1__

static CV_INLINE void key_set(struct key *key, const struct cv_tuple_ipv4 *tuple)
{
	const __m128i host = _mm_set_epi8(14, 15, 12, 13, 8, 9, 10, 11, 4, 5, 6, 7, 3, 2, 1, 0);

	_mm_store_si128(
		(__m128i *)key, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)tuple), host));
}

// The entry's result if it is passed, else 0.
static CV_INLINE uint32_t test(const struct key *key, const struct packed *entry)
{
	const __m128i x = _mm_load_si128((const __m128i *)key);
	const __m128i value = _mm_load_si128((const __m128i *)entry->value);
	const __m128i mask = _mm_load_si128((const __m128i *)entry->mask);
	const __m128i ports = _mm_sub_epi16(x, value);
	const __m128i passed = _mm_blend_epi16(_mm_cmpeq_epi32(_mm_and_si128(x, mask), value),
		_mm_cmpeq_epi16(_mm_min_epu16(ports, mask), ports), 0xc0);

	return _mm_movemask_epi8(passed) == 0xffff ? entry->mask[0] >> 8 : 0;
}

#else

static CV_INLINE void key_set(struct key *key, const struct cv_tuple_ipv4 *tuple)
{
	*key = (struct key){{tuple->proto, rte_be_to_cpu_32(tuple->src),
		rte_be_to_cpu_32(tuple->dst),
		rte_be_to_cpu_16(tuple->sport) | (uint32_t)rte_be_to_cpu_16(tuple->dport) << 16}};
}

static CV_INLINE bool within(const struct key *key, const struct packed *entry, unsigned shift)
{
	const uint16_t port = (uint16_t)(key->word[PORTS] >> shift);

	return (uint16_t)(port - (uint16_t)(entry->value[PORTS] >> shift)) <=
	       (uint16_t)(entry->mask[PORTS] >> shift);
}

static CV_INLINE uint32_t test(const struct key *key, const struct packed *entry)
{
	bool passed = within(key, entry, 0) && within(key, entry, 16);

	for (unsigned i = 0; i < PORTS; i++)
		passed &= (key->word[i] & entry->mask[i]) == entry->value[i];
	return passed ? entry->mask[0] >> 8 : 0;
}

#endif

static CV_INLINE bool fields_pass(
	const struct packed_fields *wanted, const struct cv_firewall_fields *fields)
{
	const unsigned length = CV_FIREWALL_FIELD_LENGTH;

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		if (i != length && (fields->word[i] & wanted->mask[i]) != wanted->value[i])
			return false;
	return (uint16_t)(fields->word[length] - wanted->value[length]) <= wanted->mask[length];
}

// fields: NULL, or the packet's.
static CV_INLINE uint32_t search_leaf(const struct cv_firewall_tree *tree, uint64_t leaf,
	const struct key *key, const struct cv_firewall_fields *fields)
{
	size_t at = leaf >> 32;
	uint32_t passed = 0;

	for (unsigned left = leaf >> 8 & 0xff; left > 0 && passed == 0; left--, at += CHUNK) {
		uint32_t first = test(key, &tree->entry[at]);
		uint32_t second = test(key, &tree->entry[at + 1]);

		if (fields != NULL) {
			if (first != 0 && !fields_pass(&tree->fields[at], fields))
				first = 0;
			if (second != 0 && !fields_pass(&tree->fields[at + 1], fields))
				second = 0;
		}
		passed = first != 0 ? first : second;
	}
	return passed;
}

// The leaves of one tree, their first lines on the way to the cache.
static CV_INLINE void find_leaves(const struct cv_firewall_tree *tree, const struct root *root,
	const struct key *key, uint64_t *at, uint32_t n)
{
	const uint64_t *next[CV_FIREWALL_LOOKUP_MAX];

	for (uint32_t i = 0; i < n; i++) {
		at[i] = root->node;
		next[i] = &at[i];
	}
	for (unsigned level = 0; level < root->depth; level++) {
		uint64_t nodes = 0;

		for (uint32_t i = 0; i < n; i++) {
			const uint64_t node = *next[i];
			const uint32_t bits = key[i].word[node >> 1 & 3] >> (node >> 8 & 31);
			const uint64_t *slot =
				&tree->slot[(node >> 32) +
					    (bits & ((1u << (node >> 16 & 0xff)) - 1))];

			at[i] = node;
			nodes |= node;
			next[i] = node & IS_NODE ? slot : &at[i]; // a leaf stays where it is
			rte_prefetch0(next[i]);
		}
		if (!(nodes & IS_NODE))
			break;
	}
	for (uint32_t i = 0; i < n; i++) {
		at[i] = *next[i];
		rte_prefetch0(&tree->entry[at[i] >> 32]);
	}
}

// A tree of so few entries that it is one leaf.
static CV_INLINE void lookup_leaf(const struct cv_firewall_tree *tree,
	const struct cv_tuple_ipv4 *tuple, const struct cv_firewall_fields *fields,
	const uint8_t *place, uint32_t *result, uint32_t n)
{
	const uint64_t leaf = tree->root[0].node;

	for (uint32_t i = 0; i < n; i++) {
		struct key key;

		key_set(&key, &tuple[place[i]]);
		result[i] =
			search_leaf(tree, leaf, &key, fields != NULL ? &fields[place[i]] : NULL);
	}
}

static CV_INLINE void lookup(const struct cv_firewall_tree *tree, const struct cv_tuple_ipv4 *tuple,
	const struct cv_firewall_fields *fields, const uint8_t *place, uint32_t *result, uint32_t n)
{
	struct key key[CV_FIREWALL_LOOKUP_MAX];
	uint64_t at[CV_FIREWALL_LOOKUP_MAX];

	if (tree->roots == 1 && tree->root[0].depth == 0) {
		lookup_leaf(tree, tuple, fields, place, result, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		key_set(&key[i], &tuple[place[i]]);
		result[i] = 0;
	}
	for (unsigned group = 0; group < tree->roots; group++) {
		find_leaves(tree, &tree->root[group], key, at, n);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t passed = search_leaf(
				tree, at[i], &key[i], fields != NULL ? &fields[place[i]] : NULL);

			// The smaller is the first; 0, none, is the largest.
			result[i] = RTE_MIN(result[i] - 1, passed - 1) + 1;
		}
	}
}

CV_HOT void cv_firewall_tree_lookup(const struct cv_firewall_tree *tree,
	const struct cv_tuple_ipv4 *tuple, const struct cv_firewall_fields *fields,
	const uint8_t *place, uint32_t *result, uint32_t n)
{
	if (tree->fields != NULL)
		lookup(tree, tuple, fields, place, result, n);
	else
		lookup(tree, tuple, NULL, place, result, n);
}
