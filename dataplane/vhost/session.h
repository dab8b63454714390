// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What one front end has told us so far: features, memory, rings. A message changes it and may have
// a reply; no sockets, no threads. Between two messages the rings that can be used are asked for one
// by one (cv_vhost_session_ring), and each time everything about them is validated anew, for the
// size, layout, addresses and memory in force: nothing is kept that was checked for others.
//
// Who uses rings leaves them before a message that changes something is handled, and says how far
// they came (base).
#ifndef CV_VHOST_SESSION_H
#define CV_VHOST_SESSION_H

#include <stdbool.h>

#include "packet/error.h"
#include "vhost/memory.h"
#include "vhost/protocol.h"
#include "vring/vring.h"

#define CV_VHOST_PAIRS_MAX 64
#define CV_VHOST_RINGS_MAX (2 * CV_VHOST_PAIRS_MAX)

struct cv_vhost_session;

struct cv_vhost_ring {
	struct vhost_vring_addr address; // as the front end names them
	uint16_t size; // descriptors; 0: not said yet
	bool has_address;
	bool started; // between SET_VRING_KICK and GET_VRING_BASE
	bool fresh; // started, and not used since
	bool enabled;
	int call_fd; // eventfd; -1: the guest polls
	struct cv_vring_base base; // where it goes on; whoever uses the ring keeps it up to date
	const struct cv_vhost_session *session;
};

struct cv_vhost_session {
	// What is offered; set before cv_vhost_session_begin().
	uint16_t pairs; // of queues, 1 to CV_VHOST_PAIRS_MAX
	uint16_t ring_size_max; // descriptors, at most CV_VRING_SIZE_MAX
	bool packed; // packed rings, too

	uint64_t features, protocol_features; // negotiated
	uint8_t status; // virtio's device status
	struct cv_vhost_memory memory;
	struct cv_shared_memory log; // of pages written, while the guest is migrated
	struct cv_vhost_ring rings[CV_VHOST_RINGS_MAX];
};

static inline bool cv_vhost_has(uint64_t features, int bit)
{
	return features >> bit & 1;
}

// Begins with a new front end.
void cv_vhost_session_begin(struct cv_vhost_session *session);

// Gives back memory and rings, as RESET_OWNER asks. Nobody uses a ring any more.
void cv_vhost_session_reset(struct cv_vhost_session *session);

// Gives back all that it has. Nobody uses a ring any more.
void cv_vhost_session_end(struct cv_vhost_session *session);

// Handles a checked message (message.h, handle.c) and the descriptors that came with it: of those it keeps, it
// puts -1 into fds. Returns 1: *reply is to be sent; 0: nothing is; -errno with error set: the
// connection is to be closed. Whatever it returns, the session can be used and ended.
int cv_vhost_session_handle(struct cv_vhost_session *session,
	const struct cv_vhost_message *message, int *fds, struct cv_vhost_message *reply,
	struct cv_error *error);

// Fills in where ring index (below 2 * pairs) is and begins it (cv_vring_begin). 0: it can be used
// until the next message that changes something; -EAGAIN: it is not to be used now (not started,
// not enabled, not all is said); -EINVAL with error set: it is, but what was said cannot be right.
int cv_vhost_session_ring(struct cv_vhost_session *session, uint16_t index, struct cv_vring *vring,
	struct cv_error *error);

#endif
