// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include "port/packet_pool.h"
#include "tests/support/test_eal.h"

static int by_address(const void *a, const void *b)
{
	const struct rte_mbuf *left = *(struct rte_mbuf *const *)a;
	const struct rte_mbuf *right = *(struct rte_mbuf *const *)b;

	return left < right ? -1 : left > right;
}

// All buffers of a pool, taken at once, are whole and lie where they should, each for itself.
static void gives_as_many_buffers_as_asked_for(void **state)
{
	static const struct {
		const char *description;
		unsigned n;
		uint16_t room;
		bool shares;
	} rows[] = {
		{"one", 1, 2176, false},
		{"not a power of two", 1000, 2176, false},
		{"jumbo", 63, 9728, false},
		{"beyond one large page", 4095, 2176, false},
		{"read by others", 1000, 2176, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned n = rows[i].n;
		struct rte_mempool *pool =
			cv_packet_pool_create("test", n, 0, rows[i].room, rows[i].shares);
		struct rte_mbuf **packets = calloc(n, sizeof(struct rte_mbuf *));

		print_message("%s\n", rows[i].description);
		assert_non_null(pool);
		assert_non_null(packets);
		assert_int_equal(rte_mempool_avail_count(pool), n);
		assert_int_equal(rte_pktmbuf_alloc_bulk(pool, packets, n), 0);
		assert_null(rte_pktmbuf_alloc(pool));
		qsort(packets, n, sizeof(struct rte_mbuf *), by_address);
		for (unsigned j = 0; j < n; j++) {
			assert_int_equal(rte_pktmbuf_tailroom(packets[j]),
				rows[i].room - RTE_PKTMBUF_HEADROOM);
			assert_int_equal(rte_pktmbuf_headroom(packets[j]), RTE_PKTMBUF_HEADROOM);
			assert_int_equal(
				rte_mem_virt2memseg(packets[j], NULL) != NULL, rows[i].shares);
			memset(packets[j]->buf_addr, 0x5a, packets[j]->buf_len);
			if (j > 0)
				assert_true((char *)packets[j - 1]->buf_addr + rows[i].room <=
					    (char *)packets[j]);
		}
		rte_pktmbuf_free_bulk(packets, n);
		assert_int_equal(rte_mempool_avail_count(pool), n);
		rte_mempool_free(pool);
		free(packets);
	}
}

static void says_why_there_is_none(void **state)
{
	(void)state;
	assert_null(cv_packet_pool_create("test", 0, 0, 2176, false));
	assert_int_not_equal(rte_errno, 0);
	assert_null(cv_packet_pool_create("test", UINT32_MAX, 0, 65408, false));
	assert_int_not_equal(rte_errno, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_as_many_buffers_as_asked_for),
		cmocka_unit_test(says_why_there_is_none),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
