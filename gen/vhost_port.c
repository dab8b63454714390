// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "vhost_port.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "convoys.h"
#include "monitor.h"
#include "stamp.h"
#include "vhost_user.h"

#ifndef VIRTIO_F_IN_ORDER
#define VIRTIO_F_IN_ORDER 35
#endif

#define RETRY_MS 20

struct queue {
	struct gen_vring rx, tx;
	uint8_t *buffers; // of rx: the frame of buffer i at buffers + i * stride
	uint32_t stride;
	uint32_t header_bytes; // of virtio-net, before the frame
	uint32_t frame_max;
	uint32_t held; // received, not yet released
	uint16_t held_id[GEN_BURST];
	int rx_kick, tx_kick, call;
	bool kick_pending;
};

struct vhost_port {
	struct gen_vhost_options options;
	char path[VHOST_USER_SOCKET_MAX + 1];
	struct vhost_user user;
	int memfd, listener;
	uint8_t *memory;
	size_t memory_bytes;
	uint8_t *rings; // in memory; one queue's rx and tx ring after another
	uint16_t *free_ids; // of all rings
	struct queue queues[GEN_MAX_QUEUES];
};

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

// The frame starts on a cache line and the header ends the line before: sending touches only the
// frame's own lines, and an unchanged header stays where everybody has a copy of it.
static uint32_t buffer_stride(uint32_t frame_max)
{
	const uint32_t lines = (uint32_t)round_up(frame_max, GEN_CACHE_LINE) / GEN_CACHE_LINE + 1;

	// An odd number of lines spreads the buffers over all sets of the caches.
	return (lines | 1) * GEN_CACHE_LINE;
}

static void kick(struct gen_wire *wire, int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) == sizeof(one))
		wire->kicks++;
}

static inline uint32_t take_back_sent(struct gen_wire *wire, struct gen_vring *ring)
{
	const uint32_t fresh = gen_vring_used(ring);

	if (__builtin_expect(fresh == UINT32_MAX, 0)) {
		wire->ring_errors++;
		return 0;
	}
	if (!ring->in_order) {
		for (uint32_t i = 0; i < fresh; i++) {
			const uint32_t at = (uint16_t)(ring->used_index + i) & (ring->size - 1);
			const uint32_t id = ring->used->ring[at].id;

			if (id >= ring->size)
				wire->ring_errors++;
			ring->free[ring->free_count++] = (uint16_t)(id & (ring->size - 1));
		}
	}
	ring->used_index = (uint16_t)(ring->used_index + fresh);
	return fresh;
}

static inline uint32_t ring_room(const struct gen_vring *ring)
{
	return ring->size - (uint16_t)(ring->avail_index - ring->used_index);
}

static uint32_t vhost_tx_room(struct gen_wire *wire, uint32_t wanted)
{
	struct queue *queue = wire->state;
	struct gen_vring *ring = &queue->tx;

	if (ring_room(ring) < wanted) {
		take_back_sent(wire, ring);
		// The device may have gone to sleep between our last frame and its look at the flag.
		if (queue->kick_pending && gen_vring_wants_kick(ring)) {
			queue->kick_pending = false;
			kick(wire, queue->tx_kick);
		}
	}
	const uint32_t room = ring_room(ring);
	return room < wanted ? room : wanted;
}

static inline __attribute__((always_inline)) void put(struct queue *queue,
	const struct gen_tx *burst, uint32_t count, bool in_order, bool convoys)
{
	struct gen_vring *ring = &queue->tx;
	const uint32_t mask = ring->size - 1;
	const uint32_t header = queue->header_bytes;

	for (uint32_t i = 0; i < count && !convoys; i++) {
		const struct gen_frame frame = burst->frame[i];
		uint8_t *data = burst->base + frame.offset;

		__builtin_prefetch(data + gen_stamp_offset(frame.bytes), 1);
	}
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t slot = (ring->avail_index + i) & mask;
		const uint32_t id = in_order ? slot : ring->free[--ring->free_count];
		const struct gen_frame frame = burst->frame[i];
		uint8_t *data = burst->base + frame.offset;
		struct vring_desc *desc = &ring->desc[id];
		const uint64_t address = (uintptr_t)(data - header);

		// A descriptor that already says so is left alone: its line stays shared.
		if (desc->addr != address || desc->len != frame.bytes + header) {
			desc->addr = address;
			desc->len = frame.bytes + header;
		}
		if (!in_order)
			ring->avail->ring[slot] = (uint16_t)id;
		if (convoys)
			gen_convoy_stamp(burst, i, data);
		else
			gen_stamp_write(data + gen_stamp_offset(frame.bytes), burst->magic,
				burst->seq[i], burst->ticks[i], frame.sum);
	}
}

static uint32_t vhost_tx(struct gen_wire *wire, const struct gen_tx *burst)
{
	struct queue *queue = wire->state;
	struct gen_vring *ring = &queue->tx;
	const uint32_t count = vhost_tx_room(wire, burst->count);

	if (count == 0)
		return 0;
	if (burst->packets != NULL && ring->in_order)
		put(queue, burst, count, true, true);
	else if (burst->packets != NULL)
		put(queue, burst, count, false, true);
	else if (ring->in_order)
		put(queue, burst, count, true, false);
	else
		put(queue, burst, count, false, false);
	gen_vring_publish(ring, (uint16_t)(ring->avail_index + count));
	queue->kick_pending = true;
	if (__builtin_expect(gen_vring_wants_kick(ring), 0))
		kick(wire, queue->tx_kick);
	return count;
}

static bool vhost_tx_idle(struct gen_wire *wire)
{
	struct queue *queue = wire->state;

	take_back_sent(wire, &queue->tx);
	if (queue->kick_pending && gen_vring_wants_kick(&queue->tx)) {
		queue->kick_pending = false;
		kick(wire, queue->tx_kick);
	}
	return ring_room(&queue->tx) == queue->tx.size;
}

static inline __attribute__((always_inline)) uint32_t get(struct gen_wire *wire,
	struct queue *queue, uint32_t count, struct gen_rx *out, bool in_order)
{
	struct gen_vring *ring = &queue->rx;
	const uint32_t mask = ring->size - 1;
	uint32_t good = 0;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t slot = (uint16_t)(ring->used_index + i) & mask;
		const uint64_t raw = gen_vring_element(ring, slot);
		const uint32_t id = (uint32_t)raw;
		const uint32_t bytes = (uint32_t)(raw >> 32) - queue->header_bytes;

		queue->held_id[i] = (uint16_t)(id & mask);
		if (__builtin_expect(bytes - 1 >= queue->frame_max || id >= ring->size ||
					     (in_order && id != slot),
			    0)) {
			wire->ring_errors++;
			continue;
		}
		const uint8_t *data = queue->buffers + (size_t)id * queue->stride;
		__builtin_prefetch(data + bytes - 1);
		out[good++] = (struct gen_rx){data, bytes, true};
	}
	return good;
}

static uint32_t vhost_rx(struct gen_wire *wire, struct gen_rx *frames)
{
	struct queue *queue = wire->state;
	struct gen_vring *ring = &queue->rx;
	uint32_t count = gen_vring_used(ring);

	if (count == 0)
		return 0;
	if (__builtin_expect(count == UINT32_MAX, 0)) {
		wire->ring_errors++;
		return 0;
	}
	// Between two polls it only fills, so whether the device found no room shows here; a quarter
	// is what it may have under way.
	if (__builtin_expect(count > ring->size - ring->size / 4, 0))
		wire->rx_full++;
	if (count > wire->rx_most)
		count = wire->rx_most;
	const uint32_t good = ring->in_order ? get(wire, queue, count, frames, true)
					     : get(wire, queue, count, frames, false);
	ring->used_index = (uint16_t)(ring->used_index + count);
	queue->held = count;
	if (__builtin_expect(good == 0, 0))
		wire->ops->rx_release(wire);
	return good;
}

static void vhost_rx_release(struct gen_wire *wire)
{
	struct queue *queue = wire->state;
	struct gen_vring *ring = &queue->rx;

	if (!ring->in_order)
		for (uint32_t i = 0; i < queue->held; i++)
			ring->avail->ring[(uint16_t)(ring->avail_index + i) & (ring->size - 1)] =
				queue->held_id[i];
	gen_vring_publish(ring, (uint16_t)(ring->avail_index + queue->held));
	queue->held = 0;
	if (__builtin_expect(gen_vring_wants_kick(ring), 0))
		kick(wire, queue->rx_kick);
}

static const struct gen_wire_ops vhost_ops = {
	.tx = vhost_tx,
	.tx_room = vhost_tx_room,
	.rx = vhost_rx,
	.rx_release = vhost_rx_release,
	.tx_idle = vhost_tx_idle,
};

static void init_rings(struct gen_port *port, uint64_t features)
{
	struct vhost_port *vhost = port->state;
	const uint32_t size = vhost->options.ring;
	const bool in_order = features >> VIRTIO_F_IN_ORDER & 1;

	for (uint32_t i = 0; i < port->wire_count; i++) {
		struct queue *queue = &vhost->queues[i];
		uint8_t *rings = vhost->rings + 2 * i * gen_vring_bytes(size);
		uint16_t *ids = vhost->free_ids + 2 * i * size;

		gen_vring_init(&queue->rx, rings, size, in_order, ids);
		gen_vring_init(
			&queue->tx, rings + gen_vring_bytes(size), size, in_order, ids + size);
		queue->header_bytes = features >> VIRTIO_F_VERSION_1 & 1
					      ? sizeof(struct virtio_net_hdr_v1)
					      : sizeof(struct virtio_net_hdr);
		queue->held = 0;
		queue->kick_pending = false;
		for (uint32_t j = 0; j < size; j++)
			queue->rx.desc[j] = (struct vring_desc){
				.addr = (uintptr_t)(queue->buffers + (size_t)j * queue->stride -
						    queue->header_bytes),
				.len = queue->frame_max + queue->header_bytes,
				.flags = VRING_DESC_F_WRITE,
			};
		port->wires[i] = (struct gen_wire){
			.ops = &vhost_ops, .state = queue, .rx_most = GEN_BURST, .sees_full = true};
		gen_vring_publish(&queue->rx, (uint16_t)size);
	}
}

// A connected socket, or -errno if there was no peer until the deadline.
static int find_peer(struct vhost_port *vhost, uint64_t deadline_ns)
{
	for (;;) {
		int fd;

		if (vhost->options.server) {
			struct pollfd waiting = {.fd = vhost->listener, .events = POLLIN};
			poll(&waiting, 1, RETRY_MS);
			fd = accept4(vhost->listener, NULL, NULL, SOCK_CLOEXEC);
			if (fd < 0)
				fd = -errno;
		} else {
			fd = vhost_user_connect(vhost->path);
			if (fd < 0 && gen_now_ns() < deadline_ns)
				poll(NULL, 0, RETRY_MS);
		}
		if (fd >= 0 || gen_now_ns() >= deadline_ns)
			return fd;
	}
}

static struct vhost_user_vring described(const struct vhost_port *vhost, uint32_t index)
{
	const struct queue *queue = &vhost->queues[index / 2];
	const struct gen_vring *ring = index % 2 == 0 ? &queue->rx : &queue->tx;

	return (struct vhost_user_vring){
		.index = index,
		.size = ring->size,
		.desc = ring->desc,
		.avail = ring->avail,
		.used = ring->used,
		.kick = index % 2 == 0 ? queue->rx_kick : queue->tx_kick,
		.call = queue->call,
	};
}

static int handshake(struct gen_port *port, int socket)
{
	struct vhost_port *vhost = port->state;
	struct vhost_user *user = &vhost->user;
	uint64_t wanted = 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_IN_ORDER;
	int error;

	if (port->wire_count > 1)
		wanted |= 1ull << VIRTIO_NET_F_MQ;
	error = vhost_user_negotiate(user, socket, wanted);
	if (error < 0)
		return error;
	if (user->queue_pairs_max < port->wire_count)
		return -ERANGE;
	init_rings(port, user->features);
	error = vhost_user_share(user, vhost->memory, vhost->memory_bytes, vhost->memfd);
	const uint32_t vrings = 2 * port->wire_count;
	for (uint32_t i = 0; error == 0 && i < vrings; i++) {
		const struct vhost_user_vring vring = described(vhost, i);
		error = vhost_user_vring_setup(user, &vring);
	}
	for (uint32_t i = 0; error == 0 && i < vrings; i++)
		error = vhost_user_vring_enable(user, i, true);
	for (uint32_t i = 0; error == 0 && i < vrings; i++) {
		const struct vhost_user_vring vring = described(vhost, i);
		error = vhost_user_vring_start(&vring);
	}
	if (error == 0)
		error = vhost_user_ready(user);
	return error;
}

static void disconnect(struct gen_port *port)
{
	struct vhost_port *vhost = port->state;

	if (vhost->user.socket < 0)
		return;
	if (!atomic_load_explicit(&port->gone, memory_order_acquire))
		for (uint32_t i = 0; i < 2 * port->wire_count; i++)
			if (vhost_user_vring_stop(&vhost->user, i) < 0)
				break;
	close(vhost->user.socket);
	vhost->user.socket = -1;
	port->fd = -1;
}

static int vhost_attach(struct gen_port *port, uint64_t deadline_ns, char *error, size_t error_size)
{
	struct vhost_port *vhost = port->state;
	int result;

	disconnect(port);
	do {
		const int socket = find_peer(vhost, deadline_ns);
		if (socket < 0) {
			snprintf(error, error_size, "%s: %s: %s", port->name,
				vhost->options.server ? "no device connected" : "cannot connect",
				socket == -EAGAIN ? "nobody there" : strerror(-socket));
			return socket;
		}
		result = handshake(port, socket);
		if (result == 0)
			result = gen_monitor_watch(port, socket);
		if (result == 0) {
			atomic_store_explicit(&port->gone, false, memory_order_release);
			port->fd = socket;
			return 0;
		}
		close(socket);
		vhost->user.socket = -1;
		// A peer that is just going down or coming up: try again.
	} while (result == -EPIPE && gen_now_ns() < deadline_ns);
	if (result == -ERANGE)
		snprintf(error, error_size, "%s: the device has %u queue pairs, not %u", port->name,
			vhost->user.queue_pairs_max, port->wire_count);
	else
		snprintf(error, error_size, "%s: vhost-user handshake failed: %s", port->name,
			strerror(-result));
	return result;
}

static void vhost_close(struct gen_port *port)
{
	struct vhost_port *vhost = port->state;

	if (vhost == NULL)
		return;
	disconnect(port);
	for (uint32_t i = 0; i < port->wire_count; i++) {
		close(vhost->queues[i].rx_kick);
		close(vhost->queues[i].tx_kick);
		close(vhost->queues[i].call);
	}
	if (vhost->memory != NULL)
		munmap(vhost->memory, vhost->memory_bytes);
	if (vhost->memfd >= 0)
		close(vhost->memfd);
	if (vhost->listener >= 0) {
		close(vhost->listener);
		unlink(vhost->path);
	}
	free(vhost->free_ids);
	free(vhost);
	port->state = NULL;
}

// Sparse: pages that are never touched cost nothing.
static int map_memory(struct gen_port *port)
{
	struct vhost_port *vhost = port->state;
	const struct gen_vhost_options *options = &vhost->options;
	const uint32_t stride = buffer_stride(options->buffer);
	const size_t rings = round_up(2 * options->queues * gen_vring_bytes(options->ring), 4096);
	const size_t buffers =
		round_up((size_t)options->queues * options->ring * stride + GEN_CACHE_LINE, 4096);

	vhost->memory_bytes = round_up(rings + buffers + options->memory, 2 << 20);
	vhost->memfd = memfd_create("convoy-gen", MFD_CLOEXEC);
	if (vhost->memfd < 0 || ftruncate(vhost->memfd, (off_t)vhost->memory_bytes) < 0)
		return -errno;
	void *memory = mmap(NULL, vhost->memory_bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, vhost->memfd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	vhost->memory = memory;
	vhost->rings = vhost->memory;
	for (uint32_t i = 0; i < options->queues; i++) {
		vhost->queues[i].stride = stride;
		vhost->queues[i].frame_max = options->buffer;
		vhost->queues[i].buffers =
			vhost->memory + rings + GEN_CACHE_LINE + (size_t)i * options->ring * stride;
	}
	port->memory = vhost->memory + rings + buffers;
	port->memory_bytes = vhost->memory_bytes - rings - buffers;
	return 0;
}

static int open_port(struct gen_port *port, const struct gen_vhost_options *options)
{
	struct vhost_port *vhost = calloc(1, sizeof(*vhost));
	int error;

	if (vhost == NULL)
		return -ENOMEM;
	vhost->options = *options;
	vhost->memfd = vhost->listener = vhost->user.socket = -1;
	port->state = vhost;
	port->kind = "vhost-user";
	port->wire_count = options->queues;
	port->frame_bytes_max = options->buffer;
	port->queue_frames = options->ring;
	port->fd = -1;
	port->attach = vhost_attach;
	port->close = vhost_close;
	for (uint32_t i = 0; i < options->queues; i++) {
		struct queue *queue = &vhost->queues[i];

		queue->rx_kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		queue->tx_kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		queue->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	vhost->free_ids = calloc((size_t)2 * options->queues * options->ring, sizeof(uint16_t));
	error = vhost->free_ids == NULL ? -ENOMEM : map_memory(port);
	if (error < 0)
		vhost_close(port);
	return error;
}

int gen_vhost_open(struct gen_port *port, const struct gen_vhost_options *options)
{
	int error;

	if (strlen(options->path) > VHOST_USER_SOCKET_MAX)
		return -ENAMETOOLONG;
	error = open_port(port, options);
	if (error < 0)
		return error;
	struct vhost_port *vhost = port->state;
	strcpy(vhost->path, options->path);
	atomic_store(&port->gone, true); // until the first attach
	if (options->server) {
		vhost->listener = vhost_user_listen(options->path);
		if (vhost->listener < 0) {
			error = vhost->listener;
			vhost_close(port);
			return error;
		}
	}
	return 0;
}

int gen_vhost_open_inside(struct gen_port *port, const struct gen_vhost_options *options)
{
	int error = open_port(port, options);

	if (error < 0)
		return error;
	init_rings(port, 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_IN_ORDER);
	for (uint32_t i = 0; i < port->wire_count; i++) {
		struct queue *queue = port->wires[i].state;

		queue->rx.used->flags = queue->tx.used->flags = VRING_USED_F_NO_NOTIFY;
	}
	return 0;
}

void gen_vhost_rings(
	struct gen_port *port, uint32_t queue, struct gen_vring **rx, struct gen_vring **tx)
{
	struct queue *pair = port->wires[queue].state;

	*rx = &pair->rx;
	*tx = &pair->tx;
}
