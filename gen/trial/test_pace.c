// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>

#include <cmocka.h>

#include "gen/trial/pace.h"

#define HZ 1e9 // a tick is a nanosecond

static void first_packets_are_due_when_they_should(void **state)
{
	static const struct {
		const char *what;
		double rate;
		uint32_t burst;
		double on_ns, off_ns;
		uint64_t due[8];
	} rows[] = {
		{"evenly", 1e6, 1, 0, 0, {0, 1000, 2000, 3000, 4000, 5000, 6000, 7000}},
		{"a rate that is no whole number of ticks", 3e8, 1, 0, 0,
			{0, 3, 6, 10, 13, 16, 20, 23}},
		{"bursts of 3 keep the average", 1e6, 3, 0, 0,
			{0, 0, 0, 3000, 3000, 3000, 6000, 6000}},
		{"half of the time, twice as fast", 1e6, 1, 2000, 2000,
			{0, 500, 1000, 1500, 4000, 4500, 5000, 5500}},
		{"bursts in periods", 1e6, 2, 2000, 2000,
			{0, 0, 1000, 1000, 4000, 4000, 5000, 5000}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gen_pace pace = gen_pace_rate(
			HZ, rows[i].rate, rows[i].burst, rows[i].on_ns, rows[i].off_ns);

		print_message("%s\n", rows[i].what);
		for (size_t j = 0; j < 8; j++) {
			assert_int_equal(gen_pace_due(&pace), rows[i].due[j]);
			gen_pace_advance(&pace);
		}
	}
}

static void a_second_holds_as_many_as_the_rate_says(void **state)
{
	static const double rates[] = {1, 7, 999, 123456, 1e6, 14880952, 25e6};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (uint32_t burst = 1; burst <= 32; burst *= 32) {
			struct gen_pace pace = gen_pace_rate(2596138111, rates[i], burst, 0, 0);
			uint64_t count = 0;

			for (; gen_pace_due(&pace) < 2596138111; count++)
				gen_pace_advance(&pace);
			// Never one more (within its burst); the rounding costs less than 1 ppm.
			assert_true((double)count <= rates[i] + burst - 1);
			assert_true((double)count >= rates[i] * (1 - 1e-6) - burst);
		}
}

static void on_off_keeps_its_average(void **state)
{
	struct gen_pace pace = gen_pace_rate(HZ, 100000, 1, 100e3, 900e3);
	uint64_t count = 0;

	for (; gen_pace_due(&pace) < (uint64_t)HZ; count++) {
		assert_true(gen_pace_due(&pace) % 1000000 < 100000);
		gen_pace_advance(&pace);
	}
	assert_in_range(count, 99000, 101000);
}

static void replays_gaps_round_and_round(void **state)
{
	static const uint64_t gaps[] = {10 << 16, 0, 5 << 16};
	static const uint64_t due[] = {0, 10, 10, 15, 25, 25, 30};
	struct gen_pace pace = gen_pace_gaps(gaps, 3);

	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++) {
		assert_int_equal(gen_pace_due(&pace), due[i]);
		gen_pace_advance(&pace);
	}
}

static void many_at_once_are_as_one_by_one(void **state)
{
	static const uint64_t gaps[] = {10 << 16, 0, 5 << 16};
	const struct gen_pace paces[] = {
		gen_pace_rate(HZ, 3e8, 1, 0, 0),
		gen_pace_rate(HZ, 1e6, 3, 0, 0),
		gen_pace_rate(HZ, 1e6, 1, 2000, 2000),
		gen_pace_gaps(gaps, 3),
	};

	for (size_t i = 0; i < sizeof(paces) / sizeof(paces[0]); i++) {
		struct gen_pace one = paces[i], passed = paces[i], skipped = paces[i];

		for (uint64_t now = 0; now < 20000; now += 1 + now / 7) {
			uint64_t count = 0;

			for (; gen_pace_due(&one) <= now && gen_pace_due(&one) < 15000; count++)
				gen_pace_advance(&one);
			assert_int_equal(gen_pace_pass(&passed, now, 15000), count);
			gen_pace_skip(&skipped, count);
			assert_memory_equal(&passed, &one, sizeof(one));
			assert_memory_equal(&skipped, &one, sizeof(one));
		}
		assert_true(gen_pace_due(&one) >= 15000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_packets_are_due_when_they_should),
		cmocka_unit_test(a_second_holds_as_many_as_the_rate_says),
		cmocka_unit_test(on_off_keeps_its_average),
		cmocka_unit_test(replays_gaps_round_and_round),
		cmocka_unit_test(many_at_once_are_as_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
