// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The path and the worker, with ports in memory and functions that do as the packet says: its
// first byte is the verdict wanted, its second the port it should leave by (0xff: as it is).
// Every test ends with packets conserved and every buffer back in the pool.
#include "tests/support/test_packets.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "chain/worker.h"
#include "tests/support/test_eal.h"

#define PACKETS_MAX 512

static struct rte_mempool *pool;

// What a port gives and what it was given.
struct memory_port {
	struct cv_port port;
	struct rte_mbuf *in[PACKETS_MAX];
	unsigned in_count, in_next;
	unsigned coalesced; // packets that rx_views gave
	uint16_t burst; // that rx gives at most
	unsigned room; // that tx takes altogether
	uint8_t sent[PACKETS_MAX][2]; // the third and fourth bytes: the packet's number
	uint32_t sent_bytes;
	unsigned sent_count;
};

// What a thread has received since it last gave its core away; the most of all threads.
static _Thread_local unsigned taken;
static unsigned most_taken;

// Instead of the C library's.
int sched_yield(void)
{
	if (taken > 0 && taken > __atomic_load_n(&most_taken, __ATOMIC_RELAXED))
		__atomic_store_n(&most_taken, taken, __ATOMIC_RELAXED);
	taken = 0;
	return (int)syscall(SYS_sched_yield);
}

static uint16_t memory_rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **to, uint16_t n)
{
	struct memory_port *memory = (struct memory_port *)port;
	uint16_t i = 0;

	while (i < RTE_MIN(n, memory->burst) && memory->in_next + i < memory->in_count) {
		to[i] = memory->in[memory->in_next + i];
		i++;
	}
	__atomic_store_n(&memory->in_next, memory->in_next + i, __ATOMIC_RELEASE); // with run()
	taken += i;
	return i;
}

// As a port that coalesces gives packets: one behind the other, up to 200 bytes.
static uint16_t memory_rx_views(struct cv_port *port, uint16_t queue, struct cv_view *views,
	uint16_t n, struct cv_buffers *buffers)
{
	struct memory_port *memory = (struct memory_port *)port;
	struct rte_mbuf *from[PACKETS_MAX], *to = NULL;
	uint16_t got = memory_rx(port, queue, from, n);

	buffers->n = 0;
	for (uint16_t i = 0; i < got; i++) {
		uint16_t len = from[i]->data_len;
		uint8_t *at;

		if (to == NULL || to->data_len + CV_CONVOY_PREFIX_LEN + len > 200) {
			to = rte_pktmbuf_alloc(pool);
			assert_non_null(to);
			buffers->views[buffers->n] = 0;
			buffers->buffers[buffers->n++] = to;
		}
		at = (uint8_t *)rte_pktmbuf_append(to, CV_CONVOY_PREFIX_LEN + len);
		assert_non_null(at);
		memcpy(at, (uint8_t[]){(uint8_t)(len >> 8), (uint8_t)len}, CV_CONVOY_PREFIX_LEN);
		at += CV_CONVOY_PREFIX_LEN;
		memcpy(at, rte_pktmbuf_mtod(from[i], uint8_t *), len);
		cv_view_set(&views[i], at, len);
		buffers->views[buffers->n - 1]++;
	}
	for (uint16_t b = 0, i = 0; b < buffers->n; i += buffers->views[b++])
		if (buffers->views[b] == 1)
			cv_buffer_set(buffers->buffers[b], views[i].data, views[i].len);
	rte_pktmbuf_free_bulk(from, got);
	memory->coalesced += got;
	return got;
}

static uint16_t memory_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **from, uint16_t n)
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

static uint16_t obey(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
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
	struct cv_tx txs[2];
	struct cv_port_counters port_counters[2][3];
	struct cv_nf_counters counters[2];
	struct cv_step steps[2];
	struct cv_path paths[2];
	const struct cv_path *path_list[2];
	struct cv_source sources[2];
	struct cv_ring *ring;
	enum cv_worker_phase phase;
	unsigned given; // packets, to port 0
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

		rig->txs[i].ports = rig->port_list;
		rig->txs[i].ports_count = 3;
		rig->txs[i].tx_queue = i;
		rig->txs[i].pool = pool;
		rig->txs[i].counters = rig->port_counters[i];
		rig->steps[i] = (struct cv_step){.process = obey, .counters = &rig->counters[i]};
		rig->path_list[i] = &rig->paths[i];
		rig->paths[i] = (struct cv_path){.length = 1, .steps = &rig->steps[i], .out = 1};
		*worker = (struct cv_worker){.paths.nf.index = i,
			.paths.ports_counters = rig->port_counters[i],
			.paths.pool = pool,
			.paths.leave = cv_worker_leave,
			.sources = &rig->sources[i],
			.sources_count = 1,
			.tx = &rig->txs[i],
			.phase = &rig->phase};
	}
	rig->sources[0] = (struct cv_source){.port = rig->port_list[0],
		.one_path = true,
		.waits = true,
		.paths = rig->path_list,
		.paths_count = 1};
	cv_classifier_init(&rig->sources[0].classifier);
}

static void write_packet(uint8_t *data, uint8_t verdict, uint8_t out, uint16_t len, unsigned number)
{
	memset(data, 0, len);
	data[0] = verdict;
	data[1] = out;
	data[2] = (uint8_t)(number >> 8);
	data[3] = (uint8_t)number;
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
	write_packet(data, verdict, out, len, rig->given++);
	if (vlan >= 0 && len >= 18)
		memcpy(data + 12, (uint8_t[]){0x81, 0, vlan >> 8, vlan, 8, 0}, 6);
	memory->in[memory->in_count++] = packet;
}

// A convoy of n packets of 60 bytes, with the next numbers.
static void give_convoy(struct rig *rig, unsigned n)
{
	struct cv_outer_config config = {.version = 4, .dst = {192, 0, 2, 1}};
	struct memory_port *memory = &rig->ports[0];
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
	uint32_t bytes = n * (CV_CONVOY_PREFIX_LEN + 60);
	struct cv_outer outer;
	uint8_t *at;

	assert_non_null(frame);
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	at = (uint8_t *)rte_pktmbuf_append(frame, (uint16_t)(outer.len + bytes));
	assert_non_null(at);
	cv_outer_write(&outer, at, (uint8_t)n, bytes, 0);
	at += outer.len;
	for (unsigned i = 0; i < n; i++, at += CV_CONVOY_PREFIX_LEN + 60) {
		memcpy(at, (uint8_t[]){0, 60}, CV_CONVOY_PREFIX_LEN);
		write_packet(at + CV_CONVOY_PREFIX_LEN, CV_NEXT, 0xff, 60, rig->given++);
	}
	memory->in[memory->in_count++] = frame;
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

// Lets the workers send what they have, and end.
static void run_to_end(struct rig *rig, const pthread_t *threads, unsigned workers)
{
	__atomic_store_n(&rig->phase, CV_WORKER_DRAIN, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < workers; i++) {
		uint64_t before = __atomic_load_n(&rig->workers[i].iterations, __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&rig->workers[i].iterations, __ATOMIC_ACQUIRE) <
				before + 2 ||
			(rig->ring != NULL && cv_ring_count(rig->ring) > 0))
			sched_yield();
	}
	for (unsigned i = 0; i < workers; i++) {
		uint64_t before = __atomic_load_n(&rig->workers[i].iterations, __ATOMIC_ACQUIRE);

		while (__atomic_load_n(&rig->workers[i].iterations, __ATOMIC_ACQUIRE) < before + 2)
			sched_yield();
	}
	__atomic_store_n(&rig->phase, CV_WORKER_EXIT, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < workers; i++)
		pthread_join(threads[i], NULL);
}

// Runs the workers until every packet given has gone somewhere.
static void run(struct rig *rig, unsigned workers)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < workers; i++)
		pthread_create(&threads[i], NULL, run_worker, &rig->workers[i]);
	while (__atomic_load_n(&rig->ports[0].in_next, __ATOMIC_ACQUIRE) < rig->ports[0].in_count)
		sched_yield();
	run_to_end(rig, threads, workers);
}

static uint64_t all_drops(const struct rig *rig)
{
	uint64_t sum = 0;

	for (int w = 0; w < 2; w++) {
		for (int i = 0; i < CV_DROPS_MAX; i++)
			sum += rig->counters[w].drops[i];
		for (int p = 0; p < 3; p++)
			for (int i = 0; i < CV_DROP_REASONS; i++)
				sum += rig->port_counters[w][p].drops[i];
	}
	return sum;
}

// Each reception is in the bucket of its frames: they are as many as the buckets allow.
static void assert_bursts(const struct cv_port_counters *counters)
{
	uint64_t least = counters->rx_bursts[0], most = counters->rx_bursts[0];

	for (unsigned i = 1; i < CV_RX_BURST_BUCKETS; i++) {
		least += counters->rx_bursts[i] * ((1u << (i - 1)) + 1);
		most += counters->rx_bursts[i] << i;
	}
	assert_in_range(counters->rx_frames, least, most);
}

// received = sent + dropped, as counted and as seen by the ports; nothing held, nothing leaked.
static void assert_conserved(const struct rig *rig)
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
	assert_int_equal(received, rig->given);
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
		assert_conserved(&rig);
	}
}

static uint64_t timed(const struct cv_latency *latency)
{
	uint64_t packets = 0;

	for (unsigned i = 0; i < CV_LATENCY_BUCKETS; i++)
		packets += latency->buckets[i];
	return packets;
}

static uint16_t obey_slowly(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	rte_delay_us_block(300);
	return obey(instance, worker, views, verdicts, n);
}

// The first burst is drawn, and no second one soon: its packets are timed in each place, those that
// are dropped up to there.
static void times_packets_of_drawn_bursts(void **state)
{
	const unsigned slow =
		18 - CV_LATENCY_SHORTEST_BITS; // up to 2^18 ns, which is less than 300 us
	struct rig rig;
	struct cv_port_counters *counters = rig.port_counters[0];

	rig_init(&rig);
	rig.sources[0].waits = false;
	rig.ports[0].burst = 10;
	rig.steps[0].process = obey_slowly;
	rig.workers[0].paths.draw.random = 1; // not by chance: the next is burst 65 or so
	for (unsigned i = 0; i < 20; i++)
		give(&rig, i == 3 ? CV_DROP(0) : CV_NEXT, i == 5 ? 2 : 0xff, 60, -1);
	run(&rig, 1);
	assert_int_equal(timed(&counters[0].rx_wait), 10);
	assert_int_equal(timed(&counters[0].rx_latency), 10);
	assert_int_equal(timed(&rig.counters[0].latency), 10);
	assert_int_equal(timed(&rig.counters[0].ring_latency), 0);
	assert_int_equal(timed(&counters[1].tx_latency), 8);
	assert_int_equal(timed(&counters[2].tx_latency), 1);
	for (unsigned i = 0; i <= slow; i++)
		assert_int_equal(rig.counters[0].latency.buckets[i], 0);
	assert_true(rig.counters[0].latency.ns >= 10 * 300000);
	assert_conserved(&rig);
}

static void a_time_is_in_the_bucket_that_ends_there(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned bucket;
	} cases[] = {{0, 0}, {1, 0}, {64, 0}, {66, 1}, {127, 1}, {130, 2}, {1 << 20, 14},
		{UINT64_MAX / 4096, CV_LATENCY_BUCKETS - 1}};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct cv_latency latency = {0};

		// A tick more or less than what it is in ns.
		cv_latency_add(&latency,
			(uint64_t)((double)cases[i].ns / NS_PER_S * (double)rte_get_tsc_hz()), 3);
		assert_int_equal(latency.buckets[cases[i].bucket], 3);
		assert_int_equal(timed(&latency), 3);
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
	assert_conserved(&rig);
}

// Never more than a ring of 256 holds, however they come: the next one on the core empties it.
static void gives_the_core_away_in_time(void **state)
{
	for (int views = 0; views < 2; views++) {
		struct rig rig;

		rig_init(&rig);
		rig.workers[0].idle = CV_WORKER_YIELD;
		rig.ports[0].burst = views ? 150 : 50;
		rig.ports[0].port.rx_views = views ? memory_rx_views : NULL;
		for (unsigned i = 0; i < 500; i++)
			give(&rig, CV_NEXT, 0xff, 60, -1);
		most_taken = 0;
		run(&rig, 1);
		assert_int_equal(rig.ports[1].sent_count, 500);
		assert_int_equal(most_taken, 256);
		assert_conserved(&rig);
	}
}

static double thread_s(pthread_t thread)
{
	struct timespec used = {0};
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &used), 0);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

// Without packets it takes little of its core, and all that come later are forwarded.
static void sleeps_without_work(void **state)
{
	const struct timespec pause = {.tv_nsec = 200000000};
	struct rig rig;
	pthread_t thread;
	double used;

	rig_init(&rig);
	rig.workers[0].idle = CV_WORKER_SLEEP;
	pthread_create(&thread, NULL, run_worker, &rig.workers[0]);
	nanosleep(&pause, NULL);
	used = thread_s(thread);
	nanosleep(&pause, NULL);
	assert_true(thread_s(thread) - used < 0.15);
	run_to_end(&rig, &thread, 1);
	rig.phase = CV_WORKER_RUN;
	for (unsigned i = 0; i < 500; i++)
		give(&rig, CV_NEXT, 0xff, 60, -1);
	run(&rig, 1);
	assert_int_equal(rig.ports[1].sent_count, 500);
	assert_conserved(&rig);
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
	assert_conserved(&rig);
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
	assert_int_equal(rig.port_counters[0][1].drops[CV_DROP_TOO_BIG], 1);
	assert_conserved(&rig);
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
	assert_int_equal(rig.port_counters[0][1].drops[CV_DROP_TX_FULL], 30);
	assert_conserved(&rig);
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
	assert_int_equal(rig.port_counters[0][0].drops[CV_DROP_SEGMENTED], 1);
	assert_conserved(&rig);
}

static void chains_do_not_mix(void **state)
{
	struct rig rig;

	rig_init(&rig);
	rig.sources[0].one_path = false;
	rig.sources[0].paths_count = 2;
	rig.paths[1].out = 2;
	assert_int_equal(cv_classifier_add_vlan(&rig.sources[0].classifier, 20, 0), 0);
	assert_int_equal(cv_classifier_add_vlan(&rig.sources[0].classifier, 10, 1), 0);
	for (unsigned i = 0; i < 200; i++)
		give(&rig, CV_NEXT, 0xff, 60, i % 4 == 3 ? -1 : i % 2 ? 10 : 20);
	run(&rig, 1);
	assert_int_equal(rig.counters[0].packets, 100);
	assert_int_equal(rig.counters[1].packets, 50);
	assert_int_equal(rig.port_counters[0][0].drops[CV_DROP_NO_CHAIN], 50);
	for (unsigned i = 0; i < rig.ports[1].sent_count; i++)
		assert_int_equal(number(&rig.ports[1], i), 2 * i);
	for (unsigned i = 0; i < rig.ports[2].sent_count; i++)
		assert_int_equal(number(&rig.ports[2], i), 4 * i + 1);
	assert_conserved(&rig);
}

// A port that may carry convoys gives views as long as there are none, frames when there are. All
// come out, in their order, whichever it gives when the one becomes the other.
static void convoys_among_plain_packets(void **state)
{
	static const struct {
		const char *description;
		unsigned plain; // that come first
		unsigned convoy; // the packets of each that comes then
		unsigned between; // plain packets between two convoys
		bool ring; // behind which views are not taken
		bool coalesces; // are views taken at all?
	} rows[] = {
		{"no convoys", 300, 0, 0, false, true},
		{"nothing but convoys", 0, 7, 0, false, false},
		{"convoys after plain packets", 150, 7, 0, false, true},
		{"a convoy that shares a buffer", 150, 1, 1, false, true},
		{"convoys among plain packets", 150, 2, 3, false, true},
		{"convoys now and then", 150, 20, 100, false, true},
		{"into a ring", 300, 2, 1, true, false},
	};

	for (size_t row = 0; row < RTE_DIM(rows); row++) {
		struct cv_frame_counters frames = {0};
		const struct cv_convoy_rx rx = {
			.udp_port = RTE_BE16(CV_CONVOY_PORT), .counters = &frames};
		struct cv_error error = {0};
		struct rig rig;

		print_message("  %s\n", rows[row].description);
		rig_init(&rig);
		rig.ports[0].port.rx_views = memory_rx_views;
		rig.ports[0].burst = 5;
		rig.sources[0].convoys = &rx;
		if (rows[row].ring) {
			rig.ring = cv_ring_create("test", 512, 2 * CV_CONVOYS_VIEWS, &error);
			assert_non_null(rig.ring);
			rig.paths[0].sink = rig.ring;
			rig.sources[1] = (struct cv_source){.ring = rig.ring,
				.one_path = true,
				.paths = &rig.path_list[1],
				.paths_count = 1};
		}
		for (unsigned i = 0; i < rows[row].plain; i++)
			give(&rig, CV_NEXT, 0xff, 60, -1);
		while (rows[row].convoy > 0 &&
			rig.given + rows[row].convoy + rows[row].between <= PACKETS_MAX) {
			give_convoy(&rig, rows[row].convoy);
			for (unsigned i = 0; i < rows[row].between; i++)
				give(&rig, CV_NEXT, 0xff, 60, -1);
		}
		run(&rig, rows[row].ring ? 2 : 1);
		assert_int_equal(rig.ports[1].sent_count, rig.given);
		for (unsigned i = 0; i < rig.given; i++)
			assert_int_equal(number(&rig.ports[1], i), i);
		assert_int_equal(rig.ports[0].coalesced > 0, rows[row].coalesces);
		assert_int_equal(rig.port_counters[0][0].rx_frames, rig.ports[0].in_count);
		assert_bursts(&rig.port_counters[0][0]);
		assert_conserved(&rig);
		cv_ring_free(rig.ring);
	}
}

// Two workers connected by a small ring: with waiting nothing is lost, without it some may be, and
// what is lost is counted.
static void pipeline(void **state)
{
	for (int waits = 0; waits < 2; waits++) {
		struct cv_error error = {0};
		struct rig rig;

		rig_init(&rig);
		rig.ring = cv_ring_create("test", CV_BURST_MAX, CV_BURST_VIEWS, &error);
		assert_non_null(rig.ring);
		rig.paths[0].sink = rig.ring;
		rig.sources[0].waits = waits;
		rig.ports[0].port.ended = memory_ended;
		rig.sources[1] = (struct cv_source){.ring = rig.ring,
			.one_path = true,
			.paths = &rig.path_list[1],
			.paths_count = 1};
		for (unsigned i = 0; i < 256; i++)
			give(&rig, CV_NEXT, i % 2 ? 2 : 0xff, 60, -1);
		run(&rig, 2);
		if (waits)
			assert_int_equal(all_drops(&rig), 0);
		assert_int_equal(all_drops(&rig), rig.port_counters[0][1].drops[CV_DROP_RING_FULL]);
		assert_int_equal(rig.counters[0].packets, 256);
		assert_in_range(timed(&rig.counters[1].ring_latency), 1, 256);
		assert_int_equal(timed(&rig.counters[0].ring_latency), 0);
		for (unsigned p = 1; p < 3; p++)
			for (unsigned i = 1; i < rig.ports[p].sent_count; i++)
				assert_true(
					number(&rig.ports[p], i - 1) < number(&rig.ports[p], i));
		assert_conserved(&rig);
		cv_ring_free(rig.ring);
	}
}

// A function that writes its instance's number into packets, and one that drops those of another
// number than its own.
static uint16_t write_number(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		memcpy(views[i].data + 4, instance, sizeof(unsigned));
		verdicts[i] = CV_NEXT;
	}
	return 0;
}

static uint16_t compare_number(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	uint16_t drops = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdicts[i] = memcmp(views[i].data + 4, instance, sizeof(unsigned)) == 0
				      ? CV_NEXT
				      : CV_DROP(1);
		drops += verdicts[i] != CV_NEXT;
	}
	return drops;
}

// A port that always has packets, until somebody says stop.
static bool endless;

static uint16_t endless_rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **to, uint16_t n)
{
	uint16_t i = 0;

	while (__atomic_load_n(&endless, __ATOMIC_ACQUIRE) && i < n &&
		(to[i] = rte_pktmbuf_alloc(pool)) != NULL)
		memset(rte_pktmbuf_append(to[i++], 60), 0, 60);
	return i;
}

static uint16_t free_tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **from, uint16_t n)
{
	rte_pktmbuf_free_bulk(from, n);
	return n;
}

struct change {
	struct cv_step *steps;
	void *instances[2];
};

static void change_both(void *argument)
{
	const struct change *change = argument;

	for (unsigned i = 0; i < 2; i++)
		change->steps[i].instance = change->instances[i];
}

static unsigned *new_number(unsigned number)
{
	unsigned *instance = malloc(sizeof(*instance)); // each by itself: ASan sees who is late

	assert_non_null(instance);
	*instance = number;
	return instance;
}

// Both workers get the next number for both functions; those before are freed when they are done.
static void change_numbers(struct rig *rig, struct cv_step steps[2][2], unsigned number)
{
	unsigned *next[2] = {new_number(number), new_number(number)};
	void *before[2] = {steps[0][0].instance, steps[0][1].instance};
	struct cv_errand errands[2];
	struct change changes[2];

	for (unsigned w = 0; w < 2; w++) {
		changes[w] = (struct change){steps[w], {next[0], next[1]}};
		errands[w] = (struct cv_errand){change_both, &changes[w]};
		__atomic_store_n(&rig->workers[w].errand, &errands[w], __ATOMIC_RELEASE);
	}
	for (unsigned w = 0; w < 2; w++)
		while (__atomic_load_n(&rig->workers[w].errand, __ATOMIC_ACQUIRE) != NULL)
			nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
	free(before[0]);
	free(before[1]);
}

// Two workers run two functions. Both get other instances again and again while packets flow: no
// packet meets those of two configurations, none is lost, and nobody uses one that is gone.
static void packets_meet_whole_configurations(void **state)
{
	struct cv_step steps[2][2] = {0};
	struct cv_nf_counters counters[2][2] = {0};
	void *first[2] = {new_number(0), new_number(0)};
	uint64_t received = 0, sent = 0;
	pthread_t threads[2];
	struct rig rig;

	rig_init(&rig);
	endless = true;
	rig.ports[1].port.tx = free_tx;
	for (unsigned w = 0; w < 2; w++) {
		rig.ports[2 * w].port.rx = endless_rx;
		rig.sources[w] = rig.sources[0];
		rig.sources[w].port = rig.port_list[2 * w];
		rig.sources[w].in = (uint8_t)(2 * w);
		rig.sources[w].paths = &rig.path_list[w];
		rig.paths[w] = (struct cv_path){.length = 2, .steps = steps[w], .out = 1};
		for (unsigned i = 0; i < 2; i++)
			steps[w][i] =
				(struct cv_step){.process = i == 0 ? write_number : compare_number,
					.instance = first[i],
					.counters = &counters[w][i]};
	}
	for (unsigned w = 0; w < 2; w++)
		pthread_create(&threads[w], NULL, run_worker, &rig.workers[w]);
	for (unsigned number = 1; number <= 200; number++)
		change_numbers(&rig, steps, number);
	__atomic_store_n(&endless, false, __ATOMIC_RELEASE);
	run_to_end(&rig, threads, 2);
	for (unsigned w = 0; w < 2; w++) {
		received += rig.port_counters[w][2 * w].rx_packets;
		sent += rig.port_counters[w][1].tx_packets;
		assert_true(counters[w][0].packets > 0);
		assert_int_equal(counters[w][1].packets, counters[w][0].packets);
		assert_int_equal(counters[w][1].drops[1], 0);
	}
	assert_int_equal(received, sent);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	free(steps[0][0].instance);
	free(steps[0][1].instance);
}

static void end_it(void *argument)
{
	struct rig *rig = argument;

	__atomic_store_n(&rig->phase, CV_WORKER_EXIT, __ATOMIC_RELEASE);
}

static void tick_too_late(void *instance, struct cv_nf_worker *worker)
{
	fail_msg("a tick after the end");
}

// An errand in which the phase becomes the end is the last that the worker does: another process may
// own the memory of its functions.
static void ends_with_its_errand(void **state)
{
	struct cv_errand errand;
	struct cv_tick tick;
	struct rig rig;

	rig_init(&rig);
	give(&rig, CV_NEXT, 0xff, 60, -1);
	tick = (struct cv_tick){tick_too_late, &rig.paths[0], &rig.steps[0]};
	rig.workers[0].ticks = &tick;
	rig.workers[0].ticks_count = 1;
	errand = (struct cv_errand){end_it, &rig};
	rig.workers[0].errand = &errand;
	cv_worker_run(&rig.workers[0]);
	assert_null(rig.workers[0].errand);
	assert_int_equal(rig.ports[0].in_next, 0);
	rte_pktmbuf_free(rig.ports[0].in[0]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_and_keeps_order),
		cmocka_unit_test(packets_meet_whole_configurations),
		cmocka_unit_test(all_dropped),
		cmocka_unit_test(times_packets_of_drawn_bursts),
		cmocka_unit_test(a_time_is_in_the_bucket_that_ends_there),
		cmocka_unit_test(gives_the_core_away_in_time),
		cmocka_unit_test(sleeps_without_work),
		cmocka_unit_test(leaves_by_the_port_it_names),
		cmocka_unit_test(too_big_for_its_port),
		cmocka_unit_test(a_port_that_is_full),
		cmocka_unit_test(scattered_packets),
		cmocka_unit_test(chains_do_not_mix),
		cmocka_unit_test(convoys_among_plain_packets),
		cmocka_unit_test(pipeline),
		cmocka_unit_test(ends_with_its_errand),
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
