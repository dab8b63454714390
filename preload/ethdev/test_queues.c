// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// A program of two threads, each with a queue, each queue with a mempool of its own; they give each
// other every other packet, so that views are sent and freed by threads that did not receive them.
// Every packet comes out once, and every buffer comes back.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "convoy/frame.h"
#include "preload/ethdev/mbuf_set.h"
#include "tests/support/test_eal.h"

#define QUEUES 2
#define CONVOYS 6000 // of each queue
#define PACKETS 10 // in each
#define BYTES 60
#define TOTAL (QUEUES * CONVOYS * PACKETS)

static uint16_t port;
static struct rte_ring *to[QUEUES], *from[QUEUES];
static struct rte_ring *handed[QUEUES]; // to that thread, by the other
static struct rte_mempool *pools[QUEUES];
static unsigned pool_counts[QUEUES];
static struct cv_outer outers[QUEUES];
static bool stop; // atomic: nothing comes any more
static uint32_t dropped; // atomic: packets that the threads dropped

static int begin(void **unused)
{
	struct rte_eth_conf config = {0};

	test_eal_begin("test_queues");
	for (unsigned i = 0; i < QUEUES; i++) {
		const struct cv_outer_config outer = {.version = 4,
			.dst_mac = {2, (uint8_t)i},
			.src = {10, (uint8_t)i},
			.dst = {11, (uint8_t)i}};
		char name[16];

		snprintf(name, sizeof(name), "pool%u", i);
		pools[i] = rte_pktmbuf_pool_create(name, 2047, 32, 0, 2176, SOCKET_ID_ANY);
		snprintf(name, sizeof(name), "to%u", i);
		to[i] = rte_ring_create(name, 256, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "from%u", i);
		from[i] = rte_ring_create(name, 256, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "handed%u", i);
		handed[i] = rte_ring_create(name, 1024, SOCKET_ID_ANY, 0);
		if (pools[i] == NULL || to[i] == NULL || from[i] == NULL || handed[i] == NULL ||
			cv_outer_set(&outers[i], &outer, NULL) != 0)
			return -1;
	}
	port = (uint16_t)rte_eth_from_rings("queues", to, QUEUES, from, QUEUES, 0);
	if (rte_eth_dev_configure(port, QUEUES, QUEUES, &config) != 0)
		return -1;
	for (uint16_t i = 0; i < QUEUES; i++)
		if (rte_eth_rx_queue_setup(port, i, 256, 0, NULL, pools[i]) != 0 ||
			rte_eth_tx_queue_setup(port, i, 256, 0, NULL) != 0)
			return -1;
	if (rte_eth_dev_start(port) != 0)
		return -1;
	for (unsigned i = 0; i < QUEUES; i++)
		pool_counts[i] = rte_mempool_avail_count(pools[i]);
	return 0;
}

static int end(void **unused)
{
	rte_eth_dev_stop(port);
	test_eal_end();
	return 0;
}

static void send_or_drop(uint16_t queue, struct rte_mbuf **mbufs, uint16_t n)
{
	for (unsigned tries = 0; n > 0 && tries < 1000; tries++) {
		uint16_t sent = rte_eth_tx_burst(port, queue, mbufs, n);

		mbufs += sent;
		n -= sent;
		if (n > 0)
			sched_yield();
	}
	__atomic_fetch_add(&dropped, n, __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(mbufs, n);
}

// One thread of the program.
static void *work(void *number)
{
	const uint16_t me = (uint16_t)(uintptr_t)number, other = 1 - me;

	for (;;) {
		struct rte_mbuf *got[64], *mine[64];
		uint16_t n = rte_eth_rx_burst(port, me, got, 32), count = 0, given;

		for (uint16_t i = 0; i < n; i++) {
			// Whole convoys now and then, so that some are forwarded in place.
			if (n % 3 == 0 || i % 2 == 0 || rte_ring_enqueue(handed[other], got[i]))
				mine[count++] = got[i];
		}
		send_or_drop(me, mine, count);
		given = (uint16_t)rte_ring_dequeue_burst(handed[me], (void **)mine, 32, NULL);
		send_or_drop(me, mine, given);
		if (n + given == 0) {
			if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) // all came out
				return NULL;
			sched_yield();
		}
	}
}

static bool offer(unsigned queue, uint32_t first)
{
	struct cv_view views[PACKETS];
	uint8_t bytes[PACKETS][BYTES] = {{0}}, buffer[2048], *frame;
	struct rte_mbuf *mbuf;
	struct cv_frame built;
	uint16_t len;

	if (rte_ring_full(to[queue]))
		return false;
	mbuf = rte_pktmbuf_alloc(pools[queue]);
	if (mbuf == NULL)
		return false;
	for (uint32_t i = 0; i < PACKETS; i++) {
		const uint32_t number = first + i;

		memcpy(&bytes[i][20], &number, sizeof(number));
		bytes[i][12] = 0x99; // no IP
		cv_view_set(&views[i], bytes[i], BYTES);
	}
	cv_frame_begin(&built, &outers[queue], buffer, sizeof(buffer));
	assert_int_equal(cv_frame_add(&built, views, PACKETS), PACKETS);
	frame = cv_frame_close(&built, &len);
	memcpy(rte_pktmbuf_append(mbuf, len), frame, len);
	assert_int_equal(rte_ring_enqueue(to[queue], mbuf), 0);
	return true;
}

static uint8_t seen[TOTAL];

static uint32_t see(const struct cv_view *view)
{
	uint32_t number;

	assert_int_equal(view->len, BYTES);
	memcpy(&number, view->data + 20, sizeof(number));
	assert_true(number < TOTAL);
	assert_int_equal(seen[number]++, 0);
	return 1;
}

// Returns how many packets came out.
static uint32_t look_outside(void)
{
	struct rte_mbuf *frame;
	uint32_t packets = 0;

	for (unsigned i = 0; i < QUEUES; i++)
		while (rte_ring_dequeue(from[i], (void **)&frame) == 0) {
			struct cv_view views[CV_CONVOY_PACKETS_MAX], view = {0};
			struct cv_convoy convoy;

			assert_false(cv_is_view(frame));
			cv_view_set(&view, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
			if (cv_convoy_walk(&convoy, views, &view,
				    rte_cpu_to_be_16(CV_CONVOY_PORT)) != CV_CONVOY_OK)
				packets += see(&view);
			else
				for (unsigned k = 0; k < convoy.count; k++)
					packets += see(&views[k]);
			rte_pktmbuf_free(frame);
		}
	return packets;
}

static void threads_share_packets(void **unused)
{
	pthread_t threads[QUEUES];
	uint32_t offered[QUEUES] = {0}, out = 0;

	for (uintptr_t i = 0; i < QUEUES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	while (offered[0] < CONVOYS || offered[1] < CONVOYS) {
		for (unsigned i = 0; i < QUEUES; i++)
			if (offered[i] < CONVOYS && offer(i, (i * CONVOYS + offered[i]) * PACKETS))
				offered[i]++;
		out += look_outside();
		sched_yield();
	}
	while (out + __atomic_load_n(&dropped, __ATOMIC_RELAXED) < TOTAL) {
		out += look_outside();
		sched_yield();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(out + look_outside() + dropped, TOTAL);
	assert_int_equal(cv_mbuf_sets_in_use(), 0);
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(rte_mempool_avail_count(pools[i]), pool_counts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_packets)};

	return cmocka_run_group_tests(tests, begin, end);
}
