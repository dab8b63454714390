// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hosts at both ends of a path with answers. Who receives a packet knows where an answer must
// go: to where the packet says that it comes from, which is what a translator made of it.
//
// UDP: one packet there, one back. TCP: each packet opens a connection that both ends close again:
// SYN, SYN|ACK, ACK, FIN|ACK, FIN|ACK, ACK. Segments carry data, in which their stamp is; it is the
// same in all of a connection, and so tells how long that took.
#ifndef GEN_TRIAL_ANSWER_H
#define GEN_TRIAL_ANSWER_H

#include "gen/traffic/stamp.h"
#include "gen/trial/loop.h"

struct gen_answers;

// Memory for answers at all ports, behind the trial's frames. NULL with error set: too little.
// free() afterwards.
struct gen_answers *gen_answers_create(
	const struct gen_tester *tester, struct gen_trial *trial, struct cv_error *error);

// A packet of a stream with answers, with a good stamp, that came to one of its two ports by
// `wire`. Returns whether it ends what its stamp began. `frame` may be released afterwards.
bool gen_answer(struct gen_loop *loop, const struct gen_stream *stream, const struct gen_rx *frame,
	uint32_t port, struct gen_wire *wire, const struct gen_stamp *stamp);

// Answers to a burst leave together.
void gen_answers_send(struct gen_answers *answers);

#endif
