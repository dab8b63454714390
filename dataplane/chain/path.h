// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A path: the functions that a burst of packets goes through. What functions must not care
// about happens here, once: which buffer a view belongs to, dropping, freeing, counting.
#ifndef CV_PATH_H
#define CV_PATH_H

#include <rte_mbuf.h>

#include "chain/counters.h"
#include "chain/nf.h"
#include "convoy/walk.h"
#include "port/buffers.h"

// Views that a burst has room for: a whole convoy more than are enough to stop loading.
#define CV_BURST_VIEWS (CV_VIEWS_MAX + CV_CONVOY_PACKETS_MAX)

// Packets on their way through a path. The path owns the buffers that they lie in.
struct cv_burst {
	uint16_t n; // packets, each with a view
	uint16_t longest; // no packet is longer than this with its tunnel, bytes
	uint16_t shortest; // none is shorter
	// Where a buffer holds several packets nothing but their lengths is between them. False: it
	// is not known.
	bool whole;
	uint32_t bytes; // that the views show, all together
	struct cv_buffers buffers;
	struct cv_view views[CV_BURST_VIEWS] __rte_aligned(
		RTE_CACHE_LINE_SIZE); // none in two lines
};

// One function of a path, as one worker runs it.
struct cv_step {
	uint16_t (*process)(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
		uint8_t *verdicts, uint16_t n);
	void *instance;
	struct cv_nf_counters *counters; // this worker's
};

struct cv_path {
	unsigned length;
	struct cv_step *steps;
};

// Sets bytes, longest and shortest, from the views.
void cv_burst_measure(struct cv_burst *burst);

// The packets whose class is this one, of a burst that has others as well, as a burst of its own.
// Those that share a buffer with packets of another class are copied, into buffers of the pool;
// where it has none they are dropped and counted. After the last class, cv_burst_picked() frees the
// buffers that were copied from.
void cv_burst_pick(const struct cv_burst *from, const uint8_t *classes, uint8_t class,
	struct cv_burst *to, struct rte_mempool *pool, struct cv_port_counters *counters);
void cv_burst_picked(const struct cv_burst *from, const uint8_t *classes);

// Runs the burst through the path. Afterwards burst->n packets are left, in their order; the
// others were counted at the function that dropped them, and buffers that nothing is left in freed.
void cv_path_run(const struct cv_path *path, struct cv_nf_worker *worker, struct cv_burst *burst);

#endif
