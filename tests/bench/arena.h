// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The packets that are measured with: more of them than the L2 cache holds, met in an order that
// no prefetcher guesses, in the state in which a driver hands them over.
#ifndef CV_BENCH_ARENA_H
#define CV_BENCH_ARENA_H

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "tests/bench/bench.h"

struct bench_arena {
	uint16_t frame_bytes; // of each packet
	unsigned packets_count; // a multiple of CV_BURST_MAX
	size_t touched_bytes; // of the cache lines that a pass over all packets needs
	struct rte_mempool *pool;
	struct rte_mbuf **packets; // shuffled
};

// Takes twice the L2 cache of l2_bytes with packets of so many bytes. Returns -1 with error set.
int bench_arena_create(
	struct bench_arena *arena, uint16_t frame_bytes, size_t l2_bytes, struct cv_error *error);
void bench_arena_destroy(struct bench_arena *arena);

// Writes the subject's traffic into the packets, afresh: that of its flows, or that goes with the tables.
void bench_arena_fill(struct bench_arena *arena, const struct bench_subject *subject,
	const struct bench_tables *tables);

// What a driver has done when it returns a burst of a port: the mbufs' first lines are written, their
// packets' bytes are not touched.
void bench_arena_receive(
	struct rte_mbuf **packets, uint16_t n, uint16_t port, uint16_t frame_bytes);

// Runs the subject over all packets, passes times, in bursts of CV_BURST_MAX. Returns the TSC ticks
// that it took per packet, clock and call included, or -1 with error set when a packet did not
// come through. The packets' TTL allows 250 passes after a fill.
double bench_arena_run(struct bench_arena *arena, const struct bench_subject *subject,
	unsigned passes, struct cv_error *error);

#endif
