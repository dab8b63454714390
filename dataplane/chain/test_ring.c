// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include <rte_cycles.h>

#include "chain/ring.h"
#include "tests/support/test_eal.h"

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

// Buffers first to first + n - 1, of which number i has 1 + i % many views, number i, i + 1 ...
static uint16_t views_in(uint32_t i, unsigned many)
{
	return (uint16_t)(1 + i % many);
}

static uint16_t make(uint32_t first, struct rte_mbuf **packets, unsigned many,
	struct cv_buffers *buffers, struct cv_view *views, uint16_t n)
{
	uint16_t at = 0;

	buffers->n = n;
	for (uint16_t i = 0; i < n; i++) {
		packets[i]->dynfield1[0] = first + i;
		buffers->buffers[i] = packets[i];
		buffers->views[i] = (uint8_t)views_in(first + i, many);
		for (uint16_t j = 0; j < buffers->views[i]; j++)
			views[at++] = view_of(first + i + j, packets[i]);
	}
	return at;
}

static void assert_are(uint32_t first, unsigned many, const struct cv_buffers *buffers,
	const struct cv_view *views, uint16_t n)
{
	uint16_t at = 0;

	for (uint16_t i = 0; i < buffers->n; i++) {
		struct rte_mbuf *packet = buffers->buffers[i];

		assert_int_equal(buffers->views[i], views_in(first + i, many));
		for (uint16_t j = 0; j < buffers->views[i]; j++) {
			const struct cv_view expected = view_of(first + i + j, packet);

			assert_memory_equal(&views[at++], &expected, sizeof(expected));
		}
	}
	assert_int_equal(at, n);
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
		{"all", 0, 0, 64, 8},
	};
	struct cv_error error = {""};
	struct cv_ring *ring = cv_ring_create("r", 7, 0, &error); // rounded up to 8
	struct rte_mbuf *packets[65];
	struct cv_buffers buffers;
	struct cv_view views[65];
	uint32_t next_in = 0, next_out = 0;

	(void)state;
	assert_non_null(ring);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].description);
		if (rows[i].push > 0)
			assert_int_equal(rte_pktmbuf_alloc_bulk(pool, packets, rows[i].push), 0);
		make(next_in, packets, 1, &buffers, views, rows[i].push);
		assert_int_equal(cv_ring_push(ring, &buffers, views, rows[i].push), rows[i].pushed);
		for (uint16_t j = rows[i].pushed; j < rows[i].push; j++)
			rte_pktmbuf_free(packets[j]);
		next_in += rows[i].pushed;
		assert_int_equal(cv_ring_pop(ring, &buffers, views, rows[i].pop), rows[i].popped);
		assert_are(next_out, 1, &buffers, views, rows[i].popped);
		rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
		next_out += rows[i].popped;
		assert_int_equal(cv_ring_count(ring), next_in - next_out);
		assert_true(cv_ring_has_room(ring, 8 - (next_in - next_out), 0));
		assert_false(cv_ring_has_room(ring, 9 - (next_in - next_out), 0));
	}
	cv_ring_free(ring);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void frees_what_is_left(void **state)
{
	struct cv_ring *ring = cv_ring_create("r", 64, 128, NULL);
	struct rte_mbuf *packets[33];
	struct cv_view views[99];
	struct cv_buffers buffers;

	(void)state;
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, packets, 33), 0);
	assert_int_equal(make(0, packets, 3, &buffers, views, 33), 66);
	assert_int_equal(cv_ring_push(ring, &buffers, views, 66), 33);
	assert_int_equal(cv_ring_count(ring), 66);
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
	assert_null(cv_ring_create("big", (1u << 20) + 1, 0, &error));
	assert_non_null(strstr(error.text, "ring \"big\": 1048577 packets"));
	error.text[0] = '\0';
	while (made < 64 && (rings[made] = cv_ring_create("more", 1u << 20, 0, &error)) != NULL)
		made++;
	assert_true(made > 0 && made < 64);
	assert_non_null(strstr(error.text, "ring \"more\": no memory"));
	while (made > 0)
		cv_ring_free(rings[--made]);
}

// A buffer goes in, and comes out, with all of its packets or not at all.
static void a_buffer_is_one_thing(void **state)
{
	struct cv_ring *ring = cv_ring_create("r", 8, 1024, NULL);
	struct rte_mbuf *packet;
	struct cv_view views[2 * 255];
	struct cv_buffers buffers = {.n = 1, .views = {255}};

	(void)state;
	packet = rte_pktmbuf_alloc(pool);
	assert_non_null(packet);
	buffers.buffers[0] = packet;
	for (uint16_t i = 0; i < 255; i++)
		views[i] = view_of(i, packet);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cv_ring_push(ring, &buffers, views, 255), 1);
	assert_int_equal(cv_ring_count(ring), 4 * 255);
	assert_false(cv_ring_has_room(ring, 1, 255)); // but 4 views would fit
	assert_true(cv_ring_has_room(ring, 1, 4));
	assert_int_equal(cv_ring_push(ring, &buffers, views, 255), 0);
	assert_int_equal(cv_ring_pop(ring, &buffers, views, 254), 0);
	assert_int_equal(cv_ring_pop(ring, &buffers, views, 2 * 255 - 1), 255);
	assert_int_equal(buffers.n, 1);
	assert_int_equal(cv_ring_pop(ring, &buffers, views, 2 * 255), 2 * 255);
	assert_int_equal(buffers.n, 2);
	assert_int_equal(cv_ring_pop(ring, &buffers, views, 255), 255);
	rte_pktmbuf_free(packet);
	cv_ring_free(ring);
}

// A clock that is set on a push runs until the last packet of that push is popped.
static void a_clock_runs_for_what_was_pushed(void **state)
{
	struct cv_ring *ring = cv_ring_create("r", 8, 8, NULL);
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	struct cv_buffers buffers = {.n = 1, .views = {1}, .buffers = {packet}}, popped;
	struct cv_view view = view_of(0, packet), views[8];
	unsigned clocks = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(cv_ring_push(ring, &buffers, &view, 1), 1);
		assert_int_equal(cv_ring_push(ring, &buffers, &view, 1), 1);
		if (i == 0)
			rte_delay_us_block(100);
		assert_int_equal(cv_ring_pop(ring, &popped, views, 1), 1);
		if (i == 0)
			assert_true(cv_ring_waited(ring) >= rte_get_tsc_hz() / 10000);
		clocks += cv_ring_waited(ring) > 0;
		assert_int_equal(cv_ring_pop(ring, &popped, views, 1), 1);
		clocks += cv_ring_waited(ring) > 0;
	}
	assert_in_range(clocks, 5, 8);
	rte_pktmbuf_free(packet);
	cv_ring_free(ring);
}

// Two threads, every burst size: everything arrives once, in order, with its views.
#define ROUNDS 100000u

struct shared {
	struct cv_ring *ring;
	unsigned many; // views in a buffer, at most
	struct rte_mbuf *packets[PACKETS]; // number i is sent as packets[i % PACKETS]
};

static void *push_all(void *argument)
{
	struct shared *shared = argument;
	uint32_t next = 0;

	while (next < ROUNDS) {
		struct cv_buffers buffers = {.n = (uint16_t)RTE_MIN(1 + next % 64, ROUNDS - next)};
		struct cv_view views[64 * 5];
		uint16_t at = 0, took;

		for (uint16_t i = 0; i < buffers.n; i++) {
			buffers.buffers[i] = shared->packets[(next + i) % PACKETS];
			buffers.views[i] = (uint8_t)views_in(next + i, shared->many);
			for (uint16_t j = 0; j < buffers.views[i]; j++)
				views[at++] = view_of(next + i + j, buffers.buffers[i]);
		}
		took = cv_ring_push(shared->ring, &buffers, views, at);
		next += took; // the rest is made again
		if (took == 0)
			sched_yield();
	}
	return NULL;
}

static void crosses_threads_whole_and_in_order(void **state)
{
	static const unsigned many[] = {1, 5};

	(void)state;
	for (size_t row = 0; row < RTE_DIM(many); row++) {
		struct shared shared = {
			.ring = cv_ring_create("r", 128, 256, NULL), .many = many[row]};
		uint32_t next = 0;
		pthread_t thread;

		assert_int_equal(rte_pktmbuf_alloc_bulk(pool, shared.packets, PACKETS), 0);
		assert_int_equal(pthread_create(&thread, NULL, push_all, &shared), 0);
		while (next < ROUNDS) {
			struct cv_buffers buffers;
			struct cv_view views[37];
			uint16_t n = cv_ring_pop(shared.ring, &buffers, views, 5 + next % 33);

			for (uint16_t i = 0; i < buffers.n; i++)
				assert_ptr_equal(
					buffers.buffers[i], shared.packets[(next + i) % PACKETS]);
			assert_are(next, many[row], &buffers, views, n);
			next += buffers.n;
			if (n == 0)
				sched_yield();
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(cv_ring_count(shared.ring), 0);
		cv_ring_free(shared.ring);
		rte_pktmbuf_free_bulk(shared.packets, PACKETS);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_fits_and_gives_it_back_in_order),
		cmocka_unit_test(frees_what_is_left),
		cmocka_unit_test(says_why_there_is_none),
		cmocka_unit_test(a_buffer_is_one_thing),
		cmocka_unit_test(a_clock_runs_for_what_was_pushed),
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
