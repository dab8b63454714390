// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_vect.h>

#define CV_FIREWALL_SCAN_RUN cv_firewall_scan_run_baseline
#include "nf/firewall/scan_run.h"

// A test's number while the kinds are not yet one behind the other.
#define NUMBER(kind, index) ((kind)*CV_FIREWALL_TESTS_MAX + (index))

struct builder {
	struct cv_firewall_scan *scan;
	struct cv_firewall_test test[CV_FIREWALL_KINDS][CV_FIREWALL_TESTS_MAX];
	uint32_t tests[CV_FIREWALL_KINDS];
	uint32_t listed;
};

static bool can_baseline(void)
{
	return true;
}

#ifdef CV_HAVE_AVX2
static bool can_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
	       rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256;
}
#endif

const struct cv_firewall_scan_run_of cv_firewall_scan_runs[] = {
#ifdef CV_HAVE_AVX2
	{"avx2", can_avx2, cv_firewall_scan_run_avx2},
#endif
	{"baseline", can_baseline, cv_firewall_scan_run_baseline},
	{NULL, NULL, NULL},
};

cv_firewall_scan_run *cv_firewall_scan_run_best(void)
{
	const struct cv_firewall_scan_run_of *of = cv_firewall_scan_runs;

	while (!of->can())
		of++;
	return of->run;
}

// Puts a test on the list of the last entry, and among the tests unless it is there. Returns 0 or
// -E2BIG.
static int add_test(
	struct builder *builder, enum cv_firewall_kind kind, unsigned row, uint16_t a, uint16_t b)
{
	struct cv_firewall_test test = {a * 0x10001u, b * 0x10001u, row};
	struct cv_firewall_test *known = builder->test[kind];
	uint32_t i;

	for (i = 0; i < builder->tests[kind]; i++)
		if (memcmp(&known[i], &test, sizeof(test)) == 0)
			break;
	if (i == builder->tests[kind]) {
		if (i == CV_FIREWALL_TESTS_MAX)
			return -E2BIG;
		known[i] = test;
		builder->tests[kind]++;
	}
	builder->scan->list[builder->listed++] = (uint16_t)NUMBER(kind, i);
	return 0;
}

static int add_range(struct builder *builder, unsigned row, const struct cv_firewall_ports *range)
{
	if (range->first == 0 && range->last == UINT16_MAX)
		return 0;
	if (range->first == range->last)
		return add_test(builder, CV_FIREWALL_EXACT, row, 0, range->first);
	return add_test(builder, CV_FIREWALL_RANGE, row, range->first,
		(uint16_t)(range->last - range->first));
}

static int add_bits(struct builder *builder, unsigned row, uint16_t value, uint16_t mask)
{
	if (mask == 0)
		return 0;
	if (mask == UINT16_MAX)
		return add_test(builder, CV_FIREWALL_EXACT, row, 0, value);
	return add_test(builder, CV_FIREWALL_MASKED, row, mask, value);
}

static int add_fields(struct builder *builder, const struct cv_firewall_entry *entry)
{
	int rc =
		add_range(builder, CV_FIREWALL_FIELD_ROW(CV_FIREWALL_FIELD_LENGTH), &entry->length);

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS && rc == 0; i++)
		rc = add_bits(builder, CV_FIREWALL_FIELD_ROW(i), entry->field[i].value,
			entry->field[i].mask);
	return rc;
}

static int add_entry(struct builder *builder, const struct cv_firewall_entry *entry, unsigned words)
{
	struct cv_firewall_all *all = &builder->scan->entry[builder->scan->count++];
	uint16_t value[2 * CV_FIREWALL_IPV6_WORDS], mask[2 * CV_FIREWALL_IPV6_WORDS];
	unsigned ports = 2 * words - 2;
	int rc = 0;

	memcpy(value, entry->value, sizeof(value));
	memcpy(mask, entry->mask, sizeof(mask));
	if (((const uint8_t *)mask)[0] == UINT8_MAX) // the class: the byte beside it is 0
		mask[0] = UINT16_MAX;
	*all = (struct cv_firewall_all){
		.first = builder->listed,
		.denies = CV_FIREWALL_DENIES(entry->result) ? UINT64_MAX : 0,
		.rule = CV_FIREWALL_RULE(entry->result),
	};
	for (unsigned word = 0; word < ports && rc == 0; word++)
		rc = add_bits(builder, CV_FIREWALL_ROW(word), value[word], mask[word]);
	if (rc == 0)
		rc = add_range(builder, CV_FIREWALL_ROW(ports), &entry->sport);
	if (rc == 0)
		rc = add_range(builder, CV_FIREWALL_ROW(ports + 1), &entry->dport);
	if (rc == 0)
		rc = add_fields(builder, entry);
	while ((builder->listed - all->first) % 4 != 0)
		builder->scan->list[builder->listed++] = NUMBER(CV_FIREWALL_KINDS, 0);
	all->fours = (builder->listed - all->first) / 4;
	return rc;
}

// Puts the kinds one behind the other. Returns 0 or -E2BIG.
static int join_kinds(struct builder *builder)
{
	struct cv_firewall_scan *scan = builder->scan;
	uint32_t before[CV_FIREWALL_KINDS + 1] = {[CV_FIREWALL_KINDS] = CV_FIREWALL_TESTS_MAX};
	uint32_t at = 0;

	for (unsigned kind = 0; kind < CV_FIREWALL_KINDS; kind++) {
		before[kind] = at;
		if (at + builder->tests[kind] > CV_FIREWALL_TESTS_MAX)
			return -E2BIG;
		memcpy(&scan->test[at], builder->test[kind],
			builder->tests[kind] * sizeof(scan->test[0]));
		at += builder->tests[kind];
		scan->end[kind] = at;
	}
	for (uint32_t i = 0; i < builder->listed; i++)
		scan->list[i] = (uint16_t)(before[scan->list[i] / CV_FIREWALL_TESTS_MAX] +
					   scan->list[i] % CV_FIREWALL_TESTS_MAX);
	return 0;
}

int cv_firewall_scan_make(struct cv_firewall_scan **scan, const struct cv_firewall_entry *entry,
	uint32_t count, unsigned words)
{
	struct builder *builder = calloc(1, sizeof(*builder));
	struct cv_firewall_scan *made = calloc(1, sizeof(*made));
	int rc = 0;

	if (builder == NULL || made == NULL) {
		free(builder);
		free(made);
		return -ENOMEM;
	}
	builder->scan = made;
	made->entry = calloc(count + 1, sizeof(*made->entry));
	made->list = calloc(
		(size_t)count + 1, (2 * words + CV_FIREWALL_FIELDS + 3) * sizeof(*made->list));
	if (made->entry == NULL || made->list == NULL)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = add_entry(builder, &entry[i], words);
	if (rc == 0)
		rc = join_kinds(builder);
	free(builder);
	if (rc != 0) {
		cv_firewall_scan_free(made);
		return rc;
	}
	*scan = made;
	return 0;
}

void cv_firewall_scan_free(struct cv_firewall_scan *scan)
{
	if (scan == NULL)
		return;
	free(scan->entry);
	free(scan->list);
	free(scan);
}
