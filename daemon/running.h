// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The running node, as threads beside the workers use it: who reads counters, who changes it. The
// main thread gives it once it forwards, and takes it back before it stops.
#ifndef CV_RUNNING_H
#define CV_RUNNING_H

#include <stdbool.h>

#include "daemon/node.h"

#define CV_RUNNING_PATIENCE_S 1

// From now on there is this node; NULL: none, and nobody uses the one before any more when this
// returns.
void cv_running_set(struct cv_node *node);

// The node, which stays as it is until it is given back, to one after the other; NULL: there is none, and nothing to give
// back. For short: everybody else waits.
struct cv_node *cv_running_take(void);
void cv_running_give(void);

// One change at a time is prepared and made, which may take long; the node is taken only for its last
// step. False: somebody else changes it, and for longer than this is waited for; nothing is to be ended.
bool cv_running_begin_change(void);
void cv_running_end_change(void);

// The same without waiting, for whoever changes the node all the time: also false if somebody waits.
bool cv_running_try_change(void);

#endif
