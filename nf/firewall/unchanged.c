// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/firewall/unchanged.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t mix(uint32_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x01000193;
	return hash;
}

static uint32_t hash_of(const struct cv_firewall_rule *rule)
{
	uint32_t hash = mix(0x811c9dc5, rule->src.address.bytes, sizeof(rule->src.address.bytes));

	hash = mix(hash, rule->dst.address.bytes, sizeof(rule->dst.address.bytes));
	hash = mix(hash, &rule->src.length, 1);
	hash = mix(hash, &rule->dst.length, 1);
	hash = mix(hash, &rule->sport, sizeof(rule->sport));
	return mix(hash, &rule->dport, sizeof(rule->dport));
}

// Every member.
static bool are_same(const struct cv_firewall_rule *a, const struct cv_firewall_rule *b)
{
	return a->family == b->family && a->allow == b->allow && a->proto == b->proto &&
	       cv_prefix_compare(&a->src, &b->src) == 0 &&
	       cv_prefix_compare(&a->dst, &b->dst) == 0 && a->sport.first == b->sport.first &&
	       a->sport.last == b->sport.last && a->dport.first == b->dport.first &&
	       a->dport.last == b->dport.last &&
	       memcmp(&a->extra, &b->extra, sizeof(a->extra)) == 0 && // it has no gaps
	       (a->name == b->name ||
		       (a->name != NULL && b->name != NULL && strcmp(a->name, b->name) == 0));
}

// For each row of rules' counters the row + 1 of the same one among others, or 0: there is none. The
// caller frees it; NULL: no memory.
static uint32_t *same_rows(
	const struct cv_firewall_rules *rules, const struct cv_firewall_rules *others)
{
	uint32_t *same = calloc(rules->count + 1, sizeof(*same));
	uint32_t *bucket, *next; // of the others: index + 1
	size_t buckets = 1;

	while (buckets < others->count)
		buckets *= 2;
	bucket = calloc(buckets, sizeof(*bucket));
	next = calloc(others->count + 1, sizeof(*next));
	if (same == NULL || bucket == NULL || next == NULL) {
		free(same);
		same = NULL;
		goto out;
	}
	for (size_t i = others->count; i-- > 0;) {
		uint32_t *first = &bucket[hash_of(&others->rule[i]) & (buckets - 1)];

		next[i] = *first;
		*first = (uint32_t)(i + 1);
	}
	same[0] = 1;
	for (size_t i = 0; i < rules->count; i++) {
		uint32_t *at = &bucket[hash_of(&rules->rule[i]) & (buckets - 1)];

		while (*at != 0 && !are_same(&rules->rule[i], &others->rule[*at - 1]))
			at = &next[*at - 1];
		if (*at == 0)
			continue;
		same[i + 1] = *at + 1;
		*at = next[*at - 1]; // each once
	}
out:
	free(bucket);
	free(next);
	return same;
}

void cv_firewall_inherit_counters(struct cv_row_counters *counters,
	const struct cv_firewall_rules *rules, const struct cv_row_counters *before,
	const struct cv_firewall_rules *others)
{
	uint32_t *same = same_rows(rules, others);

	cv_row_counters_inherit(counters, before, same);
	free(same);
}
