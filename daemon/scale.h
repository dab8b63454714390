// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Queues go to other workers by load (`workers: {scale: auto}`): from one that is busy to one that has
// room, and from two that are not to one of them; a worker without queues sleeps. All workers have the
// paths of a queue that moves, and one of them polls it. It stops between two of its poll iterations,
// when all that it took has left, and the next one begins behind that.
#ifndef CV_SCALE_H
#define CV_SCALE_H

#include <stdbool.h>

#include "daemon/node.h"

// Whether functions of queues that move are of a kind that can: none remembers what passed on one worker.
// 0, or -EINVAL with error set.
int cv_scale_check(const struct cv_node *node, struct cv_error *error);

// Moves what is to be moved by now. By the main thread, now and then, with the node taken.
void cv_scale_due(struct cv_node *node);

// Moves a port's queue to a worker. With the node taken. 0, -ENOENT (no such queue moves), or -EBUSY: a
// function holds packets of the worker that has it.
int cv_scale_move(struct cv_node *node, unsigned port, unsigned queue, unsigned worker);

// The node is about to go over to next: queues that move in both are with their workers in next as well,
// and others go to the one that next has them on.
void cv_scale_follow(struct cv_node *node, struct cv_node *next);

// Of a worker as counts show it: its queues, and how many came. A node in which none moves has none.
void cv_scale_count(const struct cv_node *node, unsigned worker, json_t *object);

#endif
