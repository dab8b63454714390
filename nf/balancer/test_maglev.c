// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Balance and disruption of the tables (Eisenbud et al., "Maglev", NSDI 2016). Balance is the most
// that a table can have; the bounds of disruption are ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nf/balancer/maglev.h"

#define BACKENDS 1000

static struct cv_maglev_backend backends[BACKENDS];
static char names[BACKENDS][16];

static void make_backends(void)
{
	for (unsigned i = 0; i < BACKENDS; i++) {
		snprintf(names[i], sizeof(names[i]), "10.0.%u.%u", i >> 8, i & 255);
		backends[i] = (struct cv_maglev_backend){names[i], strlen(names[i]), 1};
	}
}

static uint16_t *fill(uint32_t size)
{
	uint16_t *table = malloc(size * sizeof(*table));

	assert_non_null(table);
	assert_int_equal(cv_maglev_fill(table, size, backends, BACKENDS), 0);
	return table;
}

static const uint32_t sizes[] = {65537, 655373};

// Each has as many places as any other, or one more: less than 1 % apart where the size is over a
// hundred times the number of backends.
static void shares_are_equal(void **state)
{
	for (unsigned s = 0; s < 2; s++) {
		unsigned count[BACKENDS] = {0};
		uint16_t *table;

		make_backends();
		table = fill(sizes[s]);
		for (uint32_t i = 0; i < sizes[s]; i++)
			count[table[i]]++;
		for (unsigned i = 0; i < BACKENDS; i++)
			assert_in_range(count[i], sizes[s] / BACKENDS, sizes[s] / BACKENDS + 1);
		free(table);
	}
}

// Places that change though their backend stayed, when so many leave at once.
static double disrupted(uint32_t size, unsigned leave)
{
	uint16_t *before, *after;
	uint32_t moved = 0;

	make_backends();
	before = fill(size);
	for (unsigned i = 0; i < leave; i++)
		backends[(i * 37 + 5) % BACKENDS].weight = 0;
	after = fill(size);
	for (uint32_t i = 0; i < size; i++) {
		assert_int_not_equal(backends[after[i]].weight, 0);
		moved += before[i] != after[i] && backends[before[i]].weight != 0;
	}
	free(before);
	free(after);
	return (double)moved / size;
}

static void few_others_move_when_one_leaves(void **state)
{
	const double small = disrupted(65537, 1), large = disrupted(655373, 1);

	print_message("moved beside the leaving one's: %.3f %% of 65537, %.3f %% of 655373\n",
		100 * small, 100 * large);
	assert_true(small < 0.02);
	assert_true(large < 0.02);
}

static void the_larger_table_moves_less(void **state)
{
	const double small = disrupted(65537, 50), large = disrupted(655373, 50);

	print_message("moved when 5 %% leave: %.2f %% of 65537, %.2f %% of 655373\n", 100 * small,
		100 * large);
	assert_true(large < small);
	assert_true(small < 0.25);
}

static void shares_are_by_weight(void **state)
{
	static const uint32_t weights[] = {1, 2, 3, 10, 0};
	double count[5] = {0};
	uint16_t *table = malloc(65537 * sizeof(*table));

	make_backends();
	for (unsigned i = 0; i < 5; i++)
		backends[i].weight = weights[i];
	assert_int_equal(cv_maglev_fill(table, 65537, backends, 5), 0);
	for (uint32_t i = 0; i < 65537; i++)
		count[table[i]]++;
	for (unsigned i = 0; i < 5; i++)
		assert_true(count[i] * 16 / 65537 > weights[i] - 0.01 &&
			    count[i] * 16 / 65537 < weights[i] + 0.01);
	assert_int_equal(cv_maglev_fill(table, 65537, &backends[4], 1), 0);
	assert_int_equal(table[0], CV_MAGLEV_NONE);
	assert_int_equal(table[65536], CV_MAGLEV_NONE);
	free(table);
}

static void sizes_are_primes(void **state)
{
	assert_true(cv_maglev_is_size(2));
	assert_true(cv_maglev_is_size(65537));
	assert_true(cv_maglev_is_size(655373));
	assert_false(cv_maglev_is_size(0));
	assert_false(cv_maglev_is_size(1));
	assert_false(cv_maglev_is_size(65536));
	assert_false(cv_maglev_is_size(65539 * 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_equal),
		cmocka_unit_test(few_others_move_when_one_leaves),
		cmocka_unit_test(the_larger_table_moves_less),
		cmocka_unit_test(shares_are_by_weight),
		cmocka_unit_test(sizes_are_primes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
