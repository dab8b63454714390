// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The loop of a trial: what its iterations send and receive.
#ifndef GEN_TRIAL_LOOP_H
#define GEN_TRIAL_LOOP_H

#include "gen/trial/trial.h"

struct gen_loop {
	struct gen_tester *tester;
	const struct gen_spec *spec;
	struct gen_trial *trial;
	struct gen_stream *streams;
	uint32_t stream_count;
	uint64_t start, duration, grace, catch_up, pause;
	bool paused; // before this iteration
	uint64_t rx_full; // of all wires, in the iteration before
	bool was_full; // a receive queue was, then
	uint32_t wire_count;
	struct gen_wire *wires[GEN_MAX_PORTS * GEN_MAX_QUEUES];
	uint8_t wire_port[GEN_MAX_PORTS * GEN_MAX_QUEUES];
	rte_be16_t convoy_port;
	struct gen_answers *answers; // NULL: nothing is answered
	bool checks; // translated addresses
};

// Sends up to a burst of what is due of a stream at `now`. Returns how many packets.
uint32_t gen_loop_send(struct gen_loop *loop, struct gen_stream *stream, uint64_t now);

// Receives a burst from each wire. Returns how many frames.
uint32_t gen_loop_receive(struct gen_loop *loop);

#endif
