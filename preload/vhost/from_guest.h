// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets that a guest sends reach the program in convoys: what waits in the ring is aggregated.
//
// A guest cannot make convoys that anybody disaggregates: a packet of its own that looks like one
// is sent inside of one, and where it does not fit, or none are made, it is dropped.
#ifndef CV_VHOST_FROM_GUEST_H
#define CV_VHOST_FROM_GUEST_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "convoy/outer.h"
#include "preload/vhost/waiting_frame.h"
#include "vring/vring.h"

#define CV_FROM_BURST 64 // frames in one go
#define CV_FROM_VIEWS (256 + CV_CONVOY_PACKETS_MAX)

// Of one queue from a guest; one thread at a time.
struct cv_from_guest {
	const struct cv_outer *outer; // of the convoys made; len 0: none are made
	rte_be16_t port; // UDP port of convoys
	uint16_t spares; // buffers to receive in, fresh from `pool`
	uint64_t frames, convoys; // to the program; the convoys that we made among them
	uint64_t shared; // of these, those with packets of other queues
	uint64_t lost; // packets that waited for others when the guest went
	uint64_t refused; // packets that look like convoys, and could not be put into one
	struct cv_waiting_frame waiting; // its own, where frames wait for packets of one queue
	struct rte_mempool *pool;
	struct rte_mbuf *spare[CV_FROM_BURST];
};

// Takes up to n frames out of the guest's ring into buffers of the pool. They become the caller's.
uint16_t cv_from_guest_take(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n);

// The same, but that a frame which is not full waits. One that waits already, the queue's own or a
// thread's, goes first, and is counted with this queue.
uint16_t cv_from_guest_take_waiting(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n,
	struct cv_waiting_frame *waiting);

// The frame that waits, if its time is over. Returns how many frames: 0 or 1.
uint16_t cv_from_guest_take_due(
	struct cv_from_guest *from, struct rte_mbuf **frames, struct cv_waiting_frame *waiting);

// Of n frames that rte_vhost took from a guest that is left to it: frees those that look like convoys,
// and closes ranks. Returns how many are left.
uint16_t cv_from_guest_sift(struct cv_from_guest *from, struct rte_mbuf **frames, uint16_t n);

// The guest is gone: frees what it holds.
void cv_from_guest_drop(struct cv_from_guest *from);

#endif
