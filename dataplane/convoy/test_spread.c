// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "convoy/spread.h"

#define NEXT_HOPS 256u

static struct cv_spread_ranks *ranks[NEXT_HOPS];

static int make_ranks(void **state)
{
	for (unsigned i = 0; i < NEXT_HOPS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "fw-%u", i);
		ranks[i] = malloc(sizeof(*ranks[i]));
		if (ranks[i] == NULL)
			return -1;
		cv_spread_rank(ranks[i], cv_spread_id(name));
	}
	return 0;
}

static int free_ranks(void **state)
{
	for (unsigned i = 0; i < NEXT_HOPS; i++)
		free(ranks[i]);
	return 0;
}

static void fill(struct cv_spread *spread, const struct cv_spread_member *members, unsigned count)
{
	*spread = (struct cv_spread){.group.members_count = (uint16_t)count};
	memcpy(spread->group.members, members, count * sizeof(*members));
	cv_spread_fill(spread, ranks);
}

static unsigned share(const struct cv_spread *spread, uint16_t next_hop)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CV_SPREAD_BUCKETS; i++)
		count += spread->bucket[i] == next_hop;
	return count;
}

// Each member's buckets are in proportion to its weight, within five standard deviations.
static void shares_are_by_weight(void **state)
{
	static const struct {
		const char *description;
		unsigned count;
		uint16_t weights[4]; // repeated
	} rows[] = {
		{"one", 1, {1, 1, 1, 1}},
		{"two equal ones", 2, {1, 1, 1, 1}},
		{"three of four times as much", 4, {4, 4, 4, 1}},
		{"the least and the most", 2, {1, 256, 1, 256}},
		{"as many as there may be", CV_SPREAD_MEMBERS_MAX, {1, 2, 3, 4}},
	};
	struct cv_spread spread;

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct cv_spread_member members[CV_SPREAD_MEMBERS_MAX];
		double sum = 0;

		print_message("  %s\n", rows[row].description);
		for (unsigned i = 0; i < rows[row].count; i++) {
			members[i] = (struct cv_spread_member){
				(uint16_t)(3 * i), rows[row].weights[i % 4]};
			sum += members[i].weight;
		}
		fill(&spread, members, rows[row].count);
		for (unsigned i = 0; i < rows[row].count; i++) {
			const double expected = CV_SPREAD_BUCKETS * members[i].weight / sum;
			const double off = share(&spread, members[i].next_hop) - expected;

			assert_true(off * off <= 25 * expected);
		}
	}
}

// From one table to another buckets move only to a member, or only from it.
static void expect_moved(
	const struct cv_spread *before, const struct cv_spread *after, int to, int from)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < CV_SPREAD_BUCKETS; i++) {
		if (before->bucket[i] == after->bucket[i])
			continue;
		moved++;
		if (to >= 0)
			assert_int_equal(after->bucket[i], to);
		if (from >= 0)
			assert_int_equal(before->bucket[i], from);
	}
	assert_true(moved > 0);
}

static void a_change_moves_its_share_alone(void **state)
{
	static const struct cv_spread_member all[] = {{7, 1}, {8, 3}, {9, 2}, {200, 1}},
					     without[] = {{7, 1}, {8, 3}, {200, 1}},
					     heavier[] = {{7, 1}, {8, 3}, {9, 5}, {200, 1}};
	struct cv_spread a, b, c;

	fill(&a, all, 4);
	fill(&b, without, 3);
	fill(&c, heavier, 4);
	expect_moved(&a, &b, -1, 9);
	expect_moved(&b, &a, 9, -1);
	expect_moved(&a, &c, 9, -1);
	expect_moved(&c, &a, -1, 9);
	assert_int_equal(share(&b, 9), 0);
}

// The same members make the same table, whatever was before.
static void a_table_follows_from_its_members(void **state)
{
	static const struct cv_spread_member all[] = {{1, 1}, {2, 1}, {3, 1}};
	struct cv_spread a, b;

	fill(&a, all, 3);
	fill(&b, all, 2);
	fill(&b, all, 3);
	assert_memory_equal(a.bucket, b.bucket, sizeof(a.bucket));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_by_weight),
		cmocka_unit_test(a_change_moves_its_share_alone),
		cmocka_unit_test(a_table_follows_from_its_members),
	};

	return cmocka_run_group_tests(tests, make_ranks, free_ranks);
}
