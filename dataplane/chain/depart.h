// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Out of the node: what happens to the packets that have come to the end of their path. Each goes
// by the port that its view names: as it is, or, where that port leads to a next hop, in a convoy
// with others that go there (docs/convoys.md).
//
// Nothing is held back: what came in one turn travels together, and cv_depart_flush() ends a turn.
#ifndef CV_DEPART_H
#define CV_DEPART_H

#include <rte_mbuf.h>

#include "counters.h"
#include "hop.h"
#include "next_hops.h"
#include "port.h"

// Frames that wait for the end of the turn, by the port they leave by.
struct cv_outbox {
	uint16_t n;
	uint8_t counts[CV_BURST_MAX]; // packets of each
	struct rte_mbuf *frames[CV_BURST_MAX];
};

// The convoy that packets to one next hop are added to. It begins as the buffer of what comes
// first: a packet's own, or a received convoy's, whose packets then stay where they are.
struct cv_open_frame {
	struct rte_mbuf *buffer; // NULL: there is none
	bool listed; // among the worker's open ones, though it may have been closed since
	uint8_t count; // packets
	uint8_t *
		begin; // the first packet's length, in network order; not yet written before count 2
	uint8_t *end; // behind the last packet
	uint32_t room; // bytes that may be added
	struct cv_view first; // packet
};

// One worker's. Zeroed, with the first part set, it is ready.
struct cv_depart {
	struct cv_port **ports; // of the node, by index
	unsigned ports_count;
	uint16_t lane; // on every port
	struct rte_mempool *pool; // for packets that need another buffer than they came in
	struct cv_port_counters *counters; // by port index
	struct cv_next_hops *next_hops; // the node's; NULL: no port leads to any
	struct cv_frame_counters *hop_counters; // by the next hop's index

	const struct cv_next_hop_table *table; // since the turn began
	struct cv_outbox boxes[CV_PORTS_MAX];
	struct cv_open_frame frames[CV_NEXT_HOPS_MAX]; // by the next hop's index
	uint16_t open[CV_NEXT_HOPS_MAX]; // next hops that have had an open frame in this turn
	unsigned open_count;
};

// Sends a burst of at least one packet, or keeps what it has until the turn ends.
void cv_depart(struct cv_depart *depart, struct cv_burst *burst);

// Sends everything that is left. The end of a turn: next hops are looked up afresh after it.
void cv_depart_flush(struct cv_depart *depart);

// Frees the buffers of a burst that goes nowhere, and counts its packets.
void cv_depart_drop(
	struct cv_burst *burst, struct cv_port_counters *counters, enum cv_hop_drop why);

#endif
