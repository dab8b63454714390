// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One vhost-user device: its socket, its front end, its virtqueues. The protocol runs in the node's
// thread for sockets (socket/loop.h), which never waits: a message is handled when it is whole, one
// at a time. Workers move packets with a queue's vring, under the queue's lock. Before a message that
// changes anything is handled, all queues are revoked: no worker uses them when that is done. After
// it, those that can be used are granted again.
//
// A front end that sends what it must not is disconnected, and the port waits for the next.
#ifndef CV_VHOST_DEVICE_H
#define CV_VHOST_DEVICE_H

#include "packet/compiler.h"
#include "packet/error.h"
#include "packet/revocable.h"
#include "socket/endpoint.h"
#include "vhost/session.h"
#include "vhost/stream.h"
#include "vring/vring.h"

struct cv_vhost_queue {
	_Alignas(64) struct cv_revocable access; // to vring
	struct cv_vring vring;
};

// Sockets that another process gave (vhost/handover.h), until they are used.
struct cv_vhost_taken {
	bool is_there;
	int listener, peer; // -1: none
};

#define CV_VHOST_DEVICE_EVENTS 1u // EPOLLIN

struct cv_vhost_device {
	// Set by whoever opens it: endpoint.path and client; session.pairs, ring_size_max and packed.
	struct cv_endpoint endpoint;
	struct cv_vhost_session session; // the loop's thread's own
	// Called in the loop's thread: a pair of queues can be used, or none any more.
	void (*changed)(void *context, bool up);
	// Called in the loop's thread: the front end was disconnected, or a ring is not used, and why.
	void (*refused)(void *context, const char *why);
	void *context;

	// Even: to the guest; odd: from the guest. 2 * pairs of them.
	struct cv_vhost_queue *queues;
	uint16_t active[CV_VHOST_PAIRS_MAX]; // pairs whose queue to the guest is there; atomic
	uint16_t active_count; // atomic
	uint64_t peers; // how often one came; atomic
	uint64_t refused_messages; // atomic
	bool lost; // the peer took back memory: no queue is used before it connects anew; atomic

	// The loop's thread's own.
	bool up;
	bool held; // its front end is not listened to: it is being handed over
	struct cv_vhost_taken taken;
	struct cv_loop_watch watch; // of the peer's socket
	struct cv_loop_timer deadline; // of a message that has begun
	struct cv_vhost_stream stream;
};

// Begins to listen or to connect. 0, or -errno with error set.
int cv_vhost_device_open(struct cv_vhost_device *device, struct cv_error *error);

// Nobody uses a queue any more. Returns when the peer is disconnected and all is freed.
void cv_vhost_device_close(struct cv_vhost_device *device);

// For handover.h, while the front end is not listened to. Takes all queues from workers; grants them what
// can be used, and tells nobody, for packets wait; and, in the loop's thread, says what changed and listens
// to the front end, which is at endpoint.peer.
void cv_vhost_device_revoke(struct cv_vhost_device *device);
void cv_vhost_device_grant(struct cv_vhost_device *device);
void cv_vhost_device_serve(struct cv_vhost_device *device);

// For cv_lost_memory_guard(): the device whose peer shared this address loses its queues.
void cv_vhost_device_lost(const void *address);

static inline bool cv_vhost_device_is_up(const struct cv_vhost_device *device)
{
	return __atomic_load_n(&device->active_count, __ATOMIC_RELAXED) > 0;
}

#endif
