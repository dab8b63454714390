// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// SIGINT and SIGTERM. The first asks the node to drain and end. A second one, or a deadline after
// the first, ends the process at once: a worker that is stuck must not keep it alive.
#ifndef CV_STOP_SIGNALS_H
#define CV_STOP_SIGNALS_H

#include <stdbool.h>

#include "packet/error.h"

// Starts a thread that waits for the signals; the caller's and all later threads do not get them.
// To be called before any other thread is made, once. 0, or a negative errno with error set.
int cv_stop_signals_start(unsigned deadline_s, struct cv_error *error);

// Has a signal come that ends the node?
bool cv_stop_signals_came(void);

// What the end waits for now, to be named if it never comes: "worker 0 (core 3)". NULL: nothing in
// particular. The text must stay.
void cv_stop_signals_waits_for(const char *what);

#endif
