// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/vhost_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gen/port/vhost_attach.h"

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

static void vhost_close(struct gen_port *port)
{
	struct gen_vhost *vhost = port->state;

	if (vhost == NULL)
		return;
	gen_vhost_detach(port);
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

// The device gets this file: sealed, so that it cannot make it shorter under us, which would end us
// by SIGBUS when we touch what is gone. Returns the descriptor or -errno.
static int make_file(size_t bytes)
{
	const int fd = memfd_create("convoy-gen", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

// Sparse: pages that are never touched cost nothing.
static int map_memory(struct gen_port *port)
{
	struct gen_vhost *vhost = port->state;
	const struct gen_vhost_options *options = &vhost->options;
	const uint32_t stride = buffer_stride(options->buffer);
	const size_t rings = round_up(2 * options->queues * gen_vring_bytes(options->ring), 4096);
	const size_t buffers =
		round_up((size_t)options->queues * options->ring * stride + GEN_CACHE_LINE, 4096);

	vhost->memory_bytes = round_up(rings + buffers + options->memory, 2 << 20);
	vhost->memfd = make_file(vhost->memory_bytes);
	if (vhost->memfd < 0)
		return vhost->memfd;
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
	struct gen_vhost *vhost = calloc(1, sizeof(*vhost));
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
	port->attach = gen_vhost_attach;
	port->close = vhost_close;
	for (uint32_t i = 0; i < options->queues; i++) {
		struct gen_vhost_queue *queue = &vhost->queues[i];

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
	struct gen_vhost *vhost = port->state;
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
	gen_vhost_begin(port, 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_F_IN_ORDER);
	for (uint32_t i = 0; i < port->wire_count; i++) {
		struct gen_vhost_queue *queue = port->wires[i].state;

		queue->rx.used->flags = queue->tx.used->flags = VRING_USED_F_NO_NOTIFY;
	}
	return 0;
}

void gen_vhost_rings(
	struct gen_port *port, uint32_t queue, struct gen_vring **rx, struct gen_vring **tx)
{
	struct gen_vhost_queue *pair = port->wires[queue].state;

	*rx = &pair->rx;
	*tx = &pair->tx;
}
