// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gen/trial/account.h"

#define END UINT32_MAX // of a list of sequence numbers

struct expected {
	uint64_t received, lost, duplicated, reordered, stale;
	uint64_t bursts[4]; // runs of 1, 2, 3 and 4 losses
};

static void expect(const struct gen_account *account, const struct expected *expected)
{
	assert_int_equal(account->received, expected->received);
	assert_int_equal(account->lost, expected->lost);
	assert_int_equal(account->duplicated, expected->duplicated);
	assert_int_equal(account->reordered, expected->reordered);
	assert_int_equal(account->stale, expected->stale);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(account->bursts->counts[i + 1], expected->bursts[i]);
}

static void short_stories(void **state)
{
	static const uint32_t flows_ab[] = {0, 1}; // even numbers, odd numbers
	static const struct {
		const char *what;
		uint32_t offered;
		const uint32_t *flow_of;
		uint32_t period;
		uint32_t arrivals[12];
		struct expected expected;
	} rows[] = {
		{"nothing offered", 0, NULL, 1, {END}, {0}},
		{"nothing arrives", 3, NULL, 1, {END}, {.lost = 3, .bursts = {0, 0, 1}}},
		{"all in order", 4, NULL, 1, {0, 1, 2, 3, END}, {.received = 4}},
		{"first lost", 3, NULL, 1, {1, 2, END}, {.received = 2, .lost = 1, .bursts = {1}}},
		{"last two lost", 4, NULL, 1, {0, 1, END},
			{.received = 2, .lost = 2, .bursts = {0, 1}}},
		{"runs of 1 and 2", 6, NULL, 1, {0, 2, 5, END},
			{.received = 3, .lost = 3, .bursts = {1, 1}}},
		{"a run that ends at the end joins what was missing before it", 5, NULL, 1,
			{0, 1, END}, {.received = 2, .lost = 3, .bursts = {0, 0, 1}}},
		{"one twice", 3, NULL, 1, {0, 1, 1, 2, END}, {.received = 3, .duplicated = 1}},
		{"one three times, late", 3, NULL, 1, {0, 1, 2, 1, 1, END},
			{.received = 3, .duplicated = 2}},
		{"neighbours swapped", 3, NULL, 1, {1, 0, 2, END}, {.received = 3, .reordered = 1}},
		{"one overtaken by three", 4, NULL, 1, {1, 2, 3, 0, END},
			{.received = 4, .reordered = 1}},
		{"a late copy is a copy, not reordered", 4, NULL, 1, {1, 0, 0, 2, 3, END},
			{.received = 4, .reordered = 1, .duplicated = 1}},
		{"swapped, but of two flows", 4, NULL, 2, {1, 0, 3, 2, END}, {.received = 4}},
		{"overtaken by its own flow", 4, NULL, 2, {2, 1, 0, 3, END},
			{.received = 4, .reordered = 1}},
		{"the same by a table", 4, flows_ab, 2, {2, 1, 0, 3, END},
			{.received = 4, .reordered = 1}},
		{"its own flow's later packet was lost", 4, NULL, 2, {3, 0, END},
			{.received = 2, .lost = 2, .bursts = {0, 1}}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gen_account *account = gen_account_create(rows[i].flow_of, rows[i].period);

		print_message("%s\n", rows[i].what);
		assert_non_null(account);
		for (const uint32_t *seq = rows[i].arrivals; *seq != END; seq++)
			gen_account_seq(account, *seq);
		gen_account_close(account, rows[i].offered);
		expect(account, &rows[i].expected);
		assert_int_equal(account->received + account->lost, rows[i].offered);
		gen_account_destroy(account);
	}
}

// Every tenth lost over several windows: nothing is counted twice as the window moves on.
static void long_trials_move_the_window(void **state)
{
	const uint32_t offered = 3 * GEN_ACCOUNT_WINDOW + 12345;
	struct gen_account *account = gen_account_create(NULL, 1);
	const struct expected expected = {
		.received = offered - (offered + 9) / 10,
		.lost = (offered + 9) / 10,
		.bursts = {(offered + 9) / 10},
	};

	for (uint32_t seq = 0; seq < offered; seq++)
		if (seq % 10 != 0)
			gen_account_seq(account, seq);
	gen_account_close(account, offered);
	expect(account, &expected);
	gen_account_destroy(account);
}

static void a_gap_longer_than_the_window(void **state)
{
	const uint32_t offered = 3 * GEN_ACCOUNT_WINDOW;
	struct gen_account *account = gen_account_create(NULL, 1);

	gen_account_seq(account, 0);
	gen_account_seq(account, offered - 1);
	gen_account_close(account, offered);
	assert_int_equal(account->lost, offered - 2);
	assert_int_equal(account->bursts->count, 1);
	assert_int_equal(account->bursts->max, offered - 2);
	gen_account_destroy(account);
}

static void later_than_the_window_is_stale(void **state)
{
	struct gen_account *account = gen_account_create(NULL, 1);

	for (uint32_t seq = 1; seq <= GEN_ACCOUNT_WINDOW + 1; seq++)
		gen_account_seq(account, seq);
	gen_account_seq(account, 0);
	assert_int_equal(account->stale, 1);
	assert_int_equal(account->lost, 1);
	gen_account_destroy(account);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_stories),
		cmocka_unit_test(long_trials_move_the_window),
		cmocka_unit_test(a_gap_longer_than_the_window),
		cmocka_unit_test(later_than_the_window_is_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
