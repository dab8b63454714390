// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Who takes the node again and again, as the main thread does while queues move, keeps nobody from it.
// And nobody waits by the wall clock, which somebody may set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "daemon/running.h"

#define WAITERS 4
#define ROUNDS 20

static struct cv_node node;
static unsigned holds; // by who takes it again and again
static bool ends; // atomic

// A wall clock a day ahead of the one that the kernel goes by: who waits until a time of it waits a day.
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += 86400;
	return rc;
}

static void *hold(void *unused)
{
	const struct timespec hold = {.tv_nsec = 2000000};

	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		if (cv_running_take() == NULL)
			return NULL;
		holds++;
		nanosleep(&hold, NULL);
		cv_running_give(); // and takes it at once again
	}
	return NULL;
}

static void *use(void *unused)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	unsigned *most = unused;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const unsigned before = __atomic_load_n(&holds, __ATOMIC_RELAXED);
		unsigned waited;

		if (cv_running_take() == NULL)
			return NULL;
		waited = holds - before;
		*most = waited > *most ? waited : *most;
		cv_running_give();
		nanosleep(&pause, NULL); // the other one has it meanwhile
	}
	return NULL;
}

static void who_waits_is_next(void **state)
{
	unsigned most[WAITERS] = {0};
	pthread_t holder, waiters[WAITERS];

	cv_running_set(&node);
	assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&waiters[i], NULL, use, &most[i]), 0);
	for (unsigned i = 0; i < WAITERS; i++)
		pthread_join(waiters[i], NULL);
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	pthread_join(holder, NULL);
	// Before a waiter has said that it waits it may have lost its core.
	for (unsigned i = 0; i < WAITERS; i++)
		assert_in_range(most[i], 0, 8);
	cv_running_set(NULL);
	assert_null(cv_running_take());
}

static void *change(void *begun)
{
	*(bool *)begun = cv_running_begin_change();
	if (*(bool *)begun)
		cv_running_end_change();
	return NULL;
}

static void one_changes_it_at_a_time(void **state)
{
	bool begun = true;
	pthread_t other;

	assert_true(cv_running_begin_change());
	assert_false(cv_running_try_change());
	assert_int_equal(pthread_create(&other, NULL, change, &begun), 0);
	pthread_join(other, NULL); // after its patience
	assert_false(begun);
	assert_false(cv_running_try_change()); // it has not taken it from us
	assert_int_equal(pthread_create(&other, NULL, change, &begun), 0);
	cv_running_end_change();
	pthread_join(other, NULL);
	assert_true(begun);
	assert_true(cv_running_try_change());
	cv_running_end_change();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_is_next),
		cmocka_unit_test(one_changes_it_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
