// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets of a burst on their way to the workers that keep their flows: a packet's first byte says
// which one, its second is its number. None is lost, each keeps its order and its bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "chain/path.h"
#include "tests/support/test_eal.h"

enum { PACKETS = 255, LEN = 60, SELF = 1, WORKERS = 4, CHAIN = 9 };

static struct rte_mempool *pool;
static struct cv_ring *rings[CV_WORKERS_MAX];
static struct cv_port_counters counters[3];
static struct cv_path_worker worker;

static uint16_t home(void *homes, struct cv_view *views, uint8_t *workers, uint16_t n)
{
	uint16_t others = 0;

	for (unsigned i = 0; i < n; i++) {
		workers[i] = views[i].data[0];
		others += workers[i] != SELF;
	}
	return others;
}

static const struct cv_handoff handoff = {.home = home, .to = rings, .self = SELF, .path = CHAIN};

static void begin(uint32_t room)
{
	struct cv_error error;

	memset(counters, 0, sizeof(counters));
	worker = (struct cv_path_worker){.pool = pool, .ports_counters = counters};
	for (unsigned w = 0; w < WORKERS; w++)
		rings[w] = w == SELF ? NULL : cv_ring_create("handoff", room, room, &error);
}

static void end(void)
{
	for (unsigned w = 0; w < WORKERS; w++)
		cv_ring_free(rings[w]);
	memset(rings, 0, sizeof(rings));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

// A burst of n packets, so many in a buffer; homes: of each.
static void load(struct cv_burst *burst, const uint8_t *homes, unsigned n, unsigned each)
{
	memset(burst, 0, sizeof(*burst));
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *buffer;
		uint8_t *at;

		if (i % each == 0) {
			burst->buffers.buffers[burst->buffers.n++] = rte_pktmbuf_alloc(pool);
			assert_non_null(burst->buffers.buffers[burst->buffers.n - 1]);
		}
		buffer = burst->buffers.buffers[burst->buffers.n - 1];
		burst->buffers.views[burst->buffers.n - 1]++;
		if (each > 1)
			memcpy(rte_pktmbuf_append(buffer, 2), (uint8_t[]){0, LEN}, 2);
		at = (uint8_t *)rte_pktmbuf_append(buffer, LEN);
		memset(at, (int)i, LEN);
		at[0] = homes[i];
		cv_view_set(&burst->views[i], at, LEN);
		burst->views[i].in = 2;
		burst->views[i].out = 1;
	}
	burst->n = (uint16_t)n;
	cv_burst_measure(burst);
}

// These packets, of the n, are those of one worker, in order.
static void assert_are(const struct cv_view *views, unsigned count, const uint8_t *homes,
	unsigned n, unsigned of, uint8_t out)
{
	unsigned at = 0;

	for (unsigned i = 0; i < n; i++) {
		if (homes[i] != of)
			continue;
		assert_true(at < count);
		assert_int_equal(views[at].data[0], of);
		for (unsigned b = 1; b < LEN; b++)
			assert_int_equal(views[at].data[b], (uint8_t)i);
		assert_int_equal(views[at].len, LEN);
		assert_int_equal(views[at].in, 2);
		assert_int_equal(views[at++].out, out);
	}
	assert_int_equal(at, count);
}

static void each_gets_its_own_in_order(void **state)
{
	static const unsigned sizes[] = {1, 31, 32, 33, 64};

	for (unsigned each = 1; each <= 8; each += 7)
		for (unsigned s = 0; s < RTE_DIM(sizes); s++)
			for (unsigned kind = 0; kind < 4; kind++) {
				static struct cv_burst burst;
				uint8_t homes[64];
				const unsigned n = sizes[s];

				begin(256);
				for (unsigned i = 0; i < n;
					i++) // one, a few in a row, mixed, others
					homes[i] = (uint8_t)(kind == 0   ? SELF
							     : kind == 1 ? i / 8 % WORKERS
							     : kind == 2 ? i * 7 % WORKERS
									 : 2 + i % 2);
				load(&burst, homes, n, each);
				cv_handoff(&handoff, &worker, &burst);
				assert_are(burst.views, burst.n, homes, n, SELF, 1);
				assert_int_equal(burst.bytes, burst.n * LEN);
				rte_pktmbuf_free_bulk(burst.buffers.buffers, burst.buffers.n);
				for (unsigned w = 0; w < WORKERS; w++) {
					struct cv_buffers buffers;
					uint16_t got;

					if (w == SELF)
						continue;
					got = cv_ring_pop(
						rings[w], &buffers, burst.views, CV_BURST_VIEWS);
					assert_are(burst.views, got, homes, n, w, CHAIN);
					rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
				}
				end();
			}
}

// A convoy that one worker keeps passes as it lies.
static void a_buffer_of_one_worker_is_not_copied(void **state)
{
	static struct cv_burst burst;
	struct rte_mbuf *before[2];
	struct cv_buffers buffers;
	uint8_t homes[16];

	begin(256);
	for (unsigned i = 0; i < 16; i++)
		homes[i] = i < 8 ? SELF : 0;
	load(&burst, homes, 16, 8);
	memcpy(before, burst.buffers.buffers, sizeof(before));
	cv_handoff(&handoff, &worker, &burst);
	assert_int_equal(burst.buffers.n, 1);
	assert_ptr_equal(burst.buffers.buffers[0], before[0]);
	assert_int_equal(cv_ring_pop(rings[0], &buffers, burst.views, CV_BURST_VIEWS), 8);
	assert_ptr_equal(buffers.buffers[0], before[1]);
	rte_pktmbuf_free_bulk(before, 2);
	end();
}

static void a_full_ring_drops_its_own_alone(void **state)
{
	static struct cv_burst burst;
	uint8_t homes[64];

	begin(8);
	assert_false(cv_handoff_has_room(&handoff, CV_BURST_VIEWS));
	for (unsigned i = 0; i < 64; i++)
		homes[i] = i < 4 ? SELF : i < 8 ? 0 : 3;
	load(&burst, homes, 64, 1);
	cv_handoff(&handoff, &worker, &burst);
	assert_int_equal(burst.n, 4);
	assert_int_equal(cv_ring_count(rings[0]), 4);
	assert_int_equal(cv_ring_count(rings[3]), 8);
	assert_int_equal(counters[2].drops[CV_DROP_RING_FULL], 56 - 8);
	rte_pktmbuf_free_bulk(burst.buffers.buffers, burst.buffers.n);
	end();
}

// Of a flow that is one, each worker gets whole bursts, this one as well.
static void bursts_go_to_workers_in_turn(void **state)
{
	static struct cv_handoff_turn turn = {
		.workers = {0, SELF, 3}, .count = 3, .next = 1, .self = SELF};
	static const struct cv_handoff in_turn = {
		.home = cv_handoff_in_turn,
		.homes = &turn,
		.to = rings,
		.self = SELF,
		.path = CHAIN,
	};
	static const uint8_t expected[] = {SELF, 3, 0, SELF, 3, 0};
	static struct cv_burst burst;
	const uint8_t homes[16] = {0}; // of one flow

	for (unsigned each = 1; each <= 8; each += 7) {
		begin(256);
		for (unsigned i = 0; i < RTE_DIM(expected); i++) {
			struct cv_buffers buffers;
			const unsigned to = expected[i];
			const unsigned n = i % 2 == 0 ? 16 : 1;
			uint16_t got;

			load(&burst, homes, n, each);
			cv_handoff(&in_turn, &worker, &burst);
			assert_int_equal(burst.n, to == SELF ? n : 0);
			if (to == SELF) {
				rte_pktmbuf_free_bulk(burst.buffers.buffers, burst.buffers.n);
				continue;
			}
			got = cv_ring_pop(rings[to], &buffers, burst.views, CV_BURST_VIEWS);
			assert_are(burst.views, got, homes, n, 0, CHAIN);
			rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
		}
		end();
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gets_its_own_in_order),
		cmocka_unit_test(a_buffer_of_one_worker_is_not_copied),
		cmocka_unit_test(a_full_ring_drops_its_own_alone),
		cmocka_unit_test(bursts_go_to_workers_in_turn),
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
