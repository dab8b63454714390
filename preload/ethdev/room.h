// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Whether the program puts headers in front of packets. A view has no room for that, and what
// rte_pktmbuf_prepend() answers, only the program sees. So packets of the first convoys, and of one
// in CV_ROOM_VIEWS later, are copied into buffers with headroom: examples. One that is sent with
// less headroom than it came with shows that the program needs it, and from then on all are copied.
#ifndef CV_ETHDEV_ROOM_H
#define CV_ETHDEV_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/compiler.h"

#define CV_ROOM_VIEWS 128 // convoys shown as views between two examples
#define CV_ROOM_UNUSED 64 // packets sent without a header in front before there are views,
#define CV_ROOM_EXAMPLES 1024 // or packets received in a queue: the program may send none

struct cv_room {
	_Atomic bool needed; // it stays so
	_Atomic uint32_t unused; // packets that were sent with all their headroom; up to the limit
};

// Of one receive queue; one thread at a time.
struct cv_room_queue {
	struct cv_room *room; // NULL: all packets are views
	uint32_t views; // convoys to be shown before the next example
	uint32_t examples; // packets
};

// Whether a convoy of count packets is to be copied.
static CV_INLINE bool cv_room_wanted(struct cv_room_queue *queue, uint16_t count)
{
	struct cv_room *room = queue->room;
	bool needed;

	if (room == NULL)
		return false;
	needed = atomic_load_explicit(&room->needed, memory_order_relaxed);
	if (CV_LIKELY(queue->views > 0 && !needed)) {
		queue->views--;
		return false;
	}
	if (atomic_load_explicit(&room->unused, memory_order_relaxed) >= CV_ROOM_UNUSED ||
		queue->examples >= CV_ROOM_EXAMPLES)
		queue->views = CV_ROOM_VIEWS;
	else
		queue->examples += count;
	return true;
}

// A packet with less headroom than buffers have: sets and says that it is needed, if the buffer is
// one in which packets are received.
void cv_room_used(struct cv_room *room, const struct rte_mbuf *mbuf);

// Looks at a packet that is sent and is no view. room may be NULL.
static CV_INLINE void cv_room_look(struct cv_room *room, const struct rte_mbuf *mbuf)
{
	uint32_t unused;

	if (room == NULL || !RTE_MBUF_DIRECT(mbuf))
		return;
	if (CV_UNLIKELY(mbuf->data_off < RTE_PKTMBUF_HEADROOM)) {
		cv_room_used(room, mbuf);
		return;
	}
	unused = atomic_load_explicit(&room->unused, memory_order_relaxed);
	if (CV_UNLIKELY(unused < CV_ROOM_UNUSED)) // no matter if another thread's gets lost
		atomic_store_explicit(&room->unused, unused + 1, memory_order_relaxed);
}

#endif
