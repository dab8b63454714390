// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One memif interface: its socket, its peer, a queue each way. Workers use a queue under its lock;
// before anything of a peer is unmapped both queues are revoked. What is agreed on over the socket
// happens in the node's thread for sockets.
#ifndef CV_MEMIF_DEVICE_H
#define CV_MEMIF_DEVICE_H

#include "memif/session.h"
#include "packet/revocable.h"
#include "socket/endpoint.h"
#include "vring/call.h"

struct cv_memif_queue {
	_Alignas(64) struct cv_revocable access; // to ring; changes under its lock
	int call; // eventfd of the peer that takes packets
	struct cv_memif_ring ring;
};

enum { CV_MEMIF_RX, CV_MEMIF_TX, CV_MEMIF_QUEUES };

struct cv_memif {
	// path, and client: connects, rather than listens.
	struct cv_endpoint endpoint;
	struct cv_memif_session session; // id, slots and name are set
	// In the thread for sockets: the peer has come or gone; or it is refused, and why.
	void (*changed)(void *context, bool up);
	void (*refused)(void *context, const char *why);
	void *context;

	struct cv_memif_queue *queues; // CV_MEMIF_QUEUES of them
	uint64_t peers; // how often one came; atomic
	bool lost; // the peer took back memory: nothing moves before it connects anew; atomic

	struct cv_loop_watch watch; // of the peer's socket
	struct cv_loop_timer timeout; // until it must be connected
	char last_refusal[128]; // why the last peer was refused; reported once
};

// Begins to listen or to connect. 0, or -errno with error set.
int cv_memif_open(struct cv_memif *device, struct cv_error *error);

// Nobody uses a queue any more.
void cv_memif_close(struct cv_memif *device);

// For cv_lost_memory_guard(): the interface whose peer shared this address loses its queues.
void cv_memif_lost(const void *address);

static inline bool cv_memif_is_up(const struct cv_memif *device)
{
	return __atomic_load_n(&device->queues[CV_MEMIF_TX].access.ready, __ATOMIC_RELAXED);
}

// To be called after packets were put, before cv_revocable_leave().
static CV_INLINE void cv_memif_notify(struct cv_memif_queue *queue)
{
	if (CV_UNLIKELY(cv_memif_wants_interrupt(&queue->ring)))
		cv_call(queue->call);
}

#endif
