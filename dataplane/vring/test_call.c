// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "vring/call.h"

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

static void each_call_is_counted(void **state)
{
	const int fd = eventfd(0, EFD_NONBLOCK);

	assert_int_equal(cv_call_begin(), 0);
	for (int i = 0; i < 10000; i++)
		assert_true(cv_call(fd));
	assert_int_equal(count_of(fd), 10000);
	close(fd);
}

// Whoever shares it made it block, and filled it: write(2) would wait for ever.
static void a_full_eventfd_that_blocks_stops_nobody(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	const int fd = eventfd(0, 0);

	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	for (int i = 0; i < 1000; i++)
		assert_true(cv_call(fd));
	assert_true(count_of(fd) >= full);
	assert_true(cv_call(fd));
	assert_int_equal(count_of(fd), 1);
	close(fd);
}

static void *call_often(void *fd)
{
	for (int i = 0; i < 20000; i++)
		assert_true(cv_call(*(int *)fd));
	return NULL;
}

static void any_number_of_threads_calls(void **state)
{
	const int fd = eventfd(0, 0);
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call_often, (void *)(uintptr_t)&fd);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count_of(fd), 4 * 20000);
	close(fd);
}

static void only_an_eventfd_is_one(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	const struct {
		const char *what;
		int fd;
		bool is;
	} rows[] = {
		{"eventfd", eventfd(0, 0), true},
		{"eventfd that does not block", eventfd(5, EFD_NONBLOCK), true},
		{"semaphore", eventfd(0, EFD_SEMAPHORE), true},
		{"pipe", ends[1], false},
		{"timer", timerfd_create(CLOCK_MONOTONIC, 0), false},
		{"epoll", epoll_create1(0), false},
		{"memory", memfd_create("x", 0), false},
		{"device", open("/dev/null", O_RDWR), false},
		{"nothing", -1, false},
		{"closed", 1000, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pollfd ready = {.fd = rows[i].fd, .events = POLLIN};

		print_message("  %s\n", rows[i].what);
		poll(&ready, 1, 0);
		const short before = ready.revents;
		assert_int_equal(cv_call_is_eventfd(rows[i].fd), rows[i].is);
		assert_int_equal(cv_call_is_eventfd(rows[i].fd), rows[i].is);
		// Nobody was told anything by being asked.
		poll(&ready, 1, 0);
		assert_int_equal(ready.revents, before);
		assert_true(rows[i].is || !cv_call(rows[i].fd));
		if (rows[i].fd >= 0 && rows[i].fd != 1000)
			close(rows[i].fd);
	}
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_is_counted),
		cmocka_unit_test(a_full_eventfd_that_blocks_stops_nobody),
		cmocka_unit_test(any_number_of_threads_calls),
		cmocka_unit_test(only_an_eventfd_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
