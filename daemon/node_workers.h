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

// The parts of it that another plan has otherwise. What paths are to be, the sources and ticks of the
// node's workers, which need be nothing but that: 0 or -ENOMEM, either way to be freed.
int cv_node_make_paths(struct cv_node *node);
void cv_node_free_paths(struct cv_node *node);

// A worker's paths become what they are to be, or empty. By the worker, between two poll iterations.
void cv_node_set_paths(struct cv_node *node, unsigned worker);
void cv_node_empty_paths(struct cv_node *node, unsigned worker);

#endif
