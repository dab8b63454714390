// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/port.h"

void cv_shared_grant(struct cv_shared_queue *queue, struct cv_shared_ring *ring, uint32_t slots,
	const struct cv_shared_buffers *buffers)
{
	rte_spinlock_lock(&queue->access.lock);
	queue->ring = ring;
	queue->mask = slots - 1;
	queue->next = queue->seen = 0;
	queue->buffers = buffers;
	__atomic_store_n(&queue->broken, false, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->access.ready, true, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&queue->access.lock);
}

void cv_shared_revoke(struct cv_shared_queue *queue)
{
	rte_spinlock_lock(&queue->access.lock);
	__atomic_store_n(&queue->access.ready, false, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&queue->access.lock);
}

void cv_shared_port_up(struct cv_shared_port *port, const struct cv_shared_layout *layout,
	uint8_t *base, const struct cv_shared_buffers *buffers, uint32_t link, uint32_t side)
{
	port->number = link;
	cv_shared_grant(
		&port->rx, cv_shared_link(layout, base, link, !side), CV_SHARED_SLOTS, buffers);
	cv_shared_grant(
		&port->tx, cv_shared_link(layout, base, link, side), CV_SHARED_SLOTS, buffers);
	__atomic_fetch_add(&port->peers, 1, __ATOMIC_RELAXED);
	port->changed(port->context, true);
}

void cv_shared_port_down(struct cv_shared_port *port)
{
	const bool was_up = cv_shared_is_up(port);

	cv_shared_revoke(&port->rx);
	cv_shared_revoke(&port->tx);
	if (was_up)
		port->changed(port->context, false);
}
