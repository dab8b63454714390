// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames that the program sends to a guest: convoys are disaggregated into the guest's buffers.
//
// A convoy needs as many buffers as it has packets, and a program's burst many times more than it
// thinks: where the guest has too few at that moment, the rest is held and goes first when the queue
// is used again, or its device is polled. Only where convoys come, and only so many; what goes
// beyond stays the program's, as when rte_vhost's ring is full.
#ifndef CV_VHOST_TO_GUEST_H
#define CV_VHOST_TO_GUEST_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "vring/vring.h"

#define CV_HELD_MAX 64 // frames

// Of one queue to a guest; one thread at a time.
struct cv_to_guest {
	rte_be16_t port; // UDP port of convoys
	bool convoys; // the last frames were some
	uint16_t first, count; // of held; count: atomic, others look whether there is something
	unsigned done; // packets of the first one held that the guest has
	uint64_t opened; // convoys that the guest has all of
	uint64_t lost; // packets that were held when the guest went
	struct rte_mbuf *held[CV_HELD_MAX]; // a reference to each
};

// Puts frames into the guest's ring, after those that are held. Returns how many the program need
// not send again: what the guest has, or what is held. Frees nothing of the program's.
uint16_t cv_to_guest_put(
	struct cv_to_guest *to, struct cv_vring *vring, struct rte_mbuf **frames, uint16_t n);

// Puts what is held. True: nothing is held any more.
bool cv_to_guest_flush(struct cv_to_guest *to, struct cv_vring *vring);

// The guest is gone: what is held is lost.
void cv_to_guest_drop(struct cv_to_guest *to);

static CV_INLINE bool cv_to_guest_holds(const struct cv_to_guest *to)
{
	return __atomic_load_n(&to->count, __ATOMIC_RELAXED) > 0;
}

#endif
