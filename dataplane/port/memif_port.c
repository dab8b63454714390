// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/memif_port.h"

#include <errno.h>
#include <stdlib.h>

#include "port/packet_pool.h"
#include "port/port_log.h"
#include "port/ring_buffers.h"
#include "socket/lost_memory.h"

static CV_HOT uint16_t rx(
	struct cv_port *port, uint16_t number, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_RX];
	uint8_t *to[CV_RX_STASH];
	uint16_t lens[CV_RX_STASH];
	uint16_t got = 0, room;

	(void)number;
	if (!cv_revocable_enter(&queue->access))
		return 0;
	if (cv_memif_ready(&queue->ring) > 0) {
		n = cv_ring_offer(memif->rx, memif->pool, n, packets, to, &room);
		got = n > 0 ? cv_memif_dequeue(&queue->ring, to, room, lens, n) : 0;
		memif->rx->stashed -= got;
	}
	cv_revocable_leave(&queue->access);
	for (uint16_t i = 0; i < got; i++)
		cv_mbuf_set(packets[i], RTE_PKTMBUF_HEADROOM, lens[i]);
	return got;
}

static CV_HOT uint16_t rx_views(struct cv_port *port, uint16_t number, struct cv_view *views,
	uint16_t n, struct cv_buffers *buffers)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_RX];
	struct cv_vring_buffer coalesced[CV_BUFFERS_MAX];
	uint16_t got = 0, used = 0, ready;

	(void)number;
	buffers->n = 0;
	if (!cv_revocable_enter(&queue->access))
		return 0;
	ready = cv_memif_ready(&queue->ring);
	if (ready > 0) {
		ready = RTE_MIN(ready, CV_BUFFERS_MAX);
		used = cv_ring_offer_coalesced(memif->rx, memif->pool, RTE_MIN(ready, n), port->mtu,
			buffers->buffers, coalesced);
		got = cv_memif_coalesce(&queue->ring, views, n, coalesced, &used);
		memif->rx->stashed -= used;
	}
	cv_revocable_leave(&queue->access);
	cv_ring_coalesced(buffers, coalesced, used);
	return got;
}

static CV_HOT uint16_t tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_TX];
	struct rte_mempool *const pool = n > 0 ? packets[0]->pool : NULL;
	struct cv_view views[CV_RX_STASH];
	bool simple = true; // all that were looked at
	uint16_t sent = 0;

	(void)tx_queue;
	if (!cv_revocable_enter(&queue->access))
		return 0;
	while (sent < n) {
		const uint16_t count = cv_ring_views(
			packets + sent, n - sent, views, pool, &simple, memif->bounce);
		const uint16_t took = cv_memif_enqueue(&queue->ring, views, count);

		sent += took;
		if (took < count)
			break;
	}
	if (sent > 0)
		cv_memif_notify(queue);
	cv_revocable_leave(&queue->access);
	if (sent > 0)
		cv_ring_free(pool, packets, sent, simple);
	return sent;
}

static uint16_t tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_TX];
	uint16_t sent;

	(void)tx_queue;
	if (!cv_revocable_enter(&queue->access))
		return 0;
	sent = cv_memif_enqueue(&queue->ring, views, n);
	if (sent > 0)
		cv_memif_notify(queue);
	cv_revocable_leave(&queue->access);
	return sent;
}

static void set(json_t *object, const char *key, const uint64_t *value)
{
	// Written by workers meanwhile; each is right, together they are of no one moment.
	json_object_set_new(
		object, key, json_integer((json_int_t)__atomic_load_n(value, __ATOMIC_RELAXED)));
}

static json_t *info(const struct cv_port *port)
{
	const struct cv_memif_port *memif = (const struct cv_memif_port *)port;
	const struct cv_memif *device = &memif->device;
	const struct cv_memif_ring *from = &device->queues[CV_MEMIF_RX].ring;
	const struct cv_memif_ring *to = &device->queues[CV_MEMIF_TX].ring;
	const uint64_t rx_errors =
		cv_counted(&from->counters.malformed) + cv_counted(&from->counters.too_long);
	const uint64_t tx_errors =
		cv_counted(&to->counters.malformed) + cv_counted(&to->counters.too_long);
	const uint64_t broken = (uint64_t)__atomic_load_n(&from->broken, __ATOMIC_RELAXED) +
				__atomic_load_n(&to->broken, __ATOMIC_RELAXED);
	json_t *object = json_object();

	json_object_set_new(object, "link", json_string(cv_memif_is_up(device) ? "up" : "down"));
	set(object, "rx_pkts", &from->counters.packets);
	set(object, "tx_pkts", &to->counters.packets);
	set(object, "rx_errors", &rx_errors);
	set(object, "tx_errors", &tx_errors);
	set(object, "rx_no_buffer", &memif->rx->no_buffer);
	set(object, "broken_queues", &broken);
	set(object, "peers", &device->peers);
	return object;
}

static void changed(void *context, bool up)
{
	cv_port_log(context, "peer %s", up ? "connected" : "gone");
}

static void refused(void *context, const char *why)
{
	cv_port_log(context, "peer refused: %s", why);
}

static void free_port(struct cv_memif_port *memif)
{
	if (memif->rx != NULL)
		cv_rx_stash_empty(memif->rx, memif->pool);
	free(memif->rx);
	free(memif->bounce);
}

static void close_port(struct cv_port *port)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;

	cv_memif_close(&memif->device);
	free_port(memif);
	free(memif);
}

int cv_memif_port_open(
	struct cv_memif_port *memif, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_port *port = &memif->port;
	int rc = -ENOMEM;

	if (!cv_packet_pool_fits(args->pool, port->mtu, error))
		return -EINVAL;
	memif->pool = args->pool;
	memif->device.session.name = "convoy";
	memif->device.changed = changed;
	memif->device.refused = refused;
	memif->device.context = port;
	memif->rx = calloc(1, sizeof(*memif->rx));
	memif->bounce = malloc(CV_RING_PACKET_MAX);
	cv_lost_memory_guard(cv_memif_lost);
	if (memif->rx != NULL && memif->bounce != NULL)
		rc = cv_memif_open(&memif->device, error);
	if (rc != 0) {
		free_port(memif);
		return rc;
	}
	port->rx = rx;
	port->tx = tx;
	port->rx_views = rx_views;
	port->tx_views = tx_views;
	port->info = info;
	port->close = close_port;
	port->rx_queues = 1;
	return 0;
}
