// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a full port costs: how often it is asked, and that a peer which takes packets, however late,
// loses none. Steps are counted, not time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "chain/tx_buffer.h"
#include "tests/support/test_eal.h"

#define BURST 64
#define BURSTS 50
#define ATTEMPTS 64 // a full credit
#define EARNED 8 // attempts that a packet taken is worth

static struct rte_mempool *pool;
static unsigned pool_count;

// A port whose peer makes room for `takes` packets at each call number period, 2 * period and so on.
struct slow_port {
	struct cv_port port;
	unsigned period; // 0: never
	unsigned takes;
	unsigned calls;
	unsigned taken;
};

static uint16_t take(struct slow_port *slow, uint16_t n)
{
	uint16_t took = 0;

	slow->calls++;
	if (slow->period > 0 && slow->calls % slow->period == 0)
		took = (uint16_t)RTE_MIN(n, slow->takes);
	slow->taken += took;
	return took;
}

static uint16_t port_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	const uint16_t took = take((struct slow_port *)port, n);

	rte_pktmbuf_free_bulk(packets, took);
	return took;
}

static uint16_t port_tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	return take((struct slow_port *)port, n);
}

struct rig {
	struct slow_port slow;
	struct cv_port *ports[1];
	struct cv_port_counters counters;
	struct cv_tx tx;
};

static void begin_rig(struct rig *rig, unsigned period, unsigned takes, bool views)
{
	*rig = (struct rig){.slow = {.period = period, .takes = takes}};
	rig->slow.port.tx = port_tx;
	rig->slow.port.tx_views = views ? port_tx_views : NULL;
	rig->ports[0] = &rig->slow.port;
	rig->tx.ports = rig->ports;
	rig->tx.ports_count = 1;
	rig->tx.counters = &rig->counters;
	rig->tx.pool = pool;
}

// Sends n packets to the port. Returns how often it was asked.
static unsigned send_burst(struct rig *rig, uint16_t n, bool views)
{
	static struct cv_burst burst;
	const unsigned before = rig->slow.calls;

	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, burst.buffers.buffers, n), 0);
	burst.n = burst.buffers.n = n;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = burst.buffers.buffers[i];

		burst.buffers.views[i] = 1;
		burst.views[i] = (struct cv_view){
			.data = (uint8_t *)rte_pktmbuf_append(packet, 60), .len = 60};
		if (!views)
			cv_tx_buffer_put(&rig->tx, 0, packet, 1);
	}
	if (views)
		assert_true(cv_tx_buffer_send_burst(&rig->tx, 0, &burst, n * 60u));
	else
		cv_tx_buffer_flush(&rig->tx, 0);
	return rig->slow.calls - before;
}

static void end_rig(const struct rig *rig, unsigned packets)
{
	const uint64_t lost = rig->counters.drops[CV_DROP_TX_FULL];

	assert_int_equal(rig->counters.tx_packets, rig->slow.taken);
	assert_int_equal(rig->counters.tx_bytes, rig->slow.taken * 60u);
	assert_int_equal(rig->slow.taken + lost, packets);
	assert_int_equal(rte_mempool_avail_count(pool), pool_count);
}

static void a_silent_peer_is_asked_once_a_burst(void **state)
{
	for (unsigned views = 0; views < 2; views++) {
		struct rig rig;

		begin_rig(&rig, 0, 0, views);
		assert_int_equal(send_burst(&rig, BURST, views), 1 + ATTEMPTS);
		for (unsigned i = 1; i < BURSTS; i++)
			assert_int_equal(send_burst(&rig, BURST, views), 1);
		end_rig(&rig, BURST * BURSTS);
		assert_int_equal(rig.slow.taken, 0);
	}
}

// Such peers keep up in the end: nothing is lost, as long as they take as many as are waited for.
static void a_peer_that_takes_loses_nothing(void **state)
{
	static const struct {
		unsigned period, takes;
	} rows[] = {{1, BURST}, {1, 1}, {2, 1}, {EARNED, 1}, {ATTEMPTS, BURST}, {ATTEMPTS, 8}};

	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		for (unsigned views = 0; views < 2; views++) {
			struct rig rig;

			begin_rig(&rig, rows[row].period, rows[row].takes, views);
			for (unsigned i = 0; i < BURSTS; i++)
				send_burst(&rig, BURST, views);
			end_rig(&rig, BURST * BURSTS);
			assert_int_equal(rig.slow.taken, BURST * BURSTS);
		}
	}
}

// One that takes a packet now and then is waited for as it takes, and no longer.
static void a_dripping_peer_pays_for_the_wait(void **state)
{
	for (unsigned period = EARNED + 2; period < 3 * ATTEMPTS; period++) {
		for (unsigned views = 0; views < 2; views++) {
			struct rig rig;

			begin_rig(&rig, period, 1, views);
			for (unsigned i = 0; i < BURSTS; i++)
				send_burst(&rig, BURST, views);
			assert_in_range(rig.slow.calls, BURSTS,
				BURSTS + ATTEMPTS + (EARNED + 1) * rig.slow.taken);
			end_rig(&rig, BURST * BURSTS);
		}
	}
}

static void a_peer_that_comes_back_is_waited_for_again(void **state)
{
	for (unsigned views = 0; views < 2; views++) {
		struct rig rig;

		begin_rig(&rig, 0, 0, views);
		for (unsigned i = 0; i < BURSTS; i++)
			send_burst(&rig, BURST, views);
		rig.slow.period = 1;
		rig.slow.takes = BURST;
		assert_int_equal(send_burst(&rig, BURST, views), 1);
		rig.slow.calls = 0;
		rig.slow.period = ATTEMPTS;
		assert_int_equal(send_burst(&rig, BURST, views), ATTEMPTS);
		assert_int_equal(rig.slow.taken, 2 * BURST);
		end_rig(&rig, BURST * (BURSTS + 2));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_peer_is_asked_once_a_burst),
		cmocka_unit_test(a_peer_that_takes_loses_nothing),
		cmocka_unit_test(a_dripping_peer_pays_for_the_wait),
		cmocka_unit_test(a_peer_that_comes_back_is_waited_for_again),
	};
	int failed = 1;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("pool", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool != NULL) {
		pool_count = rte_mempool_avail_count(pool);
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	}
	test_eal_end();
	return failed;
}
