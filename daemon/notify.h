// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Tells a service manager how the node is, as sd_notify(3) does: datagrams to the socket that
// NOTIFY_SOCKET names. Without one nothing is told.
#ifndef CV_NOTIFY_H
#define CV_NOTIFY_H

#include <stdint.h>

#include "daemon/node.h"

struct cv_notify {
	int socket; // -1: nobody to tell
	uint64_t interval_ns; // between two signs of life; 0: nobody waits for any
	uint64_t next_ns; // CLOCK_MONOTONIC
	uint64_t iterations[CV_WORKERS_MAX]; // of each worker at the last sign of life
};

// Connects, as long as the process may.
// 0, or a negative errno with error set.
int cv_notify_open(struct cv_notify *notify, struct cv_error *error);

// "READY=1", "STOPPING=1"; lost if nobody reads.
void cv_notify_tell(const struct cv_notify *notify, const char *state);

// The same with count <= 253 descriptors, which stay the caller's. Whether it was sent.
bool cv_notify_tell_fds(
	const struct cv_notify *notify, const char *state, const int *fds, unsigned count);

// To be called often. Gives a sign of life when it is due, if each worker has polled since the last. NULL: they
// do not run yet.
void cv_notify_alive(struct cv_notify *notify, const struct cv_node *node);

void cv_notify_close(struct cv_notify *notify);

#endif
