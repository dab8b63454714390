// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A router on packets in place: as many packets, once with a buffer each, once 22 in a convoy, run
// by the node's own path from received buffers to verdicts. In sets that fit into the first-level
// cache, the second, the third, and in one that fits into none; close together, and as far apart as
// buffers of 2 KiB are; on large pages, and on those of 4 KiB that DPDK has without hugepages.
//
//   bench-views [repeats]
//
// Cycles per packet, JSON. Both sorts of packets alternate; they are met in an order that no
// prefetcher guesses. Lines that are asked for a burst ahead: of buffers by us, for both, as a good
// driver does; of bytes by the path.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_prefetch.h>

#include "chain/rx.h"
#include "convoy/frame.h"
#include "port/packet_pool.h"
#include "tests/bench/bench.h"

#define ROUTES 10
#define IN_CONVOYS 22
#define REPEATS_MAX 101
#define AT_ONCE (CV_VIEWS_MAX / IN_CONVOYS + 1) // convoys, of which a burst is full
#define SMALL_ROOM (RTE_PKTMBUF_HEADROOM + 2 * RTE_CACHE_LINE_SIZE) // for one packet
#define LARGE_ROOM RTE_MBUF_DEFAULT_BUF_SIZE // for a convoy; for whatever comes
#define PACKETS_A_REPEAT (1u << 17) // about; TTL allows 250 passes after a filling

struct arena {
	struct rte_mempool *pool;
	struct rte_mbuf **buffers; // shuffled
	unsigned count;
};

static struct cv_outer outer;
static struct bench_tables *tables;
static struct bench_subject router;

static void die(const char *text)
{
	fprintf(stderr, "bench-views: %s\n", text);
	exit(1);
}

static void make(
	struct arena *arena, const char *name, unsigned count, uint16_t room, bool small_pages)
{
	arena->count = count;
	arena->pool = cv_packet_pool_create(name, count, 0, room, small_pages);
	arena->buffers = calloc(count, sizeof(struct rte_mbuf *));
	if (arena->pool == NULL || arena->buffers == NULL ||
		rte_pktmbuf_alloc_bulk(arena->pool, arena->buffers, count) != 0)
		die("no memory for packets");
	for (unsigned i = count - 1; i > 0; i--) {
		const unsigned other = (unsigned)random() % (i + 1);
		struct rte_mbuf *buffer = arena->buffers[i];

		arena->buffers[i] = arena->buffers[other];
		arena->buffers[other] = buffer;
	}
}

static void destroy(struct arena *arena)
{
	free(arena->buffers);
	rte_mempool_free(arena->pool);
}

static void fill_singly(const struct arena *arena)
{
	for (unsigned i = 0; i < arena->count; i++) {
		struct rte_mbuf *buffer = arena->buffers[i];

		bench_packet_write(
			tables, i, rte_pktmbuf_mtod(buffer, uint8_t *), BENCH_FRAME_BYTES);
		buffer->pkt_len = buffer->data_len = BENCH_FRAME_BYTES;
	}
}

static void fill_convoys(const struct arena *arena)
{
	uint8_t bytes[IN_CONVOYS][64] = {0};
	struct cv_view views[IN_CONVOYS];

	for (unsigned i = 0; i < arena->count; i++) {
		struct rte_mbuf *buffer = arena->buffers[i];
		struct cv_frame built;
		uint8_t *frame;
		uint16_t len;

		for (unsigned k = 0; k < IN_CONVOYS; k++) {
			bench_packet_write(
				tables, (uint64_t)i * IN_CONVOYS + k, bytes[k], BENCH_FRAME_BYTES);
			cv_view_set(&views[k], bytes[k], BENCH_FRAME_BYTES);
		}
		cv_frame_begin(&built, &outer, (uint8_t *)buffer->buf_addr + RTE_PKTMBUF_HEADROOM,
			LARGE_ROOM - RTE_PKTMBUF_HEADROOM);
		if (cv_frame_add(&built, views, IN_CONVOYS) != IN_CONVOYS)
			die("22 packets do not fit into a convoy");
		frame = cv_frame_close(&built, &len);
		buffer->data_off = (uint16_t)(frame - (uint8_t *)buffer->buf_addr);
		buffer->pkt_len = buffer->data_len = len;
	}
}

static void prefetch(const struct arena *arena, unsigned from, unsigned n)
{
	for (unsigned i = from; i < RTE_MIN(from + n, arena->count); i++)
		rte_prefetch0(arena->buffers[i]);
}

// Each returns how many packets came through.
static unsigned pass_singly(const struct arena *arena)
{
	unsigned through = 0;

	for (unsigned i = 0; i < arena->count; i += CV_BURST_MAX) {
		prefetch(arena, i + CV_BURST_MAX, CV_BURST_MAX);
		through += router.run(router.state, &arena->buffers[i],
			(uint16_t)RTE_MIN(arena->count - i, (unsigned)CV_BURST_MAX));
	}
	return through;
}

static unsigned pass_convoys(const struct arena *arena)
{
	static struct cv_port_counters port;
	static struct cv_frame_counters frames;
	const struct cv_convoy_rx rx = {
		.udp_port = rte_cpu_to_be_16(CV_CONVOY_PORT), .counters = &frames};
	struct cv_burst *burst = bench_path_burst(router.state);
	unsigned through = 0;

	for (unsigned i = 0; i < arena->count;) {
		prefetch(arena, i + AT_ONCE, AT_ONCE);
		i += cv_burst_load_convoys(burst, &arena->buffers[i],
			(uint16_t)RTE_MIN(arena->count - i, (unsigned)CV_BURST_MAX), 0, 1, &rx,
			&port);
		bench_path_continue(router.state);
		through += burst->n;
	}
	return through;
}

static double measure(const struct arena *arena, bool convoys)
{
	const unsigned packets = arena->count * (convoys ? IN_CONVOYS : 1);
	const unsigned enough = 1 + PACKETS_A_REPEAT / packets;
	const unsigned passes = RTE_MIN(200u, enough);
	unsigned through = 0;
	uint64_t then;

	(convoys ? fill_convoys : fill_singly)(arena);
	(convoys ? pass_convoys : pass_singly)(arena); // brings into the caches what they hold
	then = rte_rdtsc();
	for (unsigned i = 0; i < passes; i++)
		through += (convoys ? pass_convoys : pass_singly)(arena);
	then = rte_rdtsc() - then;
	if (through != passes * packets)
		die("not all packets came through");
	return (double)then / through;
}

static int ascending(const void *one, const void *two)
{
	double a = *(const double *)one, b = *(const double *)two;

	return (a > b) - (a < b);
}

static void print(const char *name, double *all, unsigned n)
{
	qsort(all, n, sizeof(*all), ascending);
	printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", name, all[n / 2],
		all[0], all[n - 1]);
}

static void start(const char *program)
{
	static const char *const name[] = {"router"};
	const struct cv_outer_config config = {.version = 4, .src = {1}, .dst = {2}};
	struct cv_error error = {0};
	char prefix[32];
	char *arguments[] = {(char *)program, (char *)"--no-huge", (char *)"-m", (char *)"256",
		(char *)"--no-pci", (char *)"--no-telemetry", (char *)"--no-shconf",
		(char *)"--log-level=error", (char *)"--file-prefix", prefix, NULL};

	snprintf(prefix, sizeof(prefix), "bench-views-%d", getpid());
	if (rte_eal_init(10, arguments) < 0)
		die("DPDK did not start: are 256 MiB free?");
	tables = bench_tables_create(ROUTES);
	if (tables == NULL || cv_outer_set(&outer, &config, &error) != 0 ||
		bench_path_create(&router, name, 1, tables, &error) != 0)
		die(error.text[0] != '\0' ? error.text : "out of memory");
}

int main(int argc, char **argv)
{
	// Packets; with a buffer each they need two cache lines, in a convoy about one.
	static const struct {
		const char *name, *buffers, *pages;
		unsigned packets;
		uint16_t room;
		bool small_pages;
	} sets[] = {
		{"in L1 (16 KiB)", "close", "large", 128, SMALL_ROOM, false},
		{"in L2 (500 KiB)", "close", "large", 4000, SMALL_ROOM, false},
		{"beyond L2 (4 MiB)", "close", "large", 32768, SMALL_ROOM, false},
		{"beyond L2 (4 MiB)", "2 KiB", "large", 32768, LARGE_ROOM, false},
		{"beyond L2 (4 MiB)", "2 KiB", "4 KiB", 32768, LARGE_ROOM, true},
		{"beyond L3 (64 MiB)", "close", "large", 524288, SMALL_ROOM, false},
	};
	const unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 11;

	if (repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "bench-views: %s: give 1 to %d repeats\n", argv[1], REPEATS_MAX);
		return 2;
	}
	start(argv[0]);
	srandom(1);
	printf("{\"schema\": \"convoy.bench.views/1\", \"results\": [");
	for (unsigned row = 0; row < RTE_DIM(sets); row++) {
		double each[REPEATS_MAX], in_convoys[REPEATS_MAX], times[REPEATS_MAX];
		struct arena singly, convoys;

		make(&singly, "singly", sets[row].packets, sets[row].room, sets[row].small_pages);
		make(&convoys, "convoys", sets[row].packets / IN_CONVOYS, LARGE_ROOM,
			sets[row].small_pages);
		for (unsigned i = 0; i < repeats; i++) {
			each[i] = measure(&singly, false);
			in_convoys[i] = measure(&convoys, true);
			times[i] = each[i] / in_convoys[i];
		}
		printf("%s\n  {\"working_set\": \"%s\", \"buffers\": \"%s\", \"pages\": \"%s\"",
			row == 0 ? "" : ",", sets[row].name, sets[row].buffers, sets[row].pages);
		print("buffer_each", each, repeats);
		print("in_convoys", in_convoys, repeats);
		print("times", times, repeats);
		printf("}");
		destroy(&convoys);
		destroy(&singly);
	}
	printf("\n]}\n");
	router.destroy(router.state);
	bench_tables_destroy(tables);
	rte_eal_cleanup();
	return 0;
}
