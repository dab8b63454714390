// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames on their way out of a port: sent, asked again where the port is full, dropped where it
// stays so, and counted. One of them, or a few, wait in the buffer for the end of the poll
// iteration.
#ifndef CV_TX_BUFFER_H
#define CV_TX_BUFFER_H

#include "chain/tx_state.h"

// Puts a frame of count packets behind those that wait. The buffer owns it from now on.
void cv_tx_buffer_put(struct cv_tx *tx, uint8_t out, struct rte_mbuf *frame, uint8_t count);

// Sends all that wait to leave by a port.
void cv_tx_buffer_flush(struct cv_tx *tx, uint8_t out);

// Sends a burst by a port that takes all of it as it is, behind what waits. bytes: of its packets.
// False, with nothing done: packets share buffers, which the port cannot send.
bool cv_tx_buffer_send_burst(struct cv_tx *tx, uint8_t out, struct cv_burst *burst, uint32_t bytes);

#endif
