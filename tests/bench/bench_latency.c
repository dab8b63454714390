// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What timing packets by stage costs a node (chain/latency.h), in TSC ticks per packet: a worker takes
// bursts from a port in memory through firewall, router and l2fwd to another, once with bursts drawn as
// a node draws them, and once with none drawn. What asks whether a burst is drawn is there both times.
//
//   bench-latency [REPEATS]        2001
//
// Prints one JSON object: {"schema": "convoy.bench.latency/1", "results": [{"burst": packets that a
// poll brings, "drawn", "not_drawn": {"median", "min", "max"}, "cost": {"median", "min", "max"}}]}. The
// cost is the difference of the two, repeat by repeat, which alternate; its min and max are those of
// the 95 % confidence interval of its median.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "chain/worker.h"
#include "tests/bench/bench.h"

// Of a repeat: each takes one of the packets' TTL of 255. So few that most repeats are over before
// somebody else gets the core.
#define POLLS 240
#define REPEATS_MAX 100001
#define ENTRIES 10

static struct rte_mbuf *packets[CV_BURST_MAX];
static struct bench_tables *tables;
static struct bench_subject functions;
static struct cv_port_counters counters[2];
static struct cv_worker worker;
static struct cv_source source;
static enum cv_worker_phase phase;
static uint8_t ignored; // a store as that which keeps bursts from being drawn
static uint8_t *held_back; // written before each poll: the source's count, or that
static unsigned burst, polls_left;

static void die(const char *what)
{
	fprintf(stderr, "bench-latency: %s\n", what);
	exit(1);
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **into, uint16_t n)
{
	(void)port;
	(void)queue;
	if (polls_left == 0) {
		phase = CV_WORKER_EXIT;
		return 0;
	}
	polls_left--;
	*held_back = UINT8_MAX;
	n = (uint16_t)RTE_MIN(burst, (unsigned)n);
	memcpy(into, packets, n * sizeof(*into));
	return n;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **from, uint16_t n)
{
	(void)port;
	(void)tx_queue;
	(void)from;
	return n; // they come again
}

static double measure(bool drawn)
{
	static uint8_t until_drawn; // goes on from run to run
	const uint64_t before = counters[1].tx_packets;
	uint64_t ticks;

	for (unsigned i = 0; i < CV_BURST_MAX; i++)
		bench_packet_write(
			tables, i, rte_pktmbuf_mtod(packets[i], uint8_t *), BENCH_FRAME_BYTES);
	held_back = drawn ? &ignored : &source.until_drawn;
	source.until_drawn = drawn ? until_drawn : UINT8_MAX;
	polls_left = POLLS;
	phase = CV_WORKER_RUN;
	ticks = rte_rdtsc();
	cv_worker_run(&worker);
	ticks = rte_rdtsc() - ticks;
	if (drawn)
		until_drawn = source.until_drawn;
	if (counters[1].tx_packets - before != (uint64_t)POLLS * burst)
		die("not all packets came through");
	return (double)ticks / POLLS / burst;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *values, int n, int low, int high)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	printf(", \"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}", name, values[n / 2],
		values[low], values[high]);
}

static void row(int repeats, bool first)
{
	static double drawn[REPEATS_MAX], not_drawn[REPEATS_MAX], cost[REPEATS_MAX];
	// Ranks of a median's confidence interval: those of a binomial distribution.
	const int low = RTE_MAX(0, (int)floor((repeats - 1.96 * sqrt(repeats)) / 2) - 1);

	for (int i = 0; i < repeats; i++) {
		if (i % 2 == 0)
			drawn[i] = measure(true);
		not_drawn[i] = measure(false);
		if (i % 2 != 0)
			drawn[i] = measure(true);
		cost[i] = drawn[i] - not_drawn[i];
	}
	printf("%s\n  {\"burst\": %u", first ? "" : ",", burst);
	print("drawn", drawn, repeats, 0, repeats - 1);
	print("not_drawn", not_drawn, repeats, 0, repeats - 1);
	print("cost", cost, repeats, low, repeats - 1 - low);
	printf("}");
}

static void begin(void)
{
	static const char *const names[] = {"firewall", "router", "l2fwd"};
	static struct cv_port ports[] = {
		{.rx = rx, .tx = tx, .mtu = 1500}, {.rx = rx, .tx = tx, .mtu = 1500}};
	static struct cv_port *by_index[] = {&ports[0], &ports[1]};
	static const struct cv_path *paths[1];
	static struct cv_tx sender = {
		.ports = by_index, .ports_count = RTE_DIM(ports), .counters = counters};
	char prefix[32];
	char *argv[] = {"bench-latency", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "error", "--file-prefix", prefix, NULL};
	struct cv_error error = {0};
	struct rte_mempool *pool;

	snprintf(prefix, sizeof(prefix), "bench-latency-%d", getpid());
	if (rte_eal_init((int)RTE_DIM(argv) - 1, argv) < 0)
		die("the EAL did not start");
	pool = rte_pktmbuf_pool_create("packets", 255, 0, 0, 2304, SOCKET_ID_ANY);
	tables = bench_tables_create(ENTRIES);
	if (pool == NULL || tables == NULL ||
		rte_pktmbuf_alloc_bulk(pool, packets, CV_BURST_MAX) != 0)
		die("no memory");
	if (bench_path_create(&functions, names, RTE_DIM(names), tables, &error) != 0)
		die(error.text);
	for (unsigned i = 0; i < CV_BURST_MAX; i++)
		packets[i]->pkt_len = packets[i]->data_len = BENCH_FRAME_BYTES;
	sender.pool = pool;
	paths[0] = bench_path_of(functions.state);
	source = (struct cv_source){
		.port = &ports[0], .one_path = true, .paths = paths, .paths_count = 1};
	worker = (struct cv_worker){
		.paths = {.pool = pool, .ports_counters = counters, .leave = cv_worker_leave},
		.idle = CV_WORKER_POLL,
		.sources = &source,
		.sources_count = 1,
		.tx = &sender,
		.phase = &phase,
	};
}

int main(int argc, char **argv)
{
	static const unsigned bursts[] = {64, 32, 8, 1};
	const int repeats = argc > 1 ? atoi(argv[1]) : 2001;

	if (repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "bench-latency: %s: give 1 to %d repeats\n", argv[1], REPEATS_MAX);
		return 2;
	}
	begin();
	printf("{\"schema\": \"convoy.bench.latency/1\", \"results\": [");
	for (unsigned i = 0; i < RTE_DIM(bursts); i++) {
		burst = bursts[i];
		row(repeats, i == 0);
	}
	printf("\n]}\n");
	functions.destroy(functions.state);
	bench_tables_destroy(tables);
	return 0;
}
