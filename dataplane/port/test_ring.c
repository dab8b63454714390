// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "ring.h"
#include "test_eal.h"

#define PACKETS 255

static struct rte_mempool *pool;

// What packet number i carries beside its bytes.
static struct cv_view view_of(uint32_t i, struct rte_mbuf *packet)
{
	return (struct cv_view){
		.data = rte_pktmbuf_mtod(packet, uint8_t *),
		.len = (uint16_t)(i % 1500),
		.l3 = (uint8_t)(i % 22),
		.proto = (uint16_t)i,
		.in = (uint8_t)i,
		.out = (uint8_t)(i + 1),
	};
}

static void make(uint32_t first, struct rte_mbuf **packets, struct cv_view *views, uint16_t n)
{
	if (n > 0)
		assert_int_equal(rte_pktmbuf_alloc_bulk(pool, packets, n), 0);
	for (uint16_t i = 0; i < n; i++) {
		packets[i]->dynfield1[0] = first + i;
		views[i] = view_of(first + i, packets[i]);
	}
}

static void assert_are(
	uint32_t first, struct rte_mbuf **packets, const struct cv_view *views, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct cv_view expected = view_of(first + i, packets[i]);

		assert_int_equal(packets[i]->dynfield1[0], first + i);
		assert_memory_equal(&views[i], &expected, sizeof(expected));
	}
}

// Steps of a ring of 8: how many to push or pop, how many of them can be done.
static void takes_what_fits_and_gives_it_back_in_order(void **state)
{
	static const struct {
		const char *description;
		uint16_t push, pushed, pop, popped;
	} rows[] = {
		{"nothing", 0, 0, 0, 0},
		{"empty has nothing to give", 0, 0, 5, 0},
		{"one", 1, 1, 1, 1},
		{"some", 5, 5, 3, 3},
		{"around the end", 5, 5, 4, 4},
		{"more than is there", 2, 2, 8, 5},
		{"just full", 8, 8, 0, 0},
		{"full takes nothing", 1, 0, 0, 0},
		{"room again", 0, 0, 2, 2},
		{"half of it fits", 4, 2, 0, 0},
		{"all", 0, 0, 65, 8},
	};
	struct cv_error error = {""};
	struct cv_ring *ring = cv_ring_create("r", 7, &error); // rounded up to 8
	struct rte_mbuf *packets[65];
	struct cv_view views[65];
	uint32_t next_in = 0, next_out = 0;

	(void)state;
	assert_non_null(ring);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].description);
		make(next_in, packets, views, rows[i].push);
		assert_int_equal(cv_ring_push(ring, packets, views, rows[i].push), rows[i].pushed);
		for (uint16_t j = rows[i].pushed; j < rows[i].push; j++)
			rte_pktmbuf_free(packets[j]);
		next_in += rows[i].pushed;
		assert_int_equal(cv_ring_pop(ring, packets, views, rows[i].pop), rows[i].popped);
		assert_are(next_out, packets, views, rows[i].popped);
		rte_pktmbuf_free_bulk(packets, rows[i].popped);
		next_out += rows[i].popped;
		assert_int_equal(cv_ring_count(ring), next_in - next_out);
		assert_int_equal(cv_ring_room(ring), 8 - (next_in - next_out));
	}
	cv_ring_free(ring);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void frees_what_is_left(void **state)
{
	struct cv_ring *ring = cv_ring_create("r", 64, NULL);
	struct rte_mbuf *packets[33];
	struct cv_view views[33];

	(void)state;
	make(0, packets, views, 33);
	assert_int_equal(cv_ring_push(ring, packets, views, 33), 33);
	cv_ring_free(ring);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	cv_ring_free(NULL);
}

static void says_why_there_is_none(void **state)
{
	struct cv_error error = {""};
	struct cv_ring *rings[64];
	unsigned made = 0;

	(void)state;
	assert_null(cv_ring_create("big", (1u << 20) + 1, &error));
	assert_non_null(strstr(error.text, "ring \"big\": 1048577 packets"));
	error.text[0] = '\0';
	while (made < 64 && (rings[made] = cv_ring_create("more", 1u << 20, &error)) != NULL)
		made++;
	assert_true(made > 0 && made < 64);
	assert_non_null(strstr(error.text, "ring \"more\": no memory"));
	while (made > 0)
		cv_ring_free(rings[--made]);
}

// Two threads, every burst size: everything arrives once, in order, with its view.
#define TURNS 200000u

struct shared {
	struct cv_ring *ring;
	struct rte_mbuf *packets[PACKETS]; // number i travels as packets[i % PACKETS]
};

static void *push_all(void *argument)
{
	struct shared *shared = argument;
	uint32_t next = 0;

	while (next < TURNS) {
		struct rte_mbuf *packets[65];
		struct cv_view views[65];
		uint16_t n = (uint16_t)RTE_MIN(1 + next % 65, TURNS - next);
		uint16_t pushed = 0;

		for (uint16_t i = 0; i < n; i++) {
			packets[i] = shared->packets[(next + i) % PACKETS];
			views[i] = view_of(next + i, packets[i]);
		}
		while (pushed < n) {
			uint16_t took = cv_ring_push(
				shared->ring, packets + pushed, views + pushed, n - pushed);

			pushed += took;
			if (took == 0)
				sched_yield();
		}
		next += n;
	}
	return NULL;
}

static void crosses_threads_whole_and_in_order(void **state)
{
	struct shared shared = {.ring = cv_ring_create("r", 128, NULL)};
	uint32_t next = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, shared.packets, PACKETS), 0);
	assert_int_equal(pthread_create(&thread, NULL, push_all, &shared), 0);
	while (next < TURNS) {
		struct rte_mbuf *packets[33];
		struct cv_view views[33];
		uint16_t n = cv_ring_pop(shared.ring, packets, views, 1 + next % 33);

		for (uint16_t i = 0; i < n; i++) {
			const struct cv_view expected = view_of(next + i, packets[i]);

			assert_ptr_equal(packets[i], shared.packets[(next + i) % PACKETS]);
			assert_memory_equal(&views[i], &expected, sizeof(expected));
		}
		next += n;
		if (n == 0)
			sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(cv_ring_count(shared.ring), 0);
	cv_ring_free(shared.ring);
	rte_pktmbuf_free_bulk(shared.packets, PACKETS);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_fits_and_gives_it_back_in_order),
		cmocka_unit_test(frees_what_is_left),
		cmocka_unit_test(says_why_there_is_none),
		cmocka_unit_test(crosses_threads_whole_and_in_order),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("pool", PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	failed = pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return failed;
}
