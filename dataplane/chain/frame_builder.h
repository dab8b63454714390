// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Aggregation: the frame being built for one next hop. Packets are added to it, and it is closed
// when it is full, when something must not be overtaken, and at the end of the poll iteration.
//
// Packets to be added are whole, as cv_view_packet() says, and not too long for their port.
#ifndef CV_FRAME_BUILDER_H
#define CV_FRAME_BUILDER_H

#include "chain/tx_state.h"

// Adds a packet whose buffer stays the caller's.
void cv_builder_add_copy(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view);

// Adds a packet whose buffer has nothing else, and is given away.
void cv_builder_add_buffer(
	struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, const struct cv_view *view);

// Adds n packets that lie one behind the other in a buffer, with their lengths before them: copied,
// or the buffer becomes the frame; it is given away. False, with nothing done, if that cannot be:
// they do not fit into one frame. behind: as many views behind them are the packets of another such
// buffer, which will be added next; where it does not fit into the same frame, this one leaves at
// once. 0: it is not known what comes next.
bool cv_builder_add_convoy(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n, unsigned behind);

// Sends the frame being built for a next hop, if there is one: with its outer header, or a single
// packet as it is, unless it looks like a convoy or the next hop encapsulates.
void cv_builder_close(struct cv_tx *tx, uint16_t next_hop);

// The same of every next hop by a port: packets that wait to be aggregated must not be overtaken by
// packets that leave by the same port.
void cv_builder_close_port(struct cv_tx *tx, uint8_t out);

// A packet that lies in a buffer of others, in one of its own. NULL: there was none, it is counted.
struct rte_mbuf *cv_builder_copy_packet(struct cv_tx *tx, uint8_t out, const struct cv_view *view);

#endif
