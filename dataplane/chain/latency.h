// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How long packets take, by where: in bursts that are drawn by chance, 1 of about 64 of each source. Of
// these the worker reads the clock where it hands them on; of all others it asks whether they are drawn.
#ifndef CV_LATENCY_H
#define CV_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/compiler.h"

// Up to 64 ns, 128 ns, ... 0.27 s, and longer.
#define CV_LATENCY_BUCKETS 24
#define CV_LATENCY_SHORTEST_BITS 6

// Packets by their time. One writer.
struct cv_latency {
	uint64_t buckets[CV_LATENCY_BUCKETS];
	uint64_t ns; // the sum
};

// So many packets took so many TSC ticks.
void cv_latency_add(struct cv_latency *latency, uint64_t ticks, unsigned packets);

// Adds what another one counted so far.
void cv_latency_merge(struct cv_latency *sum, const struct cv_latency *more);

struct cv_burst;
struct cv_port_counters;

#define CV_LATENCY_LEAVING 16 // groups of packets of one iteration that leave by one port each

// A worker's draws.
struct cv_latency_draw {
	bool on; // the burst that is on its way is drawn
	uint64_t since; // TSC when its port was asked for it; 0: it came by a ring
	uint64_t iteration; // TSC ticks of the last iteration: a port was asked so often
	uint32_t random;
	unsigned leaving_count;
	struct {
		uint64_t since;
		uint16_t packets;
		uint8_t out;
	} leaving[CV_LATENCY_LEAVING];
};

// How many bursts of a source are passed over until the next that is drawn.
uint8_t cv_latency_next(struct cv_latency_draw *draw);

// A drawn burst goes into its first path; has come to the end of its way, to be sent; and all that had
// come there was sent.
void cv_latency_received(const struct cv_latency_draw *draw, struct cv_port_counters *ports,
	const struct cv_burst *burst);
void cv_latency_leaves(struct cv_latency_draw *draw, const struct cv_burst *burst);
void cv_latency_sent(struct cv_latency_draw *draw, struct cv_port_counters *ports, uint64_t now);

#endif
