// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets that whoever gets them would take for convoys, though they are a guest's own: they would
// be disaggregated behind the firewall that let them pass. They leave in a convoy, of one if need
// be, and what cannot is dropped.
#ifndef CV_LOOKALIKE_H
#define CV_LOOKALIKE_H

#include "chain/tx_state.h"
#include "convoy/may_be.h"

// The packet as it is sent, with the tunnel that functions were not shown.
static CV_INLINE struct cv_view cv_lookalike_whole(const struct cv_view *view)
{
	struct cv_view whole = *view;

	if (CV_UNLIKELY(view->before > 0))
		cv_view_set(&whole, cv_view_packet(view), (uint16_t)cv_view_packet_len(view));
	return whole;
}

// Would a next hop take the packet for a convoy?
static CV_INLINE bool cv_lookalike_to(
	const struct cv_tx *tx, const struct cv_view *view, uint16_t next_hop)
{
	const struct cv_view whole = cv_lookalike_whole(view);

	return cv_may_be_convoy(&whole, tx->next_hops[next_hop].outer.udp_port);
}

// The same of a packet that has no next hop: would anybody, behind a port that carries convoys?
static CV_INLINE bool cv_lookalike(const struct cv_tx *tx, const struct cv_view *view)
{
	const rte_be16_t of_port = tx->convoy_ports[view->out];
	struct cv_view whole;
	rte_be16_t port;

	if (CV_LIKELY(of_port == 0))
		return false;
	whole = cv_lookalike_whole(view);
	port = cv_convoy_port_of(&whole);
	return port != 0 &&
	       (port == of_port || (tx->table != NULL && cv_next_hop_takes(tx->table, port)));
}

#endif
