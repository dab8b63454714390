// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hop and the worker, with ports in memory and functions that do as the packet says: its
// first byte is the verdict wanted, its second the port it should leave by (0xff: as it is).
// Every test ends with the books balanced and every buffer back in the pool.
#include "test_packets.h"

#include <pthread.h>

#include "test_eal.h"
#include "worker.h"

#define PACKETS_MAX 256

static struct rte_mempool *pool;

// What a port gives and what it was given.
struct memory_port {
	struct cv_port port;
	struct rte_mbuf *in[PACKETS_MAX];
	unsigned in_count, in_next;
	uint16_t burst; // that rx gives at most
	unsigned room; // that tx takes altogether
	uint8_t sent[PACKETS_MAX][2]; // the third and fourth bytes: the packet's number
	uint32_t sent_bytes;
	unsigned sent_count;
};

static uint16_t memory_rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **to, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;
	uint16_t i = 0;

	while (i < RTE_MIN(n, memory->burst) && memory->in_next < memory->in_count)
		to[i++] = memory->in[memory->in_next++];
	return i;
}

static uint16_t memory_tx(struct cv_port *port, uint16_t lane, struct rte_mbuf **from, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;
	uint16_t i = 0;

	for (; i < n && memory->sent_count < memory->room; i++) {
		memcpy(memory->sent[memory->sent_count++],
			rte_pktmbuf_mtod_offset(from[i], uint8_t *, 2), 2);
		memory->sent_bytes += from[i]->pkt_len;
		rte_pktmbuf_free(from[i]);
	}
	return i;
}

static bool memory_ended(const struct cv_port *port)
{
	const struct memory_port *memory = (const struct memory_port *)port;

	return memory->in_next == memory->in_count;
}

static uint16_t obey(
	void *instance, unsigned worker, struct cv_view *views, uint8_t *verdicts, uint16_t n)
{
	uint16_t drops = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdicts[i] = views[i].data[0];
		if (views[i].data[1] != 0xff)
			views[i].out = views[i].data[1];
		drops += verdicts[i] != CV_NEXT;
	}
	return drops;
}

// One or two workers over three ports; two chains may share port 0 (the second: VLAN 10).
struct rig {
	struct memory_port ports[3];
	struct cv_port *port_list[3];
	struct cv_worker workers[2];
	struct cv_depart departs[2];
	struct cv_port_counters port_counters[2][3];
	struct cv_nf_counters counters[2];
	struct cv_step steps[2];
	struct cv_stage stages[2];
	struct cv_source sources[2];
	struct cv_ring *ring;
	enum cv_worker_phase phase;
};

static void rig_init(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	for (int i = 0; i < 3; i++) {
		struct memory_port *memory = &rig->ports[i];

		memory->port = (struct cv_port){.rx = memory_rx, .tx = memory_tx, .mtu = 1500};
		memory->burst = CV_BURST_MAX;
		memory->room = PACKETS_MAX;
		rig->port_list[i] = &memory->port;
	}
	for (int i = 0; i < 2; i++) {
		struct cv_worker *worker = &rig->workers[i];

		rig->departs[i].ports = rig->port_list;
		rig->departs[i].ports_count = 3;
		rig->departs[i].lane = i;
		rig->departs[i].pool = pool;
		rig->departs[i].counters = rig->port_counters[i];
		rig->steps[i] = (struct cv_step){.process = obey, .counters = &rig->counters[i]};
		rig->stages[i] =
			(struct cv_stage){.path = {.length = 1, .steps = &rig->steps[i]}, .out = 1};
		*worker = (struct cv_worker){.index = i,
			.sources = &rig->sources[i],
			.sources_count = 1,
			.depart = &rig->departs[i],
			.phase = &rig->phase,
			.ports_counters = rig->port_counters[i]};
	}
	rig->sources[0] = (struct cv_source){.port = rig->port_list[0],
		.one_stage = true,
		.waits = true,
		.stages = rig->stages,
		.stages_count = 1};
	cv_classifier_init(&rig->sources[0].classifier);
}

// A packet of len bytes that asks for a verdict and a port, with the next number.
static void give(struct rig *rig, uint8_t verdict, uint8_t out, uint16_t len, int vlan)
{
	struct memory_port *memory = &rig->ports[0];
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	assert_non_null(packet);
	assert_non_null(rte_pktmbuf_append(packet, len));
	data = rte_pktmbuf_mtod(packet, uint8_t *);
	memset(data, 0, len);
	data[0] = verdict;
	data[1] = out;
	data[2] = memory->in_count >> 8;
	data[3] = memory->in_count;
	if (vlan >= 0 && len >= 18)
		memcpy(data + 12, (uint8_t[]){0x81, 0, vlan >> 8, vlan, 8, 0}, 6);
	memory->in[memory->in_count++] = packet;
}

static unsigned number(const struct memory_port *memory, unsigned i)
{
	return memory->sent[i][0] << 8 | memory->sent[i][1];
}

static void *run_worker(void *worker)
{
	cv_worker_run(worker);
	return NULL;
}

// Runs the workers until every packet given has gone somewhere.
static void run(struct rig *rig, unsigned workers)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < workers; i++)
		pthread_create(&threads[i], NULL, run_worker, &rig->workers[i]);
	while (__atomic_load_n(&rig->ports[0].in_next, __ATOMIC_ACQUIRE) < rig->ports[0].in_count)
		sched_yield();
	__atomic_store_n(&rig->phase, CV_WORKER_DRAIN, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < workers; i++) {
		uint64_t before = __atomic_load_n(&rig->workers[i].turns, __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&rig->workers[i].turns, __ATOMIC_ACQUIRE) < before + 2 ||
			(rig->ring != NULL && cv_ring_count(rig->ring) > 0))
			sched_yield();
	}
	for (unsigned i = 0; i < workers; i++) {
		uint64_t before = __atomic_load_n(&rig->workers[i].turns, __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&rig->workers[i].turns, __ATOMIC_ACQUIRE) < before + 2)
			sched_yield();
	}
	__atomic_store_n(&rig->phase, CV_WORKER_EXIT, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < workers; i++)
		pthread_join(threads[i], NULL);
}

static uint64_t all_drops(const struct rig *rig)
{
	uint64_t sum = 0;

	for (int w = 0; w < 2; w++) {
		for (int i = 0; i < CV_DROPS_MAX; i++)
			sum += rig->counters[w].drops[i];
		for (int p = 0; p < 3; p++)
			for (int i = 0; i < CV_HOP_DROPS; i++)
				sum += rig->port_counters[w][p].drops[i];
	}
	return sum;
}

// received = sent + dropped, as counted and as seen by the ports; nothing held, nothing leaked.
static void balance(const struct rig *rig)
{
	uint64_t received = 0;
	uint64_t sent = 0;

	for (int p = 0; p < 3; p++) {
		uint64_t packets = 0;
		uint64_t bytes = 0;

		for (int w = 0; w < 2; w++) {
			received += rig->port_counters[w][p].rx_packets;
			packets += rig->port_counters[w][p].tx_packets;
			bytes += rig->port_counters[w][p].tx_bytes;
		}
		assert_int_equal(packets, rig->ports[p].sent_count);
		assert_int_equal(bytes, rig->ports[p].sent_bytes);
		sent += packets;
	}
	assert_int_equal(received, rig->ports[0].in_count);
	assert_int_equal(received, sent + all_drops(rig));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

// Bursts of every interesting size, every third packet dropped, for two different reasons.
static void drops_and_keeps_order(void **state)
{
	static const uint16_t bursts[] = {1, 31, 32, 33, 64};

	for (size_t b = 0; b < RTE_DIM(bursts); b++) {
		struct rig rig;
		unsigned at = 0;

		rig_init(&rig);
		rig.ports[0].burst = bursts[b];
		for (unsigned i = 0; i < 65; i++)
			give(&rig, i % 3 == 0 ? CV_DROP(i % 2) : CV_NEXT, 0xff, 60 + i, -1);
		run(&rig, 1);
		assert_int_equal(rig.counters[0].packets, 65);
		assert_int_equal(rig.counters[0].drops[0], 11);
		assert_int_equal(rig.counters[0].drops[1], 11);
		assert_int_equal(rig.ports[1].sent_count, 43);
		for (unsigned i = 0; i < 65; i++)
			if (i % 3 != 0)
				assert_int_equal(number(&rig.ports[1], at++), i);
		balance(&rig);
	}
}

static void all_dropped(void **state)
{
	struct rig rig;

	rig_init(&rig);
	for (unsigned i = 0; i < 64; i++)
		give(&rig, CV_DROP(14), 0xff, 60, -1);
	run(&rig, 1);
	assert_int_equal(rig.counters[0].drops[14], 64);
	balance(&rig);
}

static void leaves_by_the_port_it_names(void **state)
{
	struct rig rig;

	rig_init(&rig);
	for (unsigned i = 0; i < 200; i++)
		give(&rig, CV_NEXT, i % 3, 60, -1);
	run(&rig, 1);
	for (unsigned p = 0; p < 3; p++)
		for (unsigned i = 0; i < rig.ports[p].sent_count; i++)
			assert_int_equal(number(&rig.ports[p], i), i * 3 + p);
	assert_int_equal(rig.ports[1].sent_count, 67);
	balance(&rig);
}

static void too_big_for_its_port(void **state)
{
	struct rig rig;

	rig_init(&rig);
	rig.ports[1].port.mtu = 1000;
	give(&rig, CV_NEXT, 0xff, 1000 + 14 + 8, -1);
	give(&rig, CV_NEXT, 0xff, 1000 + 14 + 9, -1);
	give(&rig, CV_NEXT, 2, 1000 + 14 + 9, -1);
	run(&rig, 1);
	assert_int_equal(rig.ports[1].sent_count, 1);
	assert_int_equal(rig.ports[2].sent_count, 1);
	assert_int_equal(rig.port_counters[0][1].drops[CV_HOP_TOO_BIG], 1);
	balance(&rig);
}

static void a_port_that_is_full(void **state)
{
	struct rig rig;

	rig_init(&rig);
	rig.ports[1].room = 100;
	for (unsigned i = 0; i < 130; i++)
		give(&rig, CV_NEXT, 0xff, 60, -1);
	run(&rig, 1);
	assert_int_equal(rig.ports[1].sent_count, 100);
	assert_int_equal(rig.port_counters[0][1].drops[CV_HOP_TX_FULL], 30);
	balance(&rig);
}

// A packet in three segments becomes one; one that has no room for that is dropped.
static void scattered_packets(void **state)
{
	struct rig rig;

	rig_init(&rig);
	give(&rig, CV_NEXT, 0xff, 60, -1);
	give(&rig, CV_NEXT, 0xff, 2048, -1);
	for (int i = 0; i < 2; i++) {
		struct rte_mbuf *head = rig.ports[0].in[i];

		for (int segment = 0; segment < 2; segment++) {
			struct rte_mbuf *tail = rte_pktmbuf_alloc(pool);

			memset(rte_pktmbuf_append(tail, 100), 0x55, 100);
			assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
		}
	}
	run(&rig, 1);
	assert_int_equal(rig.ports[1].sent_count, 1);
	assert_int_equal(rig.ports[1].sent_bytes, 260);
	assert_int_equal(rig.port_counters[0][0].drops[CV_HOP_SEGMENTED], 1);
	balance(&rig);
}

static void chains_do_not_mix(void **state)
{
	struct rig rig;

	rig_init(&rig);
	rig.sources[0].one_stage = false;
	rig.sources[0].stages_count = 2;
	rig.stages[1].out = 2;
	assert_int_equal(cv_classifier_add_vlan(&rig.sources[0].classifier, 20, 0), 0);
	assert_int_equal(cv_classifier_add_vlan(&rig.sources[0].classifier, 10, 1), 0);
	for (unsigned i = 0; i < 200; i++)
		give(&rig, CV_NEXT, 0xff, 60, i % 4 == 3 ? -1 : i % 2 ? 10 : 20);
	run(&rig, 1);
	assert_int_equal(rig.counters[0].packets, 100);
	assert_int_equal(rig.counters[1].packets, 50);
	assert_int_equal(rig.port_counters[0][0].drops[CV_HOP_NO_CHAIN], 50);
	for (unsigned i = 0; i < rig.ports[1].sent_count; i++)
		assert_int_equal(number(&rig.ports[1], i), 2 * i);
	for (unsigned i = 0; i < rig.ports[2].sent_count; i++)
		assert_int_equal(number(&rig.ports[2], i), 4 * i + 1);
	balance(&rig);
}

// Two workers joined by a small ring: with waiting nothing is lost, without it some may be, and
// what is lost is counted.
static void pipeline(void **state)
{
	for (int waits = 0; waits < 2; waits++) {
		struct cv_error error = {0};
		struct rig rig;

		rig_init(&rig);
		rig.ring = cv_ring_create("test", CV_BURST_MAX, CV_BURST_VIEWS, &error);
		assert_non_null(rig.ring);
		rig.stages[0].sink = rig.ring;
		rig.sources[0].waits = waits;
		rig.ports[0].port.ended = memory_ended;
		rig.sources[1] = (struct cv_source){.ring = rig.ring,
			.one_stage = true,
			.stages = &rig.stages[1],
			.stages_count = 1};
		for (unsigned i = 0; i < PACKETS_MAX; i++)
			give(&rig, CV_NEXT, i % 2 ? 2 : 0xff, 60, -1);
		run(&rig, 2);
		if (waits)
			assert_int_equal(all_drops(&rig), 0);
		assert_int_equal(all_drops(&rig), rig.port_counters[0][1].drops[CV_HOP_RING_FULL]);
		assert_int_equal(rig.counters[0].packets, PACKETS_MAX);
		for (unsigned p = 1; p < 3; p++)
			for (unsigned i = 1; i < rig.ports[p].sent_count; i++)
				assert_true(
					number(&rig.ports[p], i - 1) < number(&rig.ports[p], i));
		balance(&rig);
		cv_ring_free(rig.ring);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_and_keeps_order),
		cmocka_unit_test(all_dropped),
		cmocka_unit_test(leaves_by_the_port_it_names),
		cmocka_unit_test(too_big_for_its_port),
		cmocka_unit_test(a_port_that_is_full),
		cmocka_unit_test(scattered_packets),
		cmocka_unit_test(chains_do_not_mix),
		cmocka_unit_test(pipeline),
	};
	int rc;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create(
		"test", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	rc = pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	test_eal_end();
	return rc;
}
