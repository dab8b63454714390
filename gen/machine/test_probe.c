// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// A probe of another core, on which a device polls.

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/machine/clock.h"
#include "gen/machine/probe.h"

// The first two cores that this process may use; false: there is only one.
static bool two_cores(uint32_t cores[2])
{
	cpu_set_t allowed;
	uint32_t count = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (uint32_t i = 0; i < CPU_SETSIZE && count < 2; i++)
		if (CPU_ISSET(i, &allowed))
			cores[count++] = i;
	return count == 2;
}

static void stay_on(uint32_t core)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(core, &only);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(only), &only), 0);
}

// A device's poll loop, which leaves its core to nobody of its own accord.
static void *poll_forever(void *argument)
{
	const _Atomic bool *stop = argument;

	while (!atomic_load_explicit(stop, memory_order_relaxed))
		;
	return NULL;
}

static void a_line_goes_there_and_back(void **state)
{
	_Atomic bool stop = false;
	uint32_t cores[2];
	pthread_t device;

	if (!two_cores(cores))
		skip();
	stay_on(cores[1]); // the device inherits it
	assert_int_equal(pthread_create(&device, NULL, poll_forever, &stop), 0);
	struct gen_probe *probe = gen_probe_start(cores[1]);
	assert_non_null(probe);
	stay_on(cores[0]);
	// A busy machine may keep us waiting, but not for ever.
	const uint64_t deadline = gen_now_ns() + 60000000000ull;
	uint32_t known = 0;

	while (known < 3) {
		uint64_t took = 0;
		const uint64_t begin = gen_ticks();
		const struct gen_probe_result result = gen_probe_run(probe, &took);
		const uint64_t all = gen_ticks() - begin;

		assert_true(took <= all);
		assert_int_equal(result.round_trip > 0, result.our_work > 0);
		assert_int_equal(result.round_trip > 0, result.device_work > 0);
		if (result.round_trip > 0) {
			// No two cores are nearer to each other than a load and a store, or so far away
			// that the median of batches of eight took longer than half of them did.
			assert_in_range(result.round_trip, 10, all / (8 * 8));
			// Nor can a core do more than eight such things in a tick, or take longer than all.
			assert_in_range(result.our_work, 6 * 1000 / 8, all / 8);
			assert_in_range(result.device_work, 6 * 1000 / 8, all / 8);
			known++;
		}
		assert_true(gen_now_ns() < deadline);
	}
	gen_probe_stop(probe);
	atomic_store(&stop, true);
	pthread_join(device, NULL);
}

static void a_core_that_is_not_there_has_no_probe(void **state)
{
	assert_null(gen_probe_start(CPU_SETSIZE - 1));
	assert_int_equal(errno, EINVAL);
	gen_probe_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_goes_there_and_back),
		cmocka_unit_test(a_core_that_is_not_there_has_no_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
