// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What one worker knows of the packets that leave the node through it: tx_buffer.h, frame_builder.h
// and repack.h work on it, tx.h is what others use.
#ifndef CV_TX_STATE_H
#define CV_TX_STATE_H

#include <rte_mbuf.h>

#include "chain/counters.h"
#include "chain/path.h"
#include "chain/next_hop_rcu.h"
#include "convoy/fragment.h"
#include "convoy/frame.h"
#include "port/port.h"

// Frames that wait for the end of the poll iteration, by the port they leave by.
struct cv_tx_buffer {
	uint16_t n;
	uint16_t waited; // attempts in vain that the port has not made up for by taking packets
	uint8_t counts[CV_BURST_MAX]; // packets of each
	struct rte_mbuf *frames[CV_BURST_MAX];
};

// The convoy that packets to one next hop are added to. It begins as the buffer of what comes
// first: a packet's own, or a received convoy's, whose packets then stay where they are.
struct cv_frame_builder {
	struct rte_mbuf *buffer; // NULL: there is none
	bool listed; // in the worker's list, though it may have been closed since
	uint64_t
		due; // TSC until which it may wait for more packets; 0: began in this poll iteration
	struct cv_frame frame; // in the buffer
	// Where the next hop takes packets in two frames:
	bool rest; // the first packet is the rest of one
	struct cv_fragment_stream stream; // id 0: not drawn yet
};

// One worker's. Zeroed, with the first part set, it is ready.
struct cv_tx {
	struct cv_port **ports; // of the node, by index
	unsigned ports_count;
	uint16_t tx_queue; // on every port
	struct rte_mempool *pool; // for packets that need another buffer than they came in
	struct cv_port_counters *counters; // by port index
	struct cv_next_hop_rcu *next_hop_rcu; // the node's; NULL: no port leads to any
	struct cv_frame_counters *next_hop_counters; // by the next hop's index
	rte_be16_t convoy_ports[CV_PORTS_MAX]; // UDP, by port index; 0: it does not carry convoys

	// Since the poll iteration began, or for as long as a frame waits.
	const struct cv_next_hop_table *table;
	uint64_t changes; // of the tables, before this one
	const struct cv_next_hop *next_hops; // its next hops, by index
	struct cv_tx_buffer pending[CV_PORTS_MAX];
	struct cv_frame_builder builders[CV_NEXT_HOPS_MAX]; // by the next hop's index
	// Next hops for which a frame was being built in this poll iteration, or waits.
	uint16_t building[CV_NEXT_HOPS_MAX];
	unsigned building_count;
};

#endif
