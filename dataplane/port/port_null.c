// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind null: swallows what it is sent, and receives endless zeroed frames of frame_bytes (14 to
// 9216, without FCS), or nothing.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/handover.h"
#include "port/kind.h"

#define FRAME_MAX 9216

struct config {
	uint16_t frame_bytes; // 0: receives nothing
};

struct null_port {
	struct cv_port port;
	struct rte_mempool *pool;
	uint16_t frame_bytes; // 0: receives nothing
};

static const struct cv_param params[] = {
	{"frame_bytes", CV_INTEGER, CV_AT(struct config, frame_bytes), .low = 14,
		.high = FRAME_MAX},
	{0},
};

static uint16_t rx_nothing(
	struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	return 0;
}

static uint16_t rx_zeroes(
	struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	const struct null_port *null = (const struct null_port *)port;

	if (n == 0 || rte_pktmbuf_alloc_bulk(null->pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		memset(rte_pktmbuf_append(packets[i], null->frame_bytes), 0, null->frame_bytes);
	return n;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static void close_port(struct cv_port *port)
{
	free(port);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct null_port *null = (struct null_port *)port;
	const uint16_t room = rte_pktmbuf_data_room_size(args->pool) - RTE_PKTMBUF_HEADROOM;
	const unsigned bytes = ((const struct config *)args->config->own)->frame_bytes;

	if (bytes > room) {
		cv_error_set(error,
			"frame_bytes: %u: does not fit into the node's buffers of %u bytes; give "
			"the port an mtu of %u",
			bytes, room, bytes);
		return -EINVAL;
	}
	null->pool = args->pool;
	null->frame_bytes = (uint16_t)bytes;
	port->rx = bytes > 0 ? rx_zeroes : rx_nothing;
	port->tx = tx;
	port->close = close_port;
	port->handover = &cv_port_handover_nothing;
	port->rx_queues = 64; // there is nothing to share
	return 0;
}

const struct cv_port_kind cv_port_null = {
	.name = "null",
	.params = params,
	.config_size = sizeof(struct config),
	.mtu = CV_PORT_ANY_MTU,
	.any_length = true,
	.queues_max = 64,
	.open = open_port,
	.size = sizeof(struct null_port),
};
