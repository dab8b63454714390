// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdlib.h>

#include "chain/rx.h"
#include "chain/ring.h"
#include "tests/bench/bench.h"

#define RING_PACKETS 1024

struct ring_stage {
	struct cv_ring *ring;
	struct cv_port_counters port_counters;
	struct cv_burst burst;
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct ring_stage *stage = state;

	cv_burst_load(&stage->burst, packets, n, 0, 1, &stage->port_counters);
	cv_ring_push(stage->ring, &stage->burst.buffers, stage->burst.views, stage->burst.n);
	return cv_ring_pop(stage->ring, &stage->burst.buffers, stage->burst.views, n);
}

static void destroy(void *state)
{
	struct ring_stage *stage = state;

	cv_ring_free(stage->ring);
	free(stage);
}

int bench_ring_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct ring_stage *stage =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*stage), RTE_CACHE_LINE_SIZE));

	(void)tables;
	if (stage == NULL) {
		cv_error_set(error, "out of memory");
		return -1;
	}
	memset(stage, 0, sizeof(*stage));
	stage->ring = cv_ring_create("bench", RING_PACKETS, RING_PACKETS, error);
	if (stage->ring == NULL) {
		free(stage);
		return -1;
	}
	*subject = (struct bench_subject){.run = run, .destroy = destroy, .state = stage};
	return 0;
}
