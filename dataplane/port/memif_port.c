// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/memif_port.h"

#include <errno.h>
#include <stdlib.h>

#include "port/port_log.h"
#include "socket/lost_memory.h"

#define VLAN_TAGS 8 // bytes: two tags
#define PACKET_MAX 65535u

// Headers that a frame of coalesced packets may get without a copy: IPv4, UDP, convoy.
#define OUTER_BYTES (20u + 8 + 4)

static CV_HOT uint16_t rx(
	struct cv_port *port, uint16_t number, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_RX];
	uint8_t *to[CV_RX_STASH];
	uint16_t lens[CV_RX_STASH];
	uint16_t got = 0, room;

	(void)number;
	if (!cv_memif_enter(queue))
		return 0;
	if (cv_memif_ready(&queue->ring) > 0) {
		n = cv_rx_stash_fill(memif->rx, memif->pool, RTE_MIN(n, CV_RX_STASH));
		// From the end: what is left stays where it is.
		for (uint16_t i = 0; i < n; i++) {
			packets[i] = memif->rx->stash[memif->rx->stashed - 1 - i];
			to[i] = (uint8_t *)packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;
			CV_PREFETCH_WRITE(to[i]);
		}
		room = n > 0 ? packets[0]->buf_len - RTE_PKTMBUF_HEADROOM : 0;
		got = n > 0 ? cv_memif_dequeue(&queue->ring, to, room, lens, n) : 0;
		memif->rx->stashed -= got;
	}
	cv_memif_leave(queue);
	for (uint16_t i = 0; i < got; i++)
		cv_rx_stash_set(packets[i], RTE_PKTMBUF_HEADROOM, lens[i]);
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
	if (!cv_memif_enter(queue))
		return 0;
	ready = cv_memif_ready(&queue->ring);
	if (ready > 0) {
		ready = RTE_MIN(ready, CV_BUFFERS_MAX);
		used = cv_rx_stash_fill(memif->rx, memif->pool, RTE_MIN(ready, n));
		for (uint16_t i = 0; i < used; i++) {
			struct rte_mbuf *mbuf = memif->rx->stash[memif->rx->stashed - 1 - i];
			// A single packet may be as long as the MTU lets it.
			const uint32_t room = mbuf->buf_len - RTE_PKTMBUF_HEADROOM;

			buffers->buffers[i] = mbuf;
			coalesced[i].data = (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
			coalesced[i].room = room;
			coalesced[i].coalesced_max = RTE_MIN(room, port->mtu - OUTER_BYTES);
		}
		got = cv_memif_coalesce(&queue->ring, views, n, coalesced, &used);
		memif->rx->stashed -= used;
	}
	cv_memif_leave(queue);
	for (uint16_t i = 0; i < used; i++) {
		const bool single = coalesced[i].packets == 1;

		// A single packet is all that its buffer holds.
		cv_rx_stash_set(buffers->buffers[i], RTE_PKTMBUF_HEADROOM + (single ? 2 : 0),
			(uint16_t)(coalesced[i].len - (single ? 2 : 0)));
		buffers->views[i] = (uint8_t)coalesced[i].packets;
	}
	buffers->n = used;
	return got;
}

// Makes views of the first packets of n <= CV_RX_STASH; simple becomes false where one cannot be freed
// as it is. Returns how many.
static CV_INLINE uint16_t view(struct cv_memif_port *memif, struct rte_mbuf **packets, uint16_t n,
	struct cv_view *views, bool *simple)
{
	const struct rte_mempool *pool = packets[0]->pool;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		*simple &= cv_buffer_is_simple(packet, pool);
		views[i].data = rte_pktmbuf_mtod(packet, uint8_t *);
		views[i].len = packet->data_len;
		views[i].before = 0;
		if (CV_LIKELY(packet->nb_segs == 1))
			continue;
		// One at a time: there is one place for it.
		if (i > 0)
			return i;
		views[i].len = (uint16_t)RTE_MIN(packet->pkt_len, PACKET_MAX);
		views[i].data = (uint8_t *)(uintptr_t)rte_pktmbuf_read(
			packet, 0, views[i].len, memif->bounce);
		return 1;
	}
	return n;
}

static CV_HOT uint16_t tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_TX];
	struct cv_view views[CV_RX_STASH];
	bool simple = true; // all that were looked at
	uint16_t sent = 0;

	(void)tx_queue;
	if (!cv_memif_enter(queue))
		return 0;
	while (sent < n) {
		const uint16_t count =
			view(memif, packets + sent, RTE_MIN(n - sent, CV_RX_STASH), views, &simple);
		const uint16_t took = cv_memif_enqueue(&queue->ring, views, count);

		simple &= packets[sent]->pool == packets[0]->pool;
		sent += took;
		if (took < count)
			break;
	}
	if (sent > 0)
		cv_memif_notify(queue);
	cv_memif_leave(queue);
	if (sent == 0)
		return 0;
	if (CV_LIKELY(simple))
		rte_mempool_put_bulk(packets[0]->pool, (void *const *)packets, sent);
	else
		rte_pktmbuf_free_bulk(packets, sent);
	return sent;
}

static uint16_t tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	struct cv_memif_port *memif = (struct cv_memif_port *)port;
	struct cv_memif_queue *queue = &memif->device.queues[CV_MEMIF_TX];
	uint16_t sent;

	(void)tx_queue;
	if (!cv_memif_enter(queue))
		return 0;
	sent = cv_memif_enqueue(&queue->ring, views, n);
	if (sent > 0)
		cv_memif_notify(queue);
	cv_memif_leave(queue);
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
	const uint64_t rx_errors = from->counters.malformed + from->counters.too_long;
	const uint64_t tx_errors = to->counters.malformed + to->counters.too_long;
	const uint64_t broken = (uint64_t)from->broken + to->broken;
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

static int start(struct cv_port *port, struct cv_error *error)
{
	(void)port;
	(void)error;
	return 0; // the peer may be there since open
}

static void stop(struct cv_port *port)
{
	(void)port;
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
	const unsigned room = rte_pktmbuf_data_room_size(args->pool) - RTE_PKTMBUF_HEADROOM;
	struct cv_port *port = &memif->port;
	const unsigned frame = port->mtu + CV_ETHER_LEN + VLAN_TAGS;
	int rc = -ENOMEM;

	if (frame > room) {
		cv_error_set(error,
			"mtu: %u: its frames of %u bytes do not fit into the node's buffers of %u",
			port->mtu, frame, room);
		return -EINVAL;
	}
	memif->pool = args->pool;
	memif->device.session.name = "convoy";
	memif->device.changed = changed;
	memif->device.refused = refused;
	memif->device.context = port;
	memif->rx = calloc(1, sizeof(*memif->rx));
	memif->bounce = malloc(PACKET_MAX);
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
	port->start = start;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = 1;
	return 0;
}
