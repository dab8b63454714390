// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Written so that the compiler makes vectors of it: tuples are turned from rows into columns,
// then the inner loop has no branch and works on neighbours.
#include "compiler.h"
#include "firewall_scan.h"

// Tuples as columns of one 32-bit word each.
struct columns {
	uint32_t word[CV_FIREWALL_IPV6_WORDS][CV_FIREWALL_LOOKUP_MAX];
	int32_t sport[CV_FIREWALL_LOOKUP_MAX]; // signed: vectors compare signed numbers at once
	int32_t dport[CV_FIREWALL_LOOKUP_MAX];
};

// Writes the entry's result where it passes. With ranged constant, the loop has no branch.
static CV_INLINE void scan_entry(const struct columns *columns,
	const struct cv_firewall_entry *entry, unsigned words, bool ranged,
	uint32_t *restrict result, uint32_t n)
{
	const struct cv_firewall_entry test = *entry;

	for (uint32_t i = 0; i < n; i++) {
		int32_t sport = columns->sport[i], dport = columns->dport[i];
		uint32_t miss = 0;
		bool hit;

		for (unsigned k = 0; k < (ranged ? words - 1 : words); k++)
			miss |= (columns->word[k][i] & test.mask[k]) ^ test.value[k];
		hit = miss == 0;
		if (ranged) // & and not &&, which would branch
			hit = hit & (sport >= test.sport.first) & (sport <= test.sport.last) &
			      (dport >= test.dport.first) & (dport <= test.dport.last);
		result[i] = hit ? test.result : result[i];
	}
}

static CV_INLINE void scan(const struct cv_firewall_entry *entry, uint32_t count,
	const uint32_t *tuple, unsigned words, uint32_t *restrict result, uint32_t n)
{
	struct columns columns;

	n = (n + 7) & ~7u; // whole vectors: what is behind n means nothing
	for (uint32_t i = 0; i < n; i++, tuple += words) {
		for (unsigned k = 0; k < words; k++)
			columns.word[k][i] = tuple[k];
		columns.sport[i] = rte_be_to_cpu_16((uint16_t)tuple[words - 1]);
		columns.dport[i] = rte_be_to_cpu_16((uint16_t)(tuple[words - 1] >> 16));
		result[i] = 0;
	}
	// From the last entry to the first: what stays is the first that passes.
	for (const struct cv_firewall_entry *e = entry + count; e-- > entry;) {
		if (e->ranged) // the same entries every time: predicted
			scan_entry(&columns, e, words, true, result, n);
		else
			scan_entry(&columns, e, words, false, result, n);
	}
}

CV_HOT void cv_firewall_scan_ipv4(const struct cv_firewall_entry *entry, uint32_t count,
	const struct cv_tuple_ipv4 *tuple, uint32_t *result, uint32_t n)
{
	scan(entry, count, (const uint32_t *)tuple, CV_FIREWALL_IPV4_WORDS, result, n);
}

CV_HOT void cv_firewall_scan_ipv6(const struct cv_firewall_entry *entry, uint32_t count,
	const struct cv_tuple_ipv6 *tuple, uint32_t *result, uint32_t n)
{
	scan(entry, count, (const uint32_t *)tuple, CV_FIREWALL_IPV6_WORDS, result, n);
}
