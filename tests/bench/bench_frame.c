// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Cycles per packet of walking convoys and of packing them, in memory, without DPDK's EAL.
//
//   bench-frame [REPEATS]        11 unless given
//
// Prints one JSON object: {"schema": "convoy.bench.frame/1", "results": [{"function", "packets",
// "packet_bytes", "working_set_bytes", "cycles_per_packet": {"median", "min", "max"}}]}. The rows
// of one working set and number of packets are measured alternately, repeat by repeat.
//
//   walk       frames whose packets are all as long as the first
//   walk-mixed the same with every other packet 4 bytes shorter
//   walk-ahead walk, with the lines of the frame after the next asked for meanwhile
//   pack       packets in mbuf-sized buffers, into frames
//   copy       the control: the same packets, each copied to such a buffer of its own
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "convoy/frame.h"

#define BYTES 60 // a packet of 64 without FCS
#define BUFFER 2304 // from one packet's buffer to the next, as DPDK's mbufs lie
#define SMALL_BYTES (4 << 10) // of frames: in L1
#define LARGE_BYTES (8 << 20) // beyond L2
#define PASS_PACKETS (1 << 20) // per repeat, more or less
#define REPEATS_MAX 1001

struct work {
	unsigned packets; // per frame
	unsigned frames;
	struct cv_outer outer;
	struct cv_view *equal, *mixed; // the frames
	struct cv_view *single; // packets in buffers of their own
	uint8_t *copies; // where packets are copied to
	uint8_t *packed; // where frames are packed
};

static volatile unsigned sink;

static uint8_t *memory(size_t bytes)
{
	size_t huge = 2 << 20;
	uint8_t *at = aligned_alloc(huge, (bytes + huge - 1) & ~(huge - 1));

	if (at == NULL) {
		fprintf(stderr, "bench-frame: no %zu bytes of memory\n", bytes);
		exit(1);
	}
	// As DPDK's memory is; where the kernel has none, its page tables are measured as well.
	madvise(at, bytes, MADV_HUGEPAGE);
	memset(at, 1, bytes);
	return at;
}

static void walk_all(const struct work *work, const struct cv_view *frames, unsigned ahead)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_convoy convoy;
	unsigned count = 0;

	for (unsigned i = 0; i < work->frames; i++) {
		if (ahead > 0 && i + ahead < work->frames) {
			const struct cv_view *next = &frames[i + ahead];

			for (unsigned at = 0; at < next->len; at += 64)
				__builtin_prefetch(next->data + at, 1);
		}
		if (cv_convoy_walk(&convoy, views, &frames[i], RTE_BE16(CV_CONVOY_PORT)) ==
			CV_CONVOY_OK)
			count += convoy.count;
	}
	if (count != work->frames * work->packets) {
		fprintf(stderr, "bench-frame: a frame was refused\n");
		exit(1);
	}
	sink = count;
}

static void walk(const struct work *work)
{
	walk_all(work, work->equal, 0);
}

static void walk_mixed(const struct work *work)
{
	walk_all(work, work->mixed, 0);
}

static void walk_ahead(const struct work *work)
{
	walk_all(work, work->equal, 2);
}

static void pack(const struct work *work)
{
	for (unsigned i = 0; i < work->frames; i++) {
		struct cv_frame built;
		uint16_t len;

		cv_frame_begin(&built, &work->outer, work->packed + (size_t)i * BUFFER, BUFFER);
		cv_frame_add(&built, work->single + i * work->packets, (uint16_t)work->packets);
		cv_frame_close(&built, &len);
		sink = len;
	}
}

static void copy(const struct work *work)
{
	for (unsigned i = 0; i < work->frames * work->packets; i++)
		memcpy(work->copies + (size_t)i * BUFFER, work->single[i].data, BYTES);
}

static const struct {
	const char *name;
	void (*run)(const struct work *);
} functions[] = {
	{"walk", walk},
	{"walk-mixed", walk_mixed},
	{"walk-ahead", walk_ahead},
	{"pack", pack},
	{"copy", copy},
};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

// One frame of n packets; every other one is `shorter` bytes shorter.
static void make_frame(struct cv_view *frame, const struct cv_outer *outer, uint8_t *at, unsigned n,
	unsigned shorter)
{
	static uint8_t packet[BYTES] = {[12] = 8, [14] = 0x45};
	uint8_t *data = at + outer->len;

	for (unsigned i = 0; i < n; i++) {
		uint16_t len = (uint16_t)(BYTES - (i & 1) * shorter);

		data[0] = 0;
		data[1] = (uint8_t)len;
		memcpy(data + 2, packet, len);
		data += 2 + len;
	}
	cv_outer_write(outer, at, (uint8_t)n, (uint32_t)(data - at - outer->len), 1);
	cv_view_set(frame, at, (uint16_t)(data - at));
}

static void make(struct work *work, unsigned n, size_t bytes)
{
	const struct cv_outer_config config = {.version = 4, .src = {192, 0, 2, 1}};
	size_t frame_bytes = 46 + n * (BYTES + 2), apart;
	uint8_t *equal, *mixed, *single;

	cv_outer_set(&work->outer, &config, NULL);
	// Frames lie in buffers of their own, so they begin at a cache line.
	apart = (frame_bytes + 127) & ~(size_t)63;
	work->packets = n;
	work->frames = (unsigned)(bytes / frame_bytes);
	work->frames += work->frames == 0;
	work->equal = calloc(work->frames, sizeof(*work->equal));
	work->mixed = calloc(work->frames, sizeof(*work->mixed));
	work->single = calloc((size_t)work->frames * n, sizeof(*work->single));
	equal = memory(work->frames * apart);
	mixed = memory(work->frames * apart);
	single = memory((size_t)work->frames * n * BUFFER);
	work->copies = memory((size_t)work->frames * n * BUFFER);
	work->packed = memory((size_t)work->frames * BUFFER);
	for (unsigned i = 0; i < work->frames; i++) {
		make_frame(&work->equal[i], &work->outer, equal + i * apart, n, 0);
		make_frame(&work->mixed[i], &work->outer, mixed + i * apart, n, 4);
	}
	for (unsigned i = 0; i < work->frames * n; i++)
		cv_view_set(&work->single[i], single + (size_t)i * BUFFER, BYTES);
}

static void unmake(struct work *work)
{
	free(work->equal[0].data);
	free(work->mixed[0].data);
	free(work->single[0].data);
	free(work->equal);
	free(work->mixed);
	free(work->single);
	free(work->copies);
	free(work->packed);
}

static int ascending(const void *one, const void *two)
{
	double a = *(const double *)one, b = *(const double *)two;

	return (a > b) - (a < b);
}

static void measure(const struct work *work, size_t bytes, unsigned repeats, const char *comma)
{
	static double cycles[FUNCTIONS][REPEATS_MAX];
	unsigned packets = work->frames * work->packets;
	unsigned passes = PASS_PACKETS / packets + 1;

	for (unsigned repeat = 0; repeat < repeats; repeat++) {
		for (unsigned f = 0; f < FUNCTIONS; f++) {
			uint64_t then;

			functions[f].run(work);
			then = __rdtsc();
			for (unsigned pass = 0; pass < passes; pass++)
				functions[f].run(work);
			cycles[f][repeat] = (double)(__rdtsc() - then) / ((double)passes * packets);
		}
	}
	for (unsigned f = 0; f < FUNCTIONS; f++) {
		double *all = cycles[f];

		qsort(all, repeats, sizeof(*all), ascending);
		printf("%s\n  {\"function\": \"%s\", \"packets\": %u, \"packet_bytes\": %u, "
		       "\"working_set_bytes\": %zu, \"cycles_per_packet\": "
		       "{\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}}",
			f == 0 ? comma : ",", functions[f].name, work->packets, BYTES + 4, bytes,
			(all[(repeats - 1) / 2] + all[repeats / 2]) / 2, all[0], all[repeats - 1]);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = {1, 2, 8, 16, 22};
	static const size_t sizes[] = {SMALL_BYTES, LARGE_BYTES};
	unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 11;
	const char *comma = "";

	if (argc > 2 || repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "usage: bench-frame [REPEATS], 1 to %u\n", REPEATS_MAX);
		return 2;
	}
	printf("{\"schema\": \"convoy.bench.frame/1\", \"results\": [");
	for (unsigned s = 0; s < 2; s++) {
		for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			struct work work;

			make(&work, counts[c], sizes[s]);
			measure(&work, sizes[s], repeats, comma);
			unmake(&work);
			comma = ",";
		}
	}
	printf("\n]}\n");
	return 0;
}
