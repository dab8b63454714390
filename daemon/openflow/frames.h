// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What ports of kind openflow were sent: FLOW_MODs in frames (inband.h), carried out as those of a
// controller that need not greet and is told nothing.
#ifndef CV_OF_FRAMES_H
#define CV_OF_FRAMES_H

#include "daemon/openflow/session.h"

#define CV_OF_FRAMES 32u // that are taken at a time

struct cv_of_frames {
	struct cv_of_switch *of;
	struct cv_of_session *session; // its answers go nowhere; NULL: there are no such ports
	uint64_t last[CV_OF_TABLES_MAX]; // by port: the time of the newest frame
	struct rte_mbuf *taken[CV_OF_FRAMES];
	unsigned count;
	unsigned port; // that they are of
};

// 0 or -ENOMEM.
int cv_of_frames_init(struct cv_of_frames *frames, struct cv_of_switch *of);
void cv_of_frames_fini(struct cv_of_frames *frames);

// Takes some of the next port's frames, unless some are left. Whether there are any.
bool cv_of_frames_take(struct cv_of_frames *frames);

// Between begin() and end() of the node: carries out what was taken.
void cv_of_frames_run(struct cv_of_frames *frames);

#endif
