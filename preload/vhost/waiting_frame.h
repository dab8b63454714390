// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A frame that is not full waits for more packets: of the same queue, or, one frame of each thread of the
// program, of any queue that the thread takes from next. It leaves when it is full, when what comes next
// does not fit, or with the first call after its time is over; always with a queue that it has packets
// of. The program believes that it came by that queue's port, and may, for example, never send it there.
#ifndef CV_WAITING_FRAME_H
#define CV_WAITING_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "convoy/frame.h"

#define CV_WAITING_QUEUES 8 // whose packets share a frame
#define CV_WAITING_FORGOTTEN 1000 // calls for other queues, once its time is over

struct cv_from_guest;

struct cv_waiting_frame {
	rte_spinlock_t lock; // the thread's, and that of who ends a guest
	struct rte_mbuf *mbuf; // that it lies in; NULL: none waits
	const struct cv_from_guest *of[CV_WAITING_QUEUES]; // the first: in whose buffer it lies
	unsigned of_count; // queues that it has packets of
	struct cv_frame frame;
	uint64_t ticks; // of the TSC, that a frame waits at most
	uint64_t due; // when its time is over
	unsigned passed; // calls for other queues since then
	struct cv_waiting_frame *next; // of another thread
};

// A time in ticks of the TSC, which is known once DPDK runs.
uint64_t cv_waiting_ticks(uint64_t ns);

// That of the calling thread, whose frames wait so long at most. NULL: there is no memory for one.
struct cv_waiting_frame *cv_waiting_frame_here(uint64_t ticks);

// The queue is gone. Frees what waits in its own frame, and what began with it in those of threads;
// returns how many packets those were. The caller holds the lock of none.
unsigned cv_waiting_frames_drop(struct cv_waiting_frame *own, const struct cv_from_guest *owner);

// What follows is called under the frame's lock.

// Whether there is one that has packets of the queue.
static CV_INLINE bool cv_waiting_frame_is_of(
	const struct cv_waiting_frame *waiting, const struct cv_from_guest *from)
{
	bool is_of = false;

	for (unsigned i = 0; waiting->mbuf != NULL && i < waiting->of_count; i++)
		is_of |= waiting->of[i] == from;
	return is_of;
}

// Whether it leaves with this queue because its time is over. Its queues may be another thread's by now:
// then it leaves with any, after many calls.
static CV_INLINE bool cv_waiting_frame_is_due(
	struct cv_waiting_frame *waiting, const struct cv_from_guest *from, uint64_t now)
{
	if (waiting->mbuf == NULL || now < waiting->due)
		return false;
	return cv_waiting_frame_is_of(waiting, from) || ++waiting->passed > CV_WAITING_FORGOTTEN;
}

// Whether nothing more fits.
bool cv_waiting_frame_is_full(const struct cv_waiting_frame *waiting);

// None waits: one begins in an mbuf with count packets from begin to end, as cv_frame_adopt() has it.
// False, with nothing done: nothing more would fit.
bool cv_waiting_frame_begin(struct cv_waiting_frame *waiting, const struct cv_from_guest *owner,
	const struct cv_outer *outer, struct rte_mbuf *mbuf, uint8_t *begin, uint8_t *end,
	uint8_t count, const struct cv_view *first, uint64_t now);

// Adds copies of packets of a queue, from the first on, as long as they fit. Returns how many; 0 as well
// if it has packets of too many others.
uint16_t cv_waiting_frame_add(struct cv_waiting_frame *waiting, const struct cv_from_guest *from,
	const struct cv_view *views, uint16_t n);

// Ends the frame that waits. The caller owns it. NULL: it was a single packet that looks like a convoy and
// does not fit into one, and is freed.
struct rte_mbuf *cv_waiting_frame_end(struct cv_waiting_frame *waiting);

#endif
