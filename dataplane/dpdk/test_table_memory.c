// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Large tables have memory of their own without hugepages, as much as they need.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rte_fib.h>
#include <rte_malloc.h>

#include "dpdk/table_memory.h"
#include "tests/support/test_eal.h"

#define MB ((size_t)1 << 20)

static struct rte_malloc_socket_stats stats_of(int socket)
{
	struct rte_malloc_socket_stats stats = {0};

	assert_int_equal(rte_malloc_get_socket_stats(socket, &stats), 0);
	return stats;
}

static void grows_up_to_its_limit(void **state)
{
	const int socket = cv_table_memory(64 * MB);
	size_t total;
	void *table;

	assert_true(socket >= 0);
	total = stats_of(socket).heap_totalsz_bytes;
	assert_in_range(total, 64 * MB, 80 * MB);
	table = rte_zmalloc_socket("table", 64 * MB, 64, socket);
	assert_non_null(table);
	memset(table, 1, 64 * MB);
	assert_int_equal(cv_table_memory(20 * MB), socket);
	assert_in_range(stats_of(socket).heap_totalsz_bytes, total + 20 * MB, total + 30 * MB);
	total = stats_of(socket).heap_totalsz_bytes;
	assert_int_equal(cv_table_memory(40 * MB), SOCKET_ID_ANY);
	assert_int_equal(cv_table_memory(SIZE_MAX / 2), SOCKET_ID_ANY);
	rte_free(table);
	// What was freed is used again, and is zero for who asks for zeros.
	assert_int_equal(cv_table_memory(60 * MB), socket);
	assert_int_equal(stats_of(socket).heap_totalsz_bytes, total);
	table = rte_zmalloc_socket("table", 60 * MB, 64, socket);
	assert_non_null(table);
	for (size_t i = 0; i < 60 * MB; i += 511)
		assert_int_equal(((char *)table)[i], 0);
	rte_free(table);
}

static void has_a_fib(void **state)
{
	struct rte_fib_conf conf = {.type = RTE_FIB_DUMMY, .max_routes = 100, .default_nh = 7};
	struct rte_fib *fib = rte_fib_create("fib", cv_table_memory(MB), &conf);
	uint32_t address = 0x0a000001;
	uint64_t next_hop = 0;

	assert_non_null(fib);
	assert_int_equal(rte_fib_add(fib, 0x0a000000, 8, 3), 0);
	assert_int_equal(rte_fib_lookup_bulk(fib, &address, &next_hop, 1), 0);
	assert_int_equal(next_hop, 3);
	rte_fib_free(fib);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_up_to_its_limit),
		cmocka_unit_test(has_a_fib),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	cv_table_memory_limit(128 * MB);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
