// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/vhost_attach.h"

#include <errno.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gen/machine/clock.h"
#include "gen/port/monitor.h"

#define RETRY_MS 20

void gen_vhost_begin(struct gen_port *port, uint64_t features)
{
	struct gen_vhost *vhost = port->state;
	const uint32_t size = vhost->options.ring;

	for (uint32_t i = 0; i < port->wire_count; i++)
		port->wires[i] = gen_vhost_queue_begin(&vhost->queues[i], size,
			vhost->rings + 2 * i * gen_vring_bytes(size),
			vhost->free_ids + 2 * i * size, features);
}

// A connected socket, or -errno if there was no peer until the deadline.
static int find_peer(struct gen_vhost *vhost, uint64_t deadline_ns)
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

static struct vhost_user_vring described(const struct gen_vhost *vhost, uint32_t index)
{
	const struct gen_vhost_queue *queue = &vhost->queues[index / 2];
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
	struct gen_vhost *vhost = port->state;
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
	gen_vhost_begin(port, user->features);
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

void gen_vhost_detach(struct gen_port *port)
{
	struct gen_vhost *vhost = port->state;

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

int gen_vhost_attach(struct gen_port *port, uint64_t deadline_ns, struct cv_error *error)
{
	struct gen_vhost *vhost = port->state;
	int result;

	gen_vhost_detach(port);
	do {
		const int socket = find_peer(vhost, deadline_ns);
		if (socket < 0) {
			cv_error_set(error, "%s: %s: %s", port->name,
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
		cv_error_set(error, "%s: the device has %u queue pairs, not %u", port->name,
			vhost->user.queue_pairs_max, port->wire_count);
	else
		cv_error_set(error, "%s: vhost-user handshake failed: %s", port->name,
			strerror(-result));
	return result;
}
