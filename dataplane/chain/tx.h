// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Transmit: what happens to the packets that have come to the end of their path. Each goes
// by the port that its view names: as it is, or, where that port leads to a next hop, in a convoy
// with others that go there (docs/convoys.md).
//
// Nothing is held back: what one poll iteration received is aggregated, and cv_tx_flush() ends
// the iteration.
#ifndef CV_TX_H
#define CV_TX_H

#include "chain/tx_state.h"

// Sends a burst of at least one packet, or keeps it until the poll iteration ends.
void cv_tx_burst(struct cv_tx *tx, struct cv_burst *burst);

// Sends everything that is left. The end of a poll iteration: next hops are looked up afresh after
// it.
void cv_tx_flush(struct cv_tx *tx);

// Frees the buffers of a burst that goes nowhere, and counts its packets.
void cv_tx_drop(struct cv_burst *burst, struct cv_port_counters *counters, enum cv_drop_reason why);

#endif
