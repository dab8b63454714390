// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A running node that stands still: nothing is inside it, and its workers sleep between two poll
// iterations, off their cores. With the node taken (running.h) from freeze until thaw or end.
#ifndef CV_FREEZE_H
#define CV_FREEZE_H

#include "daemon/node.h"

// 0: at_ns is when the first worker stood (CLOCK_MONOTONIC), and the calling thread runs on the first
// one's core (worker_core.h) until it calls one of those below. -ETIMEDOUT with error set: something is
// left inside, or a worker does not come, after so long; the node goes on.
int cv_node_freeze(struct cv_node *node, unsigned ms, uint64_t *at_ns, struct cv_error *error);

// Another process's workers run now: the thread leaves their core.
void cv_node_leave_core(void);

// It goes on.
void cv_node_thaw(struct cv_node *node);

// Its workers end instead: cv_node_join() is what is left.
void cv_node_end_frozen(struct cv_node *node);

#endif
