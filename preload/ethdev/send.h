// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A transmit queue: takes packets from the program and gives the driver convoys.
//
// A set of views that comes back as it went out is forwarded in place: its convoy gets the header
// of its next hop, and its packets are not touched. All else is copied into new convoys, as many
// neighbours as go the same way and fit; what has no such neighbour, is too long, or has an offload
// flag is sent as it is, unless it looks like a convoy: then it gets one of its own, or is dropped.
// Nothing is held back: what the driver does not take stays the program's, which is told so, and a
// driver never sees a view.
#ifndef CV_ETHDEV_SEND_H
#define CV_ETHDEV_SEND_H

#include <stdint.h>

#include <rte_ethdev.h>

#include "preload/ethdev/counts.h"
#include "preload/ethdev/mbuf_set.h"
#include "preload/ethdev/return_next_hop.h"
#include "preload/ethdev/headroom_probe.h"

struct cv_tx_queue {
	void *driver; // its queue, and how it sends
	eth_tx_burst_t send;
	uint16_t port;
	rte_be16_t udp_port; // of convoys
	const struct cv_outer *fixed; // everything goes there; NULL: back to where it came from
	// What the port's receive queues learned, by queue.
	const struct cv_return_next_hops *const *returns;
	uint16_t returns_count;
	const _Atomic bool *convoys; // some were received, by any port: there are views
	const _Atomic bool *speaks; // of the port: convoys came by it that were sent to it
	struct cv_return_name name; // of the return next hop that was used last,
	struct cv_outer outer; // and a copy of its header
	struct cv_headroom *headroom; // NULL: not probed
	struct rte_mempool *buffers; // for new convoys
	struct cv_tx_counts counts;
};

// As the driver's own, which it is put in place of.
uint16_t cv_send(void *queue, struct rte_mbuf **mbufs, uint16_t n);

#endif
