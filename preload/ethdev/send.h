// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A transmit queue: takes packets from the program and gives the driver convoys.
//
// A group of views that comes back as it went out is sent by pointer: its convoy gets the header
// of its next hop, and its packets are not touched. All else is copied into new convoys, as many
// neighbours as go the same way and fit; what is alone, too long, or wants something of the
// hardware is sent as it is. Nothing is held back: what the driver does not take stays the
// program's, which is told so, and a driver never sees a view.
#ifndef CV_ETHDEV_SEND_H
#define CV_ETHDEV_SEND_H

#include <stdint.h>

#include <rte_ethdev.h>

#include "answer.h"
#include "counts.h"
#include "group.h"
#include "room.h"

struct cv_tx_queue {
	void *driver; // its queue, and how it sends
	eth_tx_burst_t send;
	struct cv_answers *answers;
	// For packets that were in no convoy: of this port, or of any; NULL in it: none yet.
	const struct cv_answer *_Atomic *port_answer;
	const struct cv_answer *_Atomic *any_answer;
	struct cv_room *room; // NULL: nobody asks
	struct rte_mempool *buffers; // for new convoys
	struct cv_tx_counts counts;
};

// As the driver's own, which it is put in place of.
uint16_t cv_send(void *queue, struct rte_mbuf **mbufs, uint16_t n);

#endif
