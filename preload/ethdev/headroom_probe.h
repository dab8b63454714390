// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Headroom probe: does the program prepend headers? A view has no headroom, and only the program
// sees what rte_pktmbuf_prepend() returns. So the packets of the first convoys, and later of one
// convoy in CV_HEADROOM_VIEWS, are copied into buffers with headroom: samples. A sample that is
// sent with less headroom than it was received with shows that the program needs headroom. From
// then on all packets are copied.
#ifndef CV_ETHDEV_HEADROOM_PROBE_H
#define CV_ETHDEV_HEADROOM_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/compiler.h"

#define CV_HEADROOM_VIEWS 128 // convoys shown as views between two samples
#define CV_HEADROOM_UNUSED 64 // packets sent without a header in front before there are views,
#define CV_HEADROOM_SAMPLES 1024 // or packets received in a queue: the program may send none

struct cv_headroom {
	_Atomic bool needed; // it stays so
	_Atomic uint32_t unused; // packets that were sent with all their headroom; up to the limit
};

// Of one receive queue; one thread at a time.
struct cv_headroom_queue {
	struct cv_headroom *headroom; // NULL: all packets are views
	uint32_t views; // convoys to be shown before the next sample
	uint32_t samples; // packets
};

// Whether a convoy of count packets is to be copied.
static CV_INLINE bool cv_headroom_sample_due(struct cv_headroom_queue *queue, uint16_t count)
{
	struct cv_headroom *headroom = queue->headroom;
	bool needed;

	if (headroom == NULL)
		return false;
	needed = atomic_load_explicit(&headroom->needed, memory_order_relaxed);
	if (CV_LIKELY(queue->views > 0 && !needed)) {
		queue->views--;
		return false;
	}
	if (atomic_load_explicit(&headroom->unused, memory_order_relaxed) >= CV_HEADROOM_UNUSED ||
		queue->samples >= CV_HEADROOM_SAMPLES)
		queue->views = CV_HEADROOM_VIEWS;
	else
		queue->samples += count;
	return true;
}

// A packet with less headroom than buffers have: sets and says that it is needed, if the buffer is
// one in which packets are received.
void cv_headroom_used(struct cv_headroom *headroom, const struct rte_mbuf *mbuf);

// Checks a packet that is sent and is no view. headroom may be NULL.
static CV_INLINE void cv_headroom_check(struct cv_headroom *headroom, const struct rte_mbuf *mbuf)
{
	uint32_t unused;

	if (headroom == NULL || !RTE_MBUF_DIRECT(mbuf))
		return;
	if (CV_UNLIKELY(mbuf->data_off < RTE_PKTMBUF_HEADROOM)) {
		cv_headroom_used(headroom, mbuf);
		return;
	}
	unused = atomic_load_explicit(&headroom->unused, memory_order_relaxed);
	if (CV_UNLIKELY(unused < CV_HEADROOM_UNUSED)) // no matter if another thread's gets lost
		atomic_store_explicit(&headroom->unused, unused + 1, memory_order_relaxed);
}

#endif
