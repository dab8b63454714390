// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A node's workers: which ports and rings each polls, and what its packets pass behind them.
#ifndef CV_NODE_WORKERS_H
#define CV_NODE_WORKERS_H

#include "daemon/node.h"

// Makes workers and function counters of a node that has its ports, rings and functions. 0 or a
// negative errno; what is there by then is freed by cv_node_free_workers().
int cv_node_make_workers(struct cv_node *node);

// A node without workers is allowed.
void cv_node_free_workers(struct cv_node *node);

#endif
