// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Transmit: what happens to the packets that have come to the end of their path. Each goes
// by the port that its view names: as it is, or, where that port leads to a next hop, in a convoy
// with others that go there (docs/convoys.md).
//
// What one poll iteration received is aggregated, and cv_tx_flush() ends the iteration. Nothing is
// held back, but for frames to next hops that have a wait: these may stay for that long, so that
// packets of later iterations share them.
#ifndef CV_TX_H
#define CV_TX_H

#include "chain/tx_state.h"

// Sends a burst of at least one packet, or keeps it until the poll iteration ends.
void cv_tx_burst(struct cv_tx *tx, struct cv_burst *burst);

#define CV_TX_ALL 0 // in place of a time: no frame may wait

// The end of a poll iteration that began at a TSC: sends everything but frames that may wait, and
// expects the next iteration to take as long. Next hops are looked up afresh after it, unless a frame
// waits. Returns whether frames to next hops were sent.
bool cv_tx_flush(struct cv_tx *tx, uint64_t begun);

// Does a frame wait for more packets?
static CV_INLINE bool cv_tx_waits(const struct cv_tx *tx)
{
	return tx->building_count > 0;
}

// Frees the buffers of a burst that goes nowhere, and counts its packets.
void cv_tx_drop(struct cv_burst *burst, struct cv_port_counters *counters, enum cv_drop_reason why);

#endif
