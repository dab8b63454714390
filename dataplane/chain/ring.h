// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A ring joins two stages of a pipeline: one worker pushes, one other worker pops, nobody waits.
// It carries the views beside the buffers, so that the next stage knows what the one before found
// out (layer 3, in, out) without touching a packet, and a push or pop is a few copies whatever is
// in them (docs/decisions/ring.md). A buffer of many packets passes as one thing.
#ifndef CV_RING_H
#define CV_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/error.h"
#include "packet/view.h"
#include "port/buffers.h"

struct cv_ring;

// A ring for at least that many buffers and views, each 1 to 2^20, rounded up to powers of two. Has
// room for as many views as buffers at least. Needs the EAL. NULL with error set: other numbers, or
// no memory. The name is for error texts only.
struct cv_ring *cv_ring_create(
	const char *name, uint32_t buffers, uint32_t views, struct cv_error *error);

// Frees the ring and the packets that are still in it. Nobody may push or pop any more.
void cv_ring_free(struct cv_ring *ring);

// Gives the first buffers to the ring, with their views (n of all of them), as many as fit, and
// returns how many buffers: these belong to the ring, the rest stays with the caller. Called by one
// thread.
uint16_t cv_ring_push(struct cv_ring *ring, const struct cv_buffers *buffers,
	const struct cv_view *views, uint16_t n);

// Takes buffers with their views in the order they were pushed, whole ones only, up to
// CV_BUFFERS_MAX and n views (no fewer than any buffer has), and returns the number of views; the buffers belong to the
// caller. Called by one thread.
uint16_t cv_ring_pop(
	struct cv_ring *ring, struct cv_buffers *buffers, struct cv_view *views, uint16_t n);

// TSC ticks that what was popped last had been in the ring, if a clock was set on it, as on one of some
// pushes; else 0. For the popper.
uint64_t cv_ring_waited(const struct cv_ring *ring);

// How many buffers were pushed since the beginning, modulo 2^32. For the pusher.
uint32_t cv_ring_pushed(const struct cv_ring *ring);

// Whether the popper has popped again after so many buffers that were pushed: a worker has by then
// sent what came of them. For the pusher.
bool cv_ring_is_done(const struct cv_ring *ring, uint32_t pushed);

// True if a burst of so many buffers and views fits in now. For the pusher.
bool cv_ring_has_room(const struct cv_ring *ring, uint32_t buffers, uint32_t views);

// How many packets are in it now. For the popper a lower bound, for everybody else an estimate.
uint32_t cv_ring_count(const struct cv_ring *ring);

#endif
