// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_log.h"

static const uint64_t began_ns = 12345;

// n lines at one moment: the first ones are written, then one word, then nothing.
static void flood(struct cv_log_limit *limit, uint64_t at_ns, unsigned n, uint64_t left_out)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t before;
		enum cv_log_what what = cv_log_limit(limit, at_ns, &before);

		assert_int_equal(before, i == 0 ? left_out : 0);
		assert_int_equal(what, i < CV_LOG_LIMIT_LINES    ? CV_LOG_LINE
				       : i == CV_LOG_LIMIT_LINES ? CV_LOG_LAST
								 : CV_LOG_NOTHING);
	}
}

static void a_flood_writes_few_lines(void **state)
{
	struct cv_log_limit limit = {0};

	flood(&limit, began_ns, 1000, 0);
	// The next period says how many were left out, once, and goes on.
	flood(&limit, began_ns + CV_LOG_LIMIT_NS, 17, 1000 - CV_LOG_LIMIT_LINES);
	flood(&limit, began_ns + 3 * CV_LOG_LIMIT_NS, 1, 17 - CV_LOG_LIMIT_LINES);
	flood(&limit, began_ns + 9 * CV_LOG_LIMIT_NS, 1, 0);
}

static void a_period_is_as_long_as_it_says(void **state)
{
	struct cv_log_limit limit = {0};
	uint64_t before;

	flood(&limit, began_ns, 11, 0);
	assert_int_equal(
		cv_log_limit(&limit, began_ns + CV_LOG_LIMIT_NS - 1, &before), CV_LOG_NOTHING);
	assert_int_equal(before, 0);
	assert_int_equal(cv_log_limit(&limit, began_ns + CV_LOG_LIMIT_NS, &before), CV_LOG_LINE);
	assert_int_equal(before, 2);
}

static void few_lines_are_all_written(void **state)
{
	struct cv_log_limit limit = {0};

	for (unsigned i = 0; i < 100; i++) {
		uint64_t before;

		assert_int_equal(
			cv_log_limit(&limit, i * CV_LOG_LIMIT_NS / CV_LOG_LIMIT_LINES, &before),
			CV_LOG_LINE);
		assert_int_equal(before, 0);
	}
}

// A port whose peer comes and goes in a loop.
static void a_port_writes_few_lines(void **state)
{
	static const char last[] = "port p: 10 lines in 10 s: more are only counted\n";
	struct cv_port port = {.name = "p"};
	FILE *const file = tmpfile();
	const int before = dup(STDERR_FILENO);
	char line[128] = "";
	unsigned lines = 0;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	for (unsigned i = 0; i < 1000; i++)
		cv_port_log(&port, "peer %s", i % 2 == 0 ? "connected" : "gone");
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (lines++ == 0)
			assert_string_equal(line, "port p: peer connected\n");
	assert_int_equal(lines, CV_LOG_LIMIT_LINES + 1);
	assert_string_equal(line, last);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_writes_few_lines),
		cmocka_unit_test(a_period_is_as_long_as_it_says),
		cmocka_unit_test(few_lines_are_all_written),
		cmocka_unit_test(a_port_writes_few_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
