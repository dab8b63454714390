// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "port/eal_tsc.h"
#include "tests/support/test_dir.h"

#define LATE_NS 4000000 // that each sleep ends too late: a share of 1 in 50 takes 200 ms to reach

static unsigned sleeps, sleeps_at_start;

// Stands before the C library's: a machine on which others run when we should wake.
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	const struct timespec late = {.tv_nsec = LATE_NS};

	sleeps++;
	if (syscall(SYS_clock_nanosleep, clock, flags, time, left) != 0)
		return errno;
	return syscall(SYS_clock_nanosleep, clock, 0, &late, NULL) == 0 ? 0 : errno;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void the_frequency_is_known(void **state)
{
	(void)state;
	assert_true(cv_eal_tsc_error() < 0.01);
}

static void who_wakes_late_measures_longer(void **state)
{
	(void)state;
	assert_true(sleeps_at_start >= 200 / 14);
}

// Once the EAL runs, who sleeps for 100 ms sleeps as long.
static void others_sleep_as_long_as_they_say(void **state)
{
	const struct timespec tenth = {.tv_nsec = 100000000}, bad = {.tv_nsec = -1};
	const double begin = now_s();

	(void)state;
	assert_int_equal(nanosleep(&tenth, NULL), 0);
	assert_true(now_s() - begin >= 0.1);
	assert_int_equal(nanosleep(&bad, NULL), -1);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_frequency_is_known),
		cmocka_unit_test(who_wakes_late_measures_longer),
		cmocka_unit_test(others_sleep_as_long_as_they_say),
	};
	char *arguments[] = {"test_eal_tsc", "--no-huge", "-m", "64", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=lib.*:error", NULL};
	static char folder[] = "/tmp/convoy-test-XXXXXX";
	int rc;

	if (test_dir_make(folder) != 0 || setenv("XDG_RUNTIME_DIR", folder, 1) != 0 ||
		cv_eal_init((int)RTE_DIM(arguments) - 1, arguments) < 0)
		return 1;
	sleeps_at_start = sleeps;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eal_cleanup();
	return rc;
}
