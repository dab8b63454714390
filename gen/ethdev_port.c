// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "ethdev_port.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "convoys.h"
#include "eal.h"
#include "ethdev.h"
#include "stamp.h"

#define MBUFS 16384
#define MBUF_CACHE 256
#define BUFFER 2048
#define MTU 1500
#define FRAME_MAX 1518 // with one VLAN tag, without FCS
#define FRAMES_BYTES (256ul << 20)
#define LINK_POLL_MS 20

struct ethdev_port {
	struct cv_ethdev dev;
	uint8_t *frames;
	uint32_t pending_count; // frames that the device had no room for yet
	uint32_t received_count;
	uint32_t spare_count; // buffers taken for what comes next
	struct rte_mbuf *spare[GEN_BURST];
	struct rte_mbuf *pending[GEN_BURST];
	struct rte_mbuf *received[GEN_BURST];
};

static struct rte_mempool *buffers; // of all ports

// Hands over what waits; true if nothing does any more.
static bool flush(struct ethdev_port *ethdev)
{
	if (ethdev->pending_count == 0)
		return true;
	const uint16_t sent = rte_eth_tx_burst(
		ethdev->dev.id, 0, ethdev->pending, (uint16_t)ethdev->pending_count);
	ethdev->pending_count -= sent;
	memmove(ethdev->pending, ethdev->pending + sent,
		ethdev->pending_count * sizeof(ethdev->pending[0]));
	return ethdev->pending_count == 0;
}

static uint32_t ethdev_tx_room(struct gen_wire *wire, uint32_t wanted)
{
	struct ethdev_port *ethdev = wire->state;

	if (!flush(ethdev))
		return 0;
	// Buffers are there before they are promised: the device may hold on to many.
	if (ethdev->spare_count == 0 &&
		rte_pktmbuf_alloc_bulk(buffers, ethdev->spare, GEN_BURST) == 0)
		ethdev->spare_count = GEN_BURST;
	return wanted < ethdev->spare_count ? wanted : ethdev->spare_count;
}

static uint32_t ethdev_tx(struct gen_wire *wire, const struct gen_tx *burst)
{
	struct ethdev_port *ethdev = wire->state;

	for (uint32_t i = 0; i < burst->count; i++) {
		const struct gen_frame frame = burst->frame[i];
		struct rte_mbuf *mbuf = ethdev->spare[--ethdev->spare_count];
		uint8_t *data = rte_pktmbuf_mtod(mbuf, uint8_t *);

		memcpy(data, burst->base + frame.offset, frame.bytes);
		if (burst->packets != NULL)
			gen_convoy_stamp(burst, i, data);
		else
			gen_stamp_write(data + gen_stamp_offset(frame.bytes), burst->magic,
				burst->seq[i], burst->ticks[i], frame.sum);
		mbuf->data_len = frame.bytes;
		mbuf->pkt_len = frame.bytes;
		ethdev->pending[i] = mbuf;
	}
	ethdev->pending_count = burst->count;
	flush(ethdev);
	return burst->count;
}

static bool ethdev_tx_idle(struct gen_wire *wire)
{
	return flush(wire->state);
}

static uint32_t ethdev_rx(struct gen_wire *wire, struct gen_rx *frames)
{
	struct ethdev_port *ethdev = wire->state;
	const uint16_t count =
		rte_eth_rx_burst(ethdev->dev.id, 0, ethdev->received, (uint16_t)wire->rx_most);

	ethdev->received_count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct rte_mbuf *mbuf = ethdev->received[i];
		const struct rte_mbuf *last = rte_pktmbuf_lastseg((struct rte_mbuf *)mbuf);

		frames[i].whole = mbuf->nb_segs == 1;
		const uint8_t *end = rte_pktmbuf_mtod(last, const uint8_t *) + last->data_len;

		// The stamp is at the end: of a frame in several pieces only the last one is read.
		frames[i].bytes = last->data_len > GEN_STAMP_BYTES ? mbuf->pkt_len : 0;
		frames[i].data = end - frames[i].bytes;
	}
	return count;
}

static void ethdev_rx_release(struct gen_wire *wire)
{
	struct ethdev_port *ethdev = wire->state;

	rte_pktmbuf_free_bulk(ethdev->received, ethdev->received_count);
	ethdev->received_count = 0;
}

static const struct gen_wire_ops ethdev_ops = {
	.tx = ethdev_tx,
	.tx_room = ethdev_tx_room,
	.rx = ethdev_rx,
	.rx_release = ethdev_rx_release,
	.tx_idle = ethdev_tx_idle,
};

static bool link_is_up(const struct gen_port *port)
{
	const struct ethdev_port *ethdev = port->state;
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(ethdev->dev.id, &link) != 0 ||
	       link.link_status == RTE_ETH_LINK_UP;
}

static void ethdev_check(struct gen_port *port)
{
	if (atomic_load_explicit(&port->gone, memory_order_relaxed) || link_is_up(port))
		return;
	strcpy(port->gone_reason, "the link is down");
	atomic_store_explicit(&port->gone, true, memory_order_release);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The drivers find their peers, and find them again, by themselves.
static int ethdev_attach(
	struct gen_port *port, uint64_t deadline_ns, char *error, size_t error_size)
{
	while (!link_is_up(port)) {
		if (now_ns() >= deadline_ns) {
			snprintf(error, error_size, "%s: the link is down: nobody at the other end",
				port->name);
			return -ETIMEDOUT;
		}
		poll(NULL, 0, LINK_POLL_MS);
	}
	atomic_store_explicit(&port->gone, false, memory_order_release);
	return 0;
}

static void ethdev_close(struct gen_port *port)
{
	struct ethdev_port *ethdev = port->state;

	rte_pktmbuf_free_bulk(ethdev->pending, ethdev->pending_count);
	rte_pktmbuf_free_bulk(ethdev->spare, ethdev->spare_count);
	cv_ethdev_detach(&ethdev->dev);
	munmap(ethdev->frames, FRAMES_BYTES);
	free(ethdev);
	port->state = NULL;
}

static int open_device(struct gen_port *port, struct ethdev_port *ethdev, const char *devargs,
	char *error, size_t error_size)
{
	struct cv_error reason = {0};

	if (buffers == NULL)
		buffers = rte_pktmbuf_pool_create("convoy-gen", MBUFS, MBUF_CACHE, 0,
			BUFFER + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (buffers == NULL) {
		snprintf(error, error_size, "--port %s: no memory for packet buffers", port->name);
		return -1;
	}
	ethdev->dev =
		(struct cv_ethdev){.rx_queues = 1, .tx_queues = 1, .mtu = MTU, .pool = buffers};
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs), "%s", devargs);
	if (cv_ethdev_attach(&ethdev->dev, &reason) < 0) {
		snprintf(error, error_size, "--port %s: %.400s", port->name, reason.text);
		return -1;
	}
	if (cv_ethdev_start(&ethdev->dev, &reason) < 0) {
		snprintf(error, error_size, "--port %s: %.400s", port->name, reason.text);
		cv_ethdev_detach(&ethdev->dev);
		return -1;
	}
	return 0;
}

int gen_ethdev_open(
	struct gen_port *port, const char *devargs, uint32_t core, char *error, size_t error_size)
{
	if (gen_eal_start(core, error, error_size) < 0)
		return -1;
	struct ethdev_port *ethdev = calloc(1, sizeof(*ethdev));
	void *frames = mmap(NULL, FRAMES_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ethdev == NULL || frames == MAP_FAILED) {
		snprintf(error, error_size, "--port %s: out of memory", port->name);
		free(ethdev);
		return -1;
	}
	ethdev->frames = frames;
	if (open_device(port, ethdev, devargs, error, error_size) < 0) {
		munmap(frames, FRAMES_BYTES);
		free(ethdev);
		return -1;
	}
	port->kind = "dev";
	port->wire_count = 1;
	port->wires[0] =
		(struct gen_wire){.ops = &ethdev_ops, .state = ethdev, .rx_most = GEN_BURST};
	port->memory = frames;
	port->memory_bytes = FRAMES_BYTES;
	port->frame_bytes_max = FRAME_MAX;
	port->queue_frames = 1024;
	port->fd = -1;
	port->attach = ethdev_attach;
	port->check = ethdev_check;
	port->close = ethdev_close;
	port->state = ethdev;
	atomic_store(&port->gone, true); // until the first attach
	return 0;
}

void gen_ethdev_finish(void)
{
	rte_mempool_free(buffers);
	buffers = NULL;
	gen_eal_stop();
}
