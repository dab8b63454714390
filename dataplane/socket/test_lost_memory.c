// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "socket/lost_memory.h"
#include "socket/shared_memory.h"

static const void *reported;
static unsigned times;

static void lost(const void *address)
{
	reported = address;
	times++;
}

static void a_page_that_is_gone_is_zeros(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("peer", MFD_CLOEXEC);
	uint8_t *memory;

	assert_int_equal(ftruncate(fd, 2 * (off_t)page), 0);
	memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	memory[0] = memory[page] = 0x55;
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	cv_lost_memory_guard(lost);
	cv_lost_memory_guard(lost);
	assert_int_equal(*(volatile uint8_t *)&memory[page + 7], 0);
	assert_ptr_equal(reported, &memory[page + 7]);
	*(volatile uint8_t *)&memory[page] = 1; // ours now
	assert_int_equal(times, 1);
	assert_int_equal(memory[0], 0x55); // what is there stays
	munmap(memory, 2 * page);
	close(fd);
}

#define MANY_PAGES \
	150000ull // every second one alone would make more mappings than a process may have

// A peer takes everything away, and the worker goes on over all of it.
static void a_large_region_is_lost_at_once(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("peer", MFD_CLOEXEC);
	struct cv_shared_memory memory, other;
	struct cv_error error = {""};

	times = 0;
	assert_int_equal(ftruncate(fd, (off_t)(MANY_PAGES * page)), 0);
	assert_int_equal(cv_shared_memory_map(&memory, fd, 0, MANY_PAGES * page, &error), 0);
	assert_int_equal(cv_shared_memory_map(&other, fd, 0, page, &error), 0);
	memory.data[0] = 0x55;
	cv_lost_memory_guard(lost);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	for (size_t i = 1; i < MANY_PAGES; i += 2) {
		assert_int_equal(*(volatile uint8_t *)&memory.data[i * page], 0);
		*(volatile uint8_t *)&memory.data[i * page] = 1;
		madvise(&memory.data[i * page], page, MADV_DONTNEED); // it need not stay
	}
	assert_int_equal(times, 1);
	assert_ptr_equal(reported, &memory.data[page]);
	assert_int_equal(memory.data[0], 0); // all of it
	assert_int_equal(other.data[0], 0x55); // and no other
	cv_shared_memory_unmap(&memory);
	cv_shared_memory_unmap(&other);
	close(fd);
}

// In one: cmocka sets its own handlers before each test, and the guard is set up once.
static void what_is_gone_is_zeros(void **state)
{
	a_page_that_is_gone_is_zeros();
	a_large_region_is_lost_at_once();
}

// How a process with the guard ends that is sent the signal. Before cmocka has a handler of its own.
static int end_by_signal(void)
{
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		signal(SIGBUS, SIG_DFL); // sanitizers have theirs, too
		cv_lost_memory_guard(lost);
		raise(SIGBUS);
		_exit(0);
	}
	return waitpid(child, &status, 0) == child ? status : 0;
}

static int ended;

static void another_signal_does_what_it_did(void **state)
{
	assert_true(WIFSIGNALED(ended));
	assert_int_equal(WTERMSIG(ended), SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_gone_is_zeros),
		cmocka_unit_test(another_signal_does_what_it_did),
	};

	ended = end_by_signal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
