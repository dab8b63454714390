// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A burst is sent buffer by buffer: whole convoys stay as they are, others are disaggregated, and
// their packets aggregated again by next hop.
#ifndef CV_REPACK_H
#define CV_REPACK_H

#include "chain/tx_state.h"

// Bytes of the longest frame that fits through a port: two VLAN tags more than its MTU's.
static CV_INLINE unsigned cv_frame_max(const struct cv_port *port)
{
	return port->mtu + CV_ETHER_LEN + 2 * CV_VLAN_LEN;
}

// Sends a burst; next_hops are its packets', CV_NEXT_HOP_NONE for those that have none.
void cv_repack(struct cv_tx *tx, struct cv_burst *burst, const uint16_t *next_hops);

// The same of a burst all of whose packets go to one next hop, and fit through its port.
void cv_repack_to(struct cv_tx *tx, struct cv_burst *burst, uint16_t next_hop);

#endif
