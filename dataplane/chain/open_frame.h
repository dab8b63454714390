// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Joining: the frame that packets to one next hop are added to, and which is closed when it is
// full, when something must not be overtaken, and at the end of the poll iteration.
//
// Packets to be added are whole, as cv_view_packet() says, and not too long for their port.
#ifndef CV_OPEN_FRAME_H
#define CV_OPEN_FRAME_H

#include "chain/depart_state.h"

// Adds a packet whose buffer stays the caller's.
void cv_frame_add_copy(struct cv_depart *depart, uint16_t hop, const struct cv_view *view);

// Adds a packet whose buffer has nothing else, and is given away.
void cv_frame_add_buffer(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer,
	const struct cv_view *view);

// Adds n packets that lie one behind the other in a buffer, with their lengths before them: copied,
// or the buffer becomes the frame; it is given away. False, with nothing done, if that cannot be:
// they do not fit into one frame. behind: as many views behind them are the packets of another such
// buffer, which will be added next; where it does not fit into the same frame, this one leaves at
// once. 0: it is not known what comes next.
bool cv_frame_add_convoy(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n, unsigned behind);

// Sends the open frame of a next hop on, if there is one: with its outer header, or a packet alone
// as it is, unless it looks like a convoy.
void cv_frame_close(struct cv_depart *depart, uint16_t hop);

// The same of every next hop by a port: what waits for company must not be overtaken by packets
// that leave by the same port.
void cv_frame_close_port(struct cv_depart *depart, uint8_t out);

// A packet that lies in a buffer of others, in one of its own. NULL: there was none, it is counted.
struct rte_mbuf *cv_frame_copy_packet(
	struct cv_depart *depart, uint8_t out, const struct cv_view *view);

#endif
