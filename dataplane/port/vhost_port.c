// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/vhost_port.h"

#include <errno.h>
#include <stdlib.h>

#include "port/port_log.h"
#include "socket/lost_memory.h"

#define VLAN_TAGS 8 // bytes: two tags
#define PACKET_MAX 65535u

// Headers that a frame of coalesced packets may get without a copy: IPv4, UDP, convoy. What is
// coalesced into one buffer leaves room for them within the MTU.
#define OUTER_BYTES (20u + 8 + 4)

static CV_HOT uint16_t rx(
	struct cv_port *port, uint16_t pair, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = &vhost->device.queues[2 * pair + 1];
	struct cv_rx_stash *own = &vhost->rx[pair];
	uint8_t *to[CV_RX_STASH];
	uint16_t lens[CV_RX_STASH];
	uint16_t got = 0, room;

	if (!cv_vhost_queue_enter(queue))
		return 0;
	if (cv_vring_ready(&queue->vring) > 0) {
		n = cv_rx_stash_fill(own, vhost->pool, RTE_MIN(n, CV_RX_STASH));
		// From the end: what is left stays where it is.
		for (uint16_t i = 0; i < n; i++) {
			packets[i] = own->stash[own->stashed - 1 - i];
			to[i] = (uint8_t *)packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;
			CV_PREFETCH_WRITE(to[i]);
		}
		room = n > 0 ? packets[0]->buf_len - RTE_PKTMBUF_HEADROOM : 0;
		got = n > 0 ? cv_vring_dequeue(&queue->vring, to, room, lens, n) : 0;
		own->stashed -= got;
		cv_vring_notify(&queue->vring);
	}
	cv_vhost_queue_leave(queue);
	for (uint16_t i = 0; i < got; i++)
		cv_rx_stash_set(packets[i], RTE_PKTMBUF_HEADROOM, lens[i]);
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
	if (!cv_vhost_queue_enter(queue))
		return 0;
	ready = cv_vring_ready(&queue->vring);
	if (ready > 0) {
		// The packed ring does not say how many there are.
		ready = queue->vring.is_packed ? CV_BUFFERS_MAX : RTE_MIN(ready, CV_BUFFERS_MAX);
		used = cv_rx_stash_fill(own, vhost->pool, RTE_MIN(ready, n));
		for (uint16_t i = 0; i < used; i++) {
			struct rte_mbuf *mbuf = own->stash[own->stashed - 1 - i];
			// A single packet may be as long as the MTU lets it.
			const uint32_t room = mbuf->buf_len - RTE_PKTMBUF_HEADROOM;

			buffers->buffers[i] = mbuf;
			coalesced[i].data = (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
			coalesced[i].room = room;
			coalesced[i].coalesced_max = RTE_MIN(room, port->mtu - OUTER_BYTES);
		}
		got = cv_vring_coalesce(&queue->vring, views, n, coalesced, &used);
		own->stashed -= used;
		cv_vring_notify(&queue->vring);
	}
	cv_vhost_queue_leave(queue);
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

// Puts the segments of a packet one behind the other.
static const uint8_t *put_together(struct cv_vhost_port *vhost, const struct cv_vhost_queue *queue,
	const struct rte_mbuf *packet)
{
	const ptrdiff_t pair = (queue - vhost->device.queues) / 2;

	return rte_pktmbuf_read(
		packet, 0, RTE_MIN(packet->pkt_len, PACKET_MAX), vhost->bounce[pair]);
}

static CV_HOT uint16_t tx(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = queue_of(vhost, tx_queue);
	struct cv_view views[CV_RX_STASH];
	struct rte_mempool *const pool = n > 0 ? packets[0]->pool : NULL;
	bool simple = true; // all that were looked at
	uint16_t sent = 0;

	if (queue == NULL || !cv_vhost_queue_enter(queue))
		return 0;
	while (sent < n) {
		uint16_t count = 0, took;

		while (count < CV_RX_STASH && sent + count < n) {
			struct rte_mbuf *packet = packets[sent + count];
			struct cv_view *view = &views[count];

			view->data = rte_pktmbuf_mtod(packet, uint8_t *);
			view->len = packet->data_len;
			view->before = 0;
			simple &= cv_buffer_is_simple(packet, pool);
			if (CV_UNLIKELY(packet->nb_segs > 1)) {
				// One at a time: there is one place for it.
				if (count > 0)
					break;
				view->data =
					(uint8_t *)(uintptr_t)put_together(vhost, queue, packet);
				view->len = (uint16_t)RTE_MIN(packet->pkt_len, PACKET_MAX);
				count = 1;
				break;
			}
			count++;
		}
		took = cv_vring_enqueue(&queue->vring, views, count);
		sent += took;
		if (took < count)
			break;
	}
	if (sent > 0)
		cv_vring_notify(&queue->vring);
	cv_vhost_queue_leave(queue);
	if (sent == 0)
		return 0;
	if (CV_LIKELY(simple))
		rte_mempool_put_bulk(pool, (void *const *)packets, sent);
	else
		rte_pktmbuf_free_bulk(packets, sent);
	return sent;
}

static uint16_t tx_views(
	struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n)
{
	struct cv_vhost_port *vhost = (struct cv_vhost_port *)port;
	struct cv_vhost_queue *queue = queue_of(vhost, tx_queue);
	uint16_t sent;

	if (queue == NULL || !cv_vhost_queue_enter(queue))
		return 0;
	sent = cv_vring_enqueue(&queue->vring, views, n);
	if (sent > 0)
		cv_vring_notify(&queue->vring);
	cv_vhost_queue_leave(queue);
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
		broken += vring->broken;
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

static int start(struct cv_port *port, struct cv_error *error)
{
	return 0; // the peer may be there since open
}

static void stop(struct cv_port *port)
{
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
		vhost->bounce[i] = malloc(PACKET_MAX);
		if (vhost->bounce[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int cv_vhost_port_open(
	struct cv_vhost_port *vhost, const struct cv_port_args *args, struct cv_error *error)
{
	const unsigned room = rte_pktmbuf_data_room_size(args->pool) - RTE_PKTMBUF_HEADROOM;
	struct cv_port *port = &vhost->port;
	const unsigned frame = port->mtu + CV_ETHER_LEN + VLAN_TAGS;
	int rc;

	if (frame > room) {
		cv_error_set(error,
			"mtu: %u: its frames of %u bytes do not fit into the node's buffers of %u",
			port->mtu, frame, room);
		return -EINVAL;
	}
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
	port->start = start;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = vhost->device.session.pairs;
	return 0;
}
