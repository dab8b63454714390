// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/vhost_port.h"

#include <errno.h>
#include <stdlib.h>

#include "port/handover.h"
#include "port/packet_pool.h"
#include "port/port_log.h"
#include "port/ring_buffers.h"
#include "socket/lost_memory.h"
#include "vhost/handover.h"

static CV_HOT uint16_t rx(
	struct cv_port *port, uint16_t pair, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = &vhost->device.queues[2 * pair + 1];
	struct cv_rx_stash *own = &vhost->rx[pair];
	uint8_t *to[CV_RX_STASH];
	uint16_t lens[CV_RX_STASH];
	uint16_t got = 0, room;

	if (!cv_revocable_enter(&queue->access))
		return 0;
	if (cv_vring_ready(&queue->vring) > 0) {
		n = cv_ring_offer(own, vhost->pool, n, packets, to, &room);
		got = n > 0 ? cv_vring_dequeue(&queue->vring, to, room, lens, n) : 0;
		own->stashed -= got;
		cv_vring_notify(&queue->vring);
	}
	cv_revocable_leave(&queue->access);
	for (uint16_t i = 0; i < got; i++)
		cv_mbuf_set(packets[i], RTE_PKTMBUF_HEADROOM, lens[i]);
	return got;
}

static CV_HOT uint16_t rx_views(struct cv_port *port, uint16_t pair, struct cv_view *views,
	uint16_t n, struct cv_buffers *buffers)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = &vhost->device.queues[2 * pair + 1];
	struct cv_rx_stash *own = &vhost->rx[pair];
	struct cv_vring_buffer coalesced[CV_BUFFERS_MAX];
	uint16_t got = 0, used = 0, ready;

	buffers->n = 0;
	if (!cv_revocable_enter(&queue->access))
		return 0;
	ready = cv_vring_ready(&queue->vring);
	if (ready > 0) {
		// The packed ring does not say how many there are.
		ready = queue->vring.is_packed ? CV_BUFFERS_MAX : RTE_MIN(ready, CV_BUFFERS_MAX);
		used = cv_ring_offer_coalesced(own, vhost->pool, RTE_MIN(ready, n), port->mtu,
			buffers->buffers, coalesced);
		got = cv_vring_coalesce(&queue->vring, views, n, coalesced, &used);
		own->stashed -= used;
		cv_vring_notify(&queue->vring);
	}
	cv_revocable_leave(&queue->access);
	cv_ring_coalesced(buffers, coalesced, used);
	return got;
}

static CV_INLINE struct cv_vhost_queue *queue_of(struct cv_vhost_port *vhost, uint16_t tx_queue)
{
	const uint16_t count = __atomic_load_n(&vhost->device.active_count, __ATOMIC_ACQUIRE);

	if (CV_UNLIKELY(count == 0))
		return NULL;
	if (CV_UNLIKELY(tx_queue >= count))
		tx_queue %= count;
	// It may be another pair's by now: then that is not ready, or as good.
	return &vhost->device.queues[2 * __atomic_load_n(&vhost->device.active[tx_queue],
						 __ATOMIC_RELAXED)];
}

static CV_HOT uint16_t tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = queue_of(vhost, tx_queue);
	struct cv_view views[CV_RX_STASH];
	struct rte_mempool *const pool = n > 0 ? packets[0]->pool : NULL;
	bool simple = true; // all that were looked at
	uint8_t *bounce;
	uint16_t sent = 0;

	if (queue == NULL || !cv_revocable_enter(&queue->access))
		return 0;
	bounce = vhost->bounce[(queue - vhost->device.queues) / 2];
	while (sent < n) {
		const uint16_t count =
			cv_ring_views(packets + sent, n - sent, views, pool, &simple, bounce);
		const uint16_t took = cv_vring_enqueue(&queue->vring, views, count);

		sent += took;
		if (took < count)
			break;
	}
	if (sent > 0)
		cv_vring_notify(&queue->vring);
	cv_revocable_leave(&queue->access);
	if (sent > 0)
		cv_ring_free(pool, packets, sent, simple);
	return sent;
}

static uint16_t tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = queue_of(vhost, tx_queue);
	uint16_t sent;

	if (queue == NULL || !cv_revocable_enter(&queue->access))
		return 0;
	sent = cv_vring_enqueue(&queue->vring, views, n);
	if (sent > 0)
		cv_vring_notify(&queue->vring);
	cv_revocable_leave(&queue->access);
	return sent;
}

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *info(const struct cv_port *port)
{
	const struct cv_vhost_port *vhost = (const struct cv_vhost_port *)port;
	uint64_t packets[2] = {0}, errors[2] = {0}, kicks = 0, no_buffer = 0, broken = 0;
	json_t *object = json_object();

	// Written by workers meanwhile; each is right, together they are of no one moment.
	for (uint16_t i = 0; i < 2 * vhost->device.session.pairs; i++) {
		const struct cv_vring *vring = &vhost->device.queues[i].vring;

		packets[i % 2] += __atomic_load_n(&vring->counters.packets, __ATOMIC_RELAXED);
		errors[i % 2] += __atomic_load_n(&vring->counters.malformed, __ATOMIC_RELAXED) +
				 __atomic_load_n(&vring->counters.too_long, __ATOMIC_RELAXED);
		kicks += __atomic_load_n(&vring->counters.kicks, __ATOMIC_RELAXED);
		broken += __atomic_load_n(&vring->broken, __ATOMIC_RELAXED);
		if (i % 2 == 0)
			no_buffer += __atomic_load_n(&vhost->rx[i / 2].no_buffer, __ATOMIC_RELAXED);
	}
	json_object_set_new(
		object, "link", json_string(cv_vhost_device_is_up(&vhost->device) ? "up" : "down"));
	set(object, "rx_pkts", packets[1]);
	set(object, "tx_pkts", packets[0]);
	set(object, "rx_errors", errors[1]);
	set(object, "tx_errors", errors[0]);
	set(object, "rx_no_buffer", no_buffer);
	set(object, "kicks", kicks);
	set(object, "broken_queues", broken);
	set(object, "refused_messages",
		__atomic_load_n(&vhost->device.refused_messages, __ATOMIC_RELAXED));
	set(object, "peers", __atomic_load_n(&vhost->device.peers, __ATOMIC_RELAXED));
	return object;
}

static void changed(void *context, bool up)
{
	cv_port_log(context, "peer %s", up ? "connected" : "gone");
}

static void refused(void *context, const char *why)
{
	cv_port_log(context, "refused: %s", why);
}

static void free_port(struct cv_vhost_port *vhost)
{
	for (uint16_t i = 0; vhost->bounce != NULL && i < vhost->device.session.pairs; i++)
		free(vhost->bounce[i]);
	for (uint16_t i = 0; vhost->rx != NULL && i < vhost->device.session.pairs; i++)
		cv_rx_stash_empty(&vhost->rx[i], vhost->pool);
	free(vhost->bounce);
	free(vhost->rx);
	vhost->bounce = NULL;
	vhost->rx = NULL;
}

static int give(struct cv_port *port, struct cv_record_sink *sink, struct cv_error *error)
{
	return cv_vhost_device_give(&((struct cv_vhost_port *)port)->device, sink, error);
}

static int freeze(struct cv_port *port, struct cv_record_sink *sink, struct cv_error *error)
{
	return cv_vhost_device_freeze(&((struct cv_vhost_port *)port)->device, sink, error);
}

static void resume(struct cv_port *port)
{
	cv_vhost_device_resume(&((struct cv_vhost_port *)port)->device);
}

static void leave(struct cv_port *port)
{
	cv_vhost_device_leave(&((struct cv_vhost_port *)port)->device);
}

static int take(struct cv_port *port, struct cv_record *record, struct cv_error *error)
{
	return cv_vhost_device_take(&((struct cv_vhost_port *)port)->device, record, error);
}

static int taken(struct cv_port *port, struct cv_error *error)
{
	return cv_vhost_device_taken(&((struct cv_vhost_port *)port)->device, error);
}

static void adopt(struct cv_port *port)
{
	cv_vhost_device_adopt(&((struct cv_vhost_port *)port)->device);
}

static void listen_to_peer(struct cv_port *port)
{
	cv_vhost_device_listen(&((struct cv_vhost_port *)port)->device);
}

static const struct cv_port_handover handover = {
	.give = give,
	.freeze = freeze,
	.resume = resume,
	.leave = leave,
	.take = take,
	.taken = taken,
	.adopt = adopt,
	.listen = listen_to_peer,
};

static void close_port(struct cv_port *port)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;

	cv_vhost_device_close(&vhost->device);
	free_port(vhost);
	free(vhost);
}

static int allocate(struct cv_vhost_port *vhost)
{
	vhost->rx = calloc(vhost->device.session.pairs, sizeof(*vhost->rx));
	vhost->bounce = calloc(vhost->device.session.pairs, sizeof(*vhost->bounce));
	if (vhost->rx == NULL || vhost->bounce == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < vhost->device.session.pairs; i++) {
		vhost->bounce[i] = malloc(CV_RING_PACKET_MAX);
		if (vhost->bounce[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int cv_vhost_port_open(
	struct cv_vhost_port *vhost, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_port *port = &vhost->port;
	int rc;

	if (!cv_packet_pool_fits(args->pool, port->mtu, error))
		return -EINVAL;
	vhost->pool = args->pool;
	vhost->device.changed = changed;
	vhost->device.refused = refused;
	vhost->device.context = port;
	cv_lost_memory_guard(cv_vhost_device_lost);
	rc = allocate(vhost);
	if (rc == 0)
		rc = cv_vhost_device_open(&vhost->device, error);
	if (rc != 0) {
		free_port(vhost);
		return rc;
	}
	port->rx = rx;
	port->tx = tx;
	port->rx_views = rx_views;
	port->tx_views = tx_views;
	port->info = info;
	port->close = close_port;
	port->handover = &handover;
	port->rx_queues = vhost->device.session.pairs;
	return 0;
}
