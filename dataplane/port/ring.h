// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A ring joins two stages of a pipeline: one worker pushes, one other worker pops, nobody waits.
// It carries the views beside the packets, so that the next stage knows what the one before found
// out (layer 3, in, out) without touching the packet's buffer, and a push or pop is two copies
// whatever is in them (docs/decisions/ring.md).
#ifndef CV_RING_H
#define CV_RING_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "error.h"
#include "view.h"

struct cv_ring;

// A ring for at least that many packets, 1 to 2^20, rounded up to a power of two. Needs the EAL.
// NULL with error set: another number, or no memory. The name is for error texts only.
struct cv_ring *cv_ring_create(const char *name, uint32_t packets, struct cv_error *error);

// Frees the ring and the packets that are still in it. Nobody may push or pop any more.
void cv_ring_free(struct cv_ring *ring);

// Gives the first packets of n to the ring, as many as fit, and returns how many: these belong to
// the ring, the rest stays with the caller. Called by one thread.
uint16_t cv_ring_push(struct cv_ring *ring, struct rte_mbuf *const *packets,
	const struct cv_view *views, uint16_t n);

// Takes up to n packets in the order they were pushed and returns how many; they belong to the
// caller. Called by one thread.
uint16_t cv_ring_pop(
	struct cv_ring *ring, struct rte_mbuf **packets, struct cv_view *views, uint16_t n);

// How many packets fit in now. For the pusher a lower bound, for everybody else an estimate.
uint32_t cv_ring_room(const struct cv_ring *ring);

// How many packets are in it now. For the popper a lower bound, for everybody else an estimate.
uint32_t cv_ring_count(const struct cv_ring *ring);

#endif
