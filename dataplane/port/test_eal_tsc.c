// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "port/eal_tsc.h"
#include "tests/support/test_dir.h"

#define NS_PER_S 1000000000
#define LOST_NS 50000000
#define DPDK_SLEEPS_NS 100000000

static bool lose_core; // at the next look at the clock
static unsigned lost;
static long longest_sleep, longest_at_start;

// Stands before the C library's: who has read the clock loses the core before the next instruction.
int clock_gettime(clockid_t clock, struct timespec *now)
{
	const struct timespec away = {.tv_nsec = LOST_NS};
	const int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (lose_core && clock == CLOCK_MONOTONIC_RAW) {
		lose_core = false;
		lost++;
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &away, NULL);
	}
	return rc;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	longest_sleep = RTE_MAX(longest_sleep, time->tv_sec * NS_PER_S + time->tv_nsec);
	return syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void a_core_lost_at_the_wrong_moment_does_no_harm(void **state)
{
	uint64_t (*dpdks)(void) = NULL;
	uint64_t begin;

	(void)state;
	if (lost == 0) {
		print_message("skipped: the processor tells its TSC's frequency, so DPDK measures "
			      "none\n");
		skip();
	}
	*(void **)&dpdks = dlsym(RTLD_NEXT, "rte_get_tsc_hz");
	assert_non_null(dpdks);
	assert_true((double)dpdks() < 0.5 * (double)rte_get_tsc_hz());
	begin = now_ns();
	rte_delay_us_block(10000);
	assert_true(now_ns() - begin > 9990000);
}

static void the_frequency_is_right(void **state)
{
	const uint64_t first = rte_get_tsc_hz();
	double error = 1;

	(void)state;
	for (unsigned tries = 0; tries < 20 && error > 0.001; tries++) {
		const uint64_t tsc = rte_rdtsc(), ns = now_ns();
		uint64_t ticks, took;

		usleep(10000); // what is measured: 20 times at most
		ticks = rte_rdtsc() - tsc;
		took = now_ns() - ns;
		error = (double)first * (double)took / NS_PER_S / (double)ticks - 1;
		error = error < 0 ? -error : error;
	}
	assert_true(error <= 0.001);
	assert_int_equal(rte_get_tsc_hz(), first);
}

// Once the EAL runs, who sleeps for 100 ms sleeps as long.
static void others_sleep_as_long_as_they_say(void **state)
{
	const struct timespec tenth = {.tv_nsec = DPDK_SLEEPS_NS}, bad = {.tv_nsec = -1};
	const uint64_t begin = now_ns();

	(void)state;
	assert_true(longest_at_start < DPDK_SLEEPS_NS);
	assert_int_equal(nanosleep(&tenth, NULL), 0);
	assert_true(now_ns() - begin >= DPDK_SLEEPS_NS - 1000);
	assert_int_equal(nanosleep(&bad, NULL), -1);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_core_lost_at_the_wrong_moment_does_no_harm),
		cmocka_unit_test(the_frequency_is_right),
		cmocka_unit_test(others_sleep_as_long_as_they_say),
	};
	char *arguments[] = {"test_eal_tsc", "--no-huge", "-m", "64", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=lib.*:error", NULL};
	static char folder[] = "/tmp/convoy-test-XXXXXX";
	int rc;

	if (test_dir_make(folder) != 0 || setenv("XDG_RUNTIME_DIR", folder, 1) != 0)
		return 1;
	lose_core = true;
	if (cv_eal_init((int)RTE_DIM(arguments) - 1, arguments) < 0)
		return 1;
	lose_core = false;
	longest_at_start = longest_sleep;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rte_eal_cleanup();
	return rc;
}
