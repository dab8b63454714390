// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/latency.h"

#include <rte_common.h>
#include <rte_cycles.h>

#include "chain/burst.h"
#include "chain/counters.h"

#define DRAWN_ONE_OF 64

// The bucket of a time: buckets end at powers of two, which belong to them.
static unsigned bucket_of(uint64_t ns)
{
	const unsigned bits = ns > 1 ? 64 - (unsigned)__builtin_clzll(ns - 1) : 0;

	return bits <= CV_LATENCY_SHORTEST_BITS
		       ? 0
		       : RTE_MIN(bits - CV_LATENCY_SHORTEST_BITS, CV_LATENCY_BUCKETS - 1u);
}

void cv_latency_add(struct cv_latency *latency, uint64_t ticks, unsigned packets)
{
	const uint64_t ns = (uint64_t)((double)ticks * NS_PER_S / (double)rte_get_tsc_hz());

	cv_count(&latency->buckets[bucket_of(ns)], packets);
	cv_count(&latency->ns, ns * packets);
}

void cv_latency_merge(struct cv_latency *sum, const struct cv_latency *more)
{
	for (unsigned i = 0; i < CV_LATENCY_BUCKETS; i++)
		sum->buckets[i] += cv_counted(&more->buckets[i]);
	sum->ns += cv_counted(&more->ns);
}

uint8_t cv_latency_next(struct cv_latency_draw *draw)
{
	// Numbers by chance (xorshift): traffic may have a period, too.
	draw->random = draw->random != 0 ? draw->random : (uint32_t)rte_rdtsc() | 1;
	draw->random ^= draw->random << 13;
	draw->random ^= draw->random >> 17;
	draw->random ^= draw->random << 5;
	return (uint8_t)(draw->random % (2 * DRAWN_ONE_OF - 1));
}

void cv_latency_received(const struct cv_latency_draw *draw, struct cv_port_counters *ports,
	const struct cv_burst *burst)
{
	struct cv_port_counters *in;

	if (draw->since == 0)
		return;
	in = &ports[burst->views[0].in & ~CV_VIEW_DONE]; // its function takes the mark off later
	cv_latency_add(&in->rx_wait, draw->iteration, burst->n);
	cv_latency_add(&in->rx_latency, rte_rdtsc() - draw->since, burst->n);
}

void cv_latency_leaves(struct cv_latency_draw *draw, const struct cv_burst *burst)
{
	const uint64_t now = rte_rdtsc();

	for (unsigned from = 0, to; from < burst->n; from = to) {
		if (draw->leaving_count == CV_LATENCY_LEAVING)
			return;
		to = from + 1;
		while (to < burst->n && burst->views[to].out == burst->views[from].out)
			to++;
		draw->leaving[draw->leaving_count].since = now;
		draw->leaving[draw->leaving_count].packets = (uint16_t)(to - from);
		draw->leaving[draw->leaving_count++].out = burst->views[from].out;
	}
}

void cv_latency_sent(struct cv_latency_draw *draw, struct cv_port_counters *ports, uint64_t now)
{
	for (unsigned i = 0; i < draw->leaving_count; i++)
		cv_latency_add(&ports[draw->leaving[i].out].tx_latency,
			now - draw->leaving[i].since, draw->leaving[i].packets);
	draw->leaving_count = 0;
}
