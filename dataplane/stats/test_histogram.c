// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stats/histogram.h"

static void buckets_hold_their_values(void **state)
{
	for (uint32_t digits = 1; digits <= 4; digits++) {
		struct cv_histogram *h = cv_histogram_create(digits, 1ull << 40);
		const uint64_t linear = 2ull << h->half_bits;
		uint64_t previous = 0;

		assert_non_null(h);
		for (uint64_t value = 0; value < 1ull << 40; value += 1 + value / 777) {
			const size_t bucket = cv_histogram_bucket(h, value);
			const uint64_t low = cv_histogram_lowest(h, bucket);
			const uint64_t high = cv_histogram_highest(h, bucket);

			assert_true(bucket < h->buckets);
			assert_true(bucket >= previous);
			assert_in_range(value, low, high);
			assert_int_equal(cv_histogram_bucket(h, low), bucket);
			assert_int_equal(cv_histogram_bucket(h, high), bucket);
			// The promise of HdrHistogram: linear at first, then relative.
			const uint64_t width = high - low + 1;
			assert_true(value < linear ? width == 1 : width <= value * 2 / linear);
			previous = bucket;
		}
		free(h);
	}
}

static void percentiles(void **state)
{
	static const struct {
		const char *what;
		double percentile;
		uint64_t value;
	} rows[] = {
		{"nothing is below the first", 0, 1},
		{"median", 50, 500},
		{"rounds to the nearest count", 99.94, 999},
		{"highest of the bucket, not its lowest", 99.97, 1000},
		{"never above the largest value", 100, 1000},
	};
	struct cv_histogram *h = cv_histogram_create(3, 1000000);

	assert_int_equal(cv_histogram_percentile(h, 50), 0);
	for (uint64_t value = 1; value <= 1000; value++)
		cv_histogram_record(h, value);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].what);
		assert_int_equal(cv_histogram_percentile(h, rows[i].percentile), rows[i].value);
	}
	assert_int_equal(h->count, 1000);
	assert_int_equal(h->sum, 500500);
	cv_histogram_clear(h);
	assert_int_equal(h->count, 0);
	cv_histogram_record_n(h, 5000, 3);
	// 5000 shares a bucket of width 4 with 5000 to 5003.
	assert_int_equal(cv_histogram_highest(h, cv_histogram_bucket(h, 5000)), 5003);
	assert_int_equal(cv_histogram_percentile(h, 50), 5000);
	free(h);
}

static void too_large_values_are_clipped_and_counted(void **state)
{
	struct cv_histogram *h = cv_histogram_create(2, 1000);

	cv_histogram_record(h, 1000);
	cv_histogram_record(h, 1001);
	cv_histogram_record(h, UINT64_MAX);
	assert_int_equal(h->clipped, 2);
	assert_int_equal(h->count, 3);
	assert_int_equal(h->max, UINT64_MAX);
	assert_int_equal(h->counts[h->buckets - 1], 3);
	free(h);
}

static void merges_only_what_fits(void **state)
{
	struct cv_histogram *a = cv_histogram_create(3, 1000000);
	struct cv_histogram *b = cv_histogram_create(3, 1000000);
	struct cv_histogram *other = cv_histogram_create(2, 1000000);

	cv_histogram_record(a, 7);
	cv_histogram_record(b, 3);
	cv_histogram_record(b, 70000);
	assert_int_equal(cv_histogram_merge(a, b), 0);
	assert_int_equal(a->count, 3);
	assert_int_equal(a->min, 3);
	assert_int_equal(a->max, 70000);
	assert_int_equal(a->sum, 70010);
	assert_int_equal(cv_histogram_merge(a, other), -EINVAL);
	assert_int_equal(a->count, 3);
	free(a);
	free(b);
	free(other);
}

static void refuses_bad_layouts(void **state)
{
	static const struct {
		uint32_t digits;
		uint64_t highest;
	} rows[] = {{0, 100}, {5, 100}, {3, 1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = 0;
		assert_null(cv_histogram_create(rows[i].digits, rows[i].highest));
		assert_int_equal(errno, EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_hold_their_values),
		cmocka_unit_test(percentiles),
		cmocka_unit_test(too_large_values_are_clipped_and_counted),
		cmocka_unit_test(merges_only_what_fits),
		cmocka_unit_test(refuses_bad_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
