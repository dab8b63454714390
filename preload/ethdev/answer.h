// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where convoys are sent to: one configured next hop, or back to where convoys came from, with the
// outer addresses swapped. Each outer header that arrives is learned once. What was learned stays
// as it is for as long as the process lives, so that whoever has a pointer needs no lock.
#ifndef CV_ETHDEV_ANSWER_H
#define CV_ETHDEV_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "outer.h"
#include "walk.h"

#define CV_ANSWERS_MAX 64
#define CV_ANSWER_KEY (CV_OUTER_MAX + 2)

struct cv_answer {
	struct cv_outer outer; // of what is sent there
	// The header that was received, but for what differs from frame to frame: lengths,
	// checksums, source port and number of packets are 0. Its length first.
	uint8_t key[CV_ANSWER_KEY];
};

struct cv_answers {
	struct cv_ethdev_config config;
	struct cv_answer fixed; // valid if config.fixed
	_Atomic uint32_t count;
	_Atomic bool full; // it was said once
	struct cv_answer learned[CV_ANSWERS_MAX];
};

// 0, or -EINVAL with error set.
int cv_answers_init(
	struct cv_answers *answers, const struct cv_ethdev_config *config, struct cv_error *error);

// The answer to a convoy just walked. last (may be NULL): the one before, looked at first. NULL:
// there are more senders than CV_ANSWERS_MAX; what they send is not answered in convoys.
const struct cv_answer *cv_answer_find(
	struct cv_answers *answers, const struct cv_convoy *convoy, const struct cv_answer *last);

#endif
