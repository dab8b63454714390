// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdlib.h>

#include "chain/arrive.h"
#include "chain/ring.h"
#include "tests/bench/bench.h"

#define RING_PACKETS 1024

struct ring_hop {
	struct cv_ring *ring;
	struct cv_port_counters port_counters;
	struct cv_burst burst;
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct ring_hop *hop = state;

	cv_burst_load(&hop->burst, packets, n, 0, 1, &hop->port_counters);
	cv_ring_push(hop->ring, &hop->burst.buffers, hop->burst.views, hop->burst.n);
	return cv_ring_pop(hop->ring, &hop->burst.buffers, hop->burst.views, n);
}

static void destroy(void *state)
{
	struct ring_hop *hop = state;

	cv_ring_free(hop->ring);
	free(hop);
}

int bench_ring_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct ring_hop *hop =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*hop), RTE_CACHE_LINE_SIZE));

	(void)tables;
	if (hop == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(hop, 0, sizeof(*hop));
	hop->ring = cv_ring_create("bench", RING_PACKETS, RING_PACKETS, error);
	if (hop->ring == NULL) {
		free(hop);
		return -1;
	}
	*subject = (struct bench_subject){.run = run, .destroy = destroy, .state = hop};
	return 0;
}
