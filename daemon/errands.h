// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What every worker of a running node does once, between two poll iterations.
#ifndef CV_ERRANDS_H
#define CV_ERRANDS_H

#include "daemon/node.h"

// Has each worker call run() with its argument, and returns when all have. One caller at a time: with
// the node taken (running.h), or once nobody can take it any more.
void cv_errands_do(
	struct cv_node *node, void (*run)(void *argument), void *const arguments[CV_WORKERS_MAX]);

// The same of one worker, which a worker that does an errand may give as well. Awaited by the caller
// of both.
void cv_errands_give(struct cv_worker *worker, const struct cv_errand *errand);
void cv_errands_await(struct cv_node *node, unsigned worker);

#endif
