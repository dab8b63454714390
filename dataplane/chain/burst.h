// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A burst: packets on their way through a path, and the buffers that they lie in.
#ifndef CV_CHAIN_BURST_H
#define CV_CHAIN_BURST_H

#include <rte_mbuf.h>

#include "chain/counters.h"
#include "chain/ring.h"
#include "packet/view.h"
#include "port/buffers.h"

// Views that a burst has room for: a whole convoy more than are enough to stop loading.
#define CV_BURST_VIEWS (CV_VIEWS_MAX + CV_CONVOY_PACKETS_MAX)

// The path owns the buffers.
struct cv_burst {
	uint16_t n; // packets, each with a view
	uint16_t longest; // no packet is longer than this with its tunnel, bytes
	uint16_t shortest; // none is shorter
	// Where a buffer holds several packets nothing but their lengths is between them. False: it
	// is not known. Either way each of them has its length before it.
	bool whole;
	uint32_t bytes; // that the views show, all together
	struct cv_buffers buffers;
	struct cv_view views[CV_BURST_VIEWS] __rte_aligned(
		RTE_CACHE_LINE_SIZE); // none in two lines
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

// Gives a ring the buffers with their n views. Those that it has no room for are freed, and counted
// as dropped.
void cv_burst_push(const struct cv_buffers *buffers, const struct cv_view *views, uint16_t n,
	struct cv_ring *ring, struct cv_port_counters *counters);

#endif
