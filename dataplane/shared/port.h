// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An end of a link: what a port is to the owner of a pool, or to a member of one.
#ifndef CV_SHARED_PORT_H
#define CV_SHARED_PORT_H

#include "shared/message.h"
#include "shared/queue.h"

struct cv_shared_port {
	char link[CV_SHARED_NAME_BYTES];
	// In the thread for sockets: the other end has come or gone; or it is refused, and why.
	void (*changed)(void *context, bool up);
	void (*refused)(void *context, const char *why);
	void *context;

	struct cv_shared_queue rx, tx;
	uint32_t number; // the link's, once it is up
	uint64_t peers; // how often the other end came; atomic
};

static inline bool cv_shared_is_up(const struct cv_shared_port *port)
{
	return __atomic_load_n(&port->tx.access.ready, __ATOMIC_RELAXED);
}

// Lets workers use a queue that begins anew.
void cv_shared_grant(struct cv_shared_queue *queue, struct cv_shared_ring *ring, uint32_t slots,
	const struct cv_shared_buffers *buffers);

// No worker uses the queue when this returns.
void cv_shared_revoke(struct cv_shared_queue *queue);

// The same for both queues of a port, of which it is told.
void cv_shared_port_up(struct cv_shared_port *port, const struct cv_shared_layout *layout,
	uint8_t *base, const struct cv_shared_buffers *buffers, uint32_t link, uint32_t side);
void cv_shared_port_down(struct cv_shared_port *port);

#endif
