// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A receive queue: takes frames from the driver and gives the program the packets in them.
//
// Several frames are taken from the driver at once, so that one can be fetched into the cache while
// another is disaggregated. A convoy is given whole where there is room for it, since only whole
// ones can leave as they came. What is not a convoy is passed on as it is.
#ifndef CV_ETHDEV_RECEIVE_H
#define CV_ETHDEV_RECEIVE_H

#include <stdint.h>

#include <rte_ethdev.h>

#include "preload/ethdev/counts.h"
#include "preload/ethdev/mbuf_set.h"
#include "preload/ethdev/return_next_hop.h"
#include "preload/ethdev/headroom_probe.h"

#define CV_STASH 32

struct cv_rx_queue {
	void *driver; // its queue, and how it receives
	eth_rx_burst_t receive;
	const struct cv_ethdev_config *config;
	struct cv_mbuf_set_pool *sets; // NULL: copy
	struct cv_return_name from; // of the last convoy; its port and queue stay as they are
	uint8_t mac[6]; // of the port
	_Atomic bool *any_convoys; // some were received, by any port
	_Atomic bool *speaks; // of the port: convoys came by it that were sent to it
	struct cv_return_next_hops returns;
	rte_be16_t port; // UDP port of convoys
	struct cv_headroom_queue headroom;
	bool convoys; // the last frames were some
	bool engaged; // they are, or something waits
	bool walked; // the first frame of the stash: convoy and views are its
	uint16_t stash_at, stash_count;
	uint16_t ready_at, ready_count;
	struct cv_convoy convoy;
	struct cv_rx_counts counts;
	struct rte_mbuf *stash[CV_STASH]; // from the driver, not yet looked at
	struct rte_mbuf *ready[CV_CONVOY_PACKETS_MAX]; // disaggregated, not yet taken
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
};

// As the driver's own, which it is put in place of.
uint16_t cv_receive(void *queue, struct rte_mbuf **mbufs, uint16_t n);

// Frees what the queue holds. Nobody may receive from it meanwhile.
void cv_receive_clear(struct cv_rx_queue *queue);

// Packets or frames that wait in the queue.
uint32_t cv_receive_held(const struct cv_rx_queue *queue);

#endif
