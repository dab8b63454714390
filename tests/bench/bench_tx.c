// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the node itself spends on a packet between the port that it came by and the one that it leaves
// by, in cycles: taking a burst over, and sending it on. The ports cost nothing.
//
//   bench-tx [REPEATS [BYTES [WAY]]]        51, several sizes, all ways
//
// Prints one JSON object: {"schema": "convoy.bench.tx/1", "results": [{"packet_bytes", "packets":
// how many of them share a frame, and of each way {"median", "min", "max"}}]}. The ways:
//
//   plain      packets that came singly leave singly: nothing leads to a next hop
//   packed     packets that came singly, but share buffers, leave to a next hop
//   buffers    packets that came singly, in a buffer each, leave to a next hop
//   convoys    packets that came in convoys leave to a next hop
//   carries    packets that came singly, by a port that may carry convoys, leave singly
//   cut        as buffers, to a next hop that takes packets in two frames
//   cut-packed as packed, to such a next hop
//   joined     frames of such a next hop are received, and their packets leave singly
//
// A poll iteration has 256 packets, as many as a port gives, or CV_CONVOYS_MAX frames where some
// may be convoys. Each way's iterations are measured by themselves, and the ways one after the
// other, repeat by repeat.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "chain/tx.h"
#include "chain/worker.h"

#define ITERATIONS 64 // per repeat
#define REPEATS_MAX 1001
#define FRAME_BYTES 1468 // of packets with their lengths, in a frame of MTU 1500
#define WAYS 8

static struct rte_mempool *pool;
static struct cv_port_counters counters[2];
static struct cv_frame_counters next_hop_counters[1], rx_counters;
static struct cv_tx
	*txs[3]; // without next hops, with one, with one that takes packets in two frames
static struct cv_next_hop_rcu next_hop_rcu, cutting_rcu;
static struct rte_mbuf **kept; // what the port sends; NULL: it is freed
static unsigned kept_count;
static const struct cv_convoy_rx convoy_rx = {
	.udp_port = RTE_BE16(CV_CONVOY_PORT), .counters = &rx_counters};
static struct cv_convoy_rx joining_rx = {
	.udp_port = RTE_BE16(CV_CONVOY_PORT), .counters = &rx_counters};
static unsigned packet_bytes, share; // as they are now

static void die(const char *what)
{
	fprintf(stderr, "bench-tx: %s\n", what);
	exit(1);
}

static uint16_t port_tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	if (kept != NULL)
		for (unsigned i = 0; i < n; i++)
			kept[kept_count++] = packets[i];
	else
		rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static uint16_t port_tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	return n;
}

static struct cv_port port = {.tx = port_tx, .tx_views = port_tx_views, .mtu = 1500};

// Packets of an iteration: 256, or the frames that come closest.
static unsigned packets_of_turn(void)
{
	return CV_VIEWS_MAX / share * share;
}

static const struct cv_outer *outer(void)
{
	return &cv_next_hop_at(next_hop_rcu.table, 0)->outer;
}

// Writes packets one behind the other, with their lengths.
static void write_packets(uint8_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++, at += CV_CONVOY_PREFIX_LEN + packet_bytes) {
		at[0] = (uint8_t)(packet_bytes >> 8);
		at[1] = (uint8_t)packet_bytes;
		memset(at + CV_CONVOY_PREFIX_LEN, (int)i, 42);
		at[CV_CONVOY_PREFIX_LEN + 12] = 8; // IPv4
		at[CV_CONVOY_PREFIX_LEN + 13] = 0;
	}
}

// As a port gives packets that it coalesces.
static void coalesce(struct cv_burst *burst)
{
	struct cv_buffers *buffers = &burst->buffers;
	struct cv_view *view = burst->views;

	buffers->n = (uint16_t)(packets_of_turn() / share);
	if (buffers->n > CV_BUFFERS_MAX)
		buffers->n = CV_BUFFERS_MAX;
	if (rte_pktmbuf_alloc_bulk(pool, buffers->buffers, buffers->n) != 0)
		die("no buffers");
	for (unsigned b = 0; b < buffers->n; b++) {
		uint8_t *at = rte_pktmbuf_mtod(buffers->buffers[b], uint8_t *);

		write_packets(at, share);
		buffers->views[b] = (uint8_t)share;
		for (unsigned i = 0; i < share; i++, at += CV_CONVOY_PREFIX_LEN + packet_bytes)
			cv_view_set(view++, at + CV_CONVOY_PREFIX_LEN, (uint16_t)packet_bytes);
		if (share == 1)
			cv_buffer_set(buffers->buffers[b], burst->views[b].data, packet_bytes);
	}
}

// An iteration with packets that came singly. Returns how many.
static unsigned singly(struct cv_tx *tx, uint64_t *cycles)
{
	static struct cv_burst burst;
	uint64_t then;
	unsigned n;

	coalesce(&burst);
	n = burst.buffers.n * share;
	then = rte_rdtsc();
	cv_burst_take_views(&burst, (uint16_t)n, 0, 1, &counters[0]);
	cv_tx_burst(tx, &burst);
	cv_tx_flush(tx, CV_TX_ALL);
	*cycles += rte_rdtsc() - then;
	return n;
}

static unsigned plain(uint64_t *cycles)
{
	return singly(txs[0], cycles);
}

static unsigned packed(uint64_t *cycles)
{
	return singly(txs[1], cycles);
}

static unsigned buffers(uint64_t *cycles)
{
	const unsigned now = share;
	unsigned n;

	share = 1;
	n = singly(txs[1], cycles);
	share = now;
	return n;
}

static unsigned cut_with(uint64_t *cycles)
{
	const unsigned now = share;
	unsigned n;

	share = 1;
	n = singly(txs[2], cycles);
	share = now;
	return n;
}

static unsigned cut_packed(uint64_t *cycles)
{
	return singly(txs[2], cycles);
}

// Takes received frames over and sends their packets on.
static void take(
	struct cv_tx *tx, const struct cv_convoy_rx *rx, struct rte_mbuf **frames, unsigned n)
{
	static struct cv_burst burst;

	for (unsigned taken = 0; taken < n;) {
		taken += cv_burst_load_convoys(
			&burst, frames + taken, (uint16_t)(n - taken), 0, 1, rx, &counters[0]);
		cv_tx_burst(tx, &burst);
	}
	cv_tx_flush(tx, CV_TX_ALL);
}

static unsigned convoys(uint64_t *cycles)
{
	struct rte_mbuf *frames[CV_CONVOYS_MAX];
	unsigned n = RTE_MIN(packets_of_turn() / share, (unsigned)CV_CONVOYS_MAX);
	uint64_t then;

	if (rte_pktmbuf_alloc_bulk(pool, frames, n) != 0)
		die("no buffers");
	for (unsigned i = 0; i < n; i++) {
		uint32_t bytes = share * (CV_CONVOY_PREFIX_LEN + packet_bytes);
		uint8_t *data = rte_pktmbuf_mtod(frames[i], uint8_t *);

		write_packets(data + outer()->len, share);
		cv_outer_write(outer(), data, (uint8_t)share, bytes, 0);
		cv_buffer_set(frames[i], data, outer()->len + bytes);
	}
	then = rte_rdtsc();
	take(txs[1], &convoy_rx, frames, n);
	*cycles += rte_rdtsc() - then;
	return n * share;
}

static unsigned carries(uint64_t *cycles)
{
	struct rte_mbuf *frames[CV_CONVOYS_MAX];
	uint64_t then;

	if (rte_pktmbuf_alloc_bulk(pool, frames, CV_CONVOYS_MAX) != 0)
		die("no buffers");
	for (unsigned i = 0; i < CV_CONVOYS_MAX; i++) {
		uint8_t *data = rte_pktmbuf_mtod(frames[i], uint8_t *);

		write_packets(data - CV_CONVOY_PREFIX_LEN, 1);
		cv_buffer_set(frames[i], data, packet_bytes);
	}
	then = rte_rdtsc();
	take(txs[0], &convoy_rx, frames, CV_CONVOYS_MAX);
	*cycles += rte_rdtsc() - then;
	return CV_CONVOYS_MAX;
}

// Of the frames that 64 packets became.
static unsigned joined(uint64_t *cycles)
{
	struct rte_mbuf *frames[CV_BURST_MAX];
	const unsigned now = share;
	uint64_t then;
	unsigned n;

	share = 1;
	kept = frames;
	kept_count = 0;
	n = singly(txs[2], &(uint64_t){0});
	kept = NULL;
	share = now;
	then = rte_rdtsc();
	take(txs[0], &joining_rx, frames, kept_count);
	*cycles += rte_rdtsc() - then;
	return n;
}

static const struct way {
	const char *name;
	unsigned (*iterate)(uint64_t *cycles); // adds its own; returns how many packets
} ways[WAYS] = {{"plain", plain}, {"packed", packed}, {"buffers", buffers}, {"convoys", convoys},
	{"carries", carries}, {"cut", cut_with}, {"cut-packed", cut_packed}, {"joined", joined}};

static double measure(const struct way *way)
{
	uint64_t cycles = 0, packets = 0;

	for (unsigned i = 0; i < ITERATIONS; i++)
		packets += way->iterate(&cycles);
	return (double)cycles / (double)packets;
}

static struct cv_tx *make_tx(struct cv_next_hop_rcu *rcu)
{
	static struct cv_port *ports[] = {&port, &port};
	struct cv_tx *tx = calloc(1, sizeof(*tx));

	if (tx == NULL)
		die("no memory");
	tx->ports = ports;
	tx->ports_count = 2;
	tx->pool = pool;
	tx->counters = counters;
	tx->next_hop_rcu = rcu;
	tx->next_hop_counters = next_hop_counters;
	return tx;
}

static void begin(void)
{
	char prefix[32];
	char *argv[] = {"bench-tx", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "error", "--file-prefix", prefix, NULL};
	const struct cv_next_hop_entry entry = {.key = cv_next_hop_key(1, CV_SCID_NONE, 0)};
	struct cv_outer_config config = {.version = 4, .mtu = 1500};
	struct cv_next_hop next_hop = {.port = 1};

	snprintf(prefix, sizeof(prefix), "bench-tx-%d", getpid());
	if (rte_eal_init((int)RTE_DIM(argv) - 1, argv) < 0)
		die("the EAL did not start");
	pool = rte_pktmbuf_pool_create("packets", 4095, 256, 0, 2304, SOCKET_ID_ANY);
	if (pool == NULL || cv_outer_set(&next_hop.outer, &config, NULL) != 0 ||
		cv_next_hop_rcu_init(&next_hop_rcu,
			cv_next_hop_table_make(&next_hop, 1, &entry, 1, 0, NULL), 1) != 0)
		die("no memory");
	config.fragment = true;
	joining_rx.pool = pool;
	joining_rx.reassembly = cv_reassembly_make(2048);
	if (cv_outer_set(&next_hop.outer, &config, NULL) != 0 || joining_rx.reassembly == NULL ||
		cv_next_hop_rcu_init(&cutting_rcu,
			cv_next_hop_table_make(&next_hop, 1, &entry, 1, 0, NULL), 1) != 0)
		die("no memory");
	cv_next_hop_rcu_online(&next_hop_rcu, 0);
	cv_next_hop_rcu_online(&cutting_rcu, 0);
	txs[0] = make_tx(NULL);
	txs[1] = make_tx(&next_hop_rcu);
	txs[2] = make_tx(&cutting_rcu);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// Measures the ways, or one of them alone, and prints a row.
static void row(int repeats, unsigned bytes, const char *only, bool first)
{
	static double all[WAYS][REPEATS_MAX];

	packet_bytes = bytes;
	share = FRAME_BYTES / (packet_bytes + CV_CONVOY_PREFIX_LEN);
	for (int i = 0; i < repeats; i++)
		for (unsigned w = 0; w < WAYS; w++)
			if (only == NULL || strcmp(only, ways[w].name) == 0)
				all[w][i] = measure(&ways[w]);
	printf("%s\n  {\"packet_bytes\": %u, \"packets\": %u", first ? "" : ",", packet_bytes,
		share);
	for (unsigned w = 0; w < WAYS; w++) {
		if (only != NULL && strcmp(only, ways[w].name) != 0)
			continue;
		qsort(all[w], (size_t)repeats, sizeof(all[w][0]), by_value);
		printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", ways[w].name,
			all[w][repeats / 2], all[w][0], all[w][repeats - 1]);
	}
	printf("}");
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = {60, 124, 252, 291, 380, 508, 730, 742, 1000, 1250, 1400};
	int repeats = argc > 1 ? atoi(argv[1]) : 51;
	int bytes = argc > 2 ? atoi(argv[2]) : 0;

	if (repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "bench-tx: %s: give 1 to %d repeats\n", argv[1], REPEATS_MAX);
		return 2;
	}
	if (argc > 2 && (bytes < 60 || bytes > 1466)) {
		fprintf(stderr, "bench-tx: %s: give packets of 60 to 1466 bytes\n", argv[2]);
		return 2;
	}
	begin();
	printf("{\"schema\": \"convoy.bench.tx/1\", \"results\": [");
	if (bytes > 0)
		row(repeats, (unsigned)bytes, argc > 3 ? argv[3] : NULL, true);
	for (size_t s = 0; bytes == 0 && s < RTE_DIM(sizes); s++)
		row(repeats, sizes[s], NULL, s == 0);
	printf("\n]}\n");
	return 0;
}
