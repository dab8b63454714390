// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The thread that hands a node over runs on a worker's core while workers stand: nobody else runs there,
// and all other cores may be busy for some milliseconds.
#ifndef CV_WORKER_CORE_H
#define CV_WORKER_CORE_H

#include <sched.h>
#include <stdbool.h>

#include "daemon/node.h"

// Where the thread may run otherwise.
struct cv_worker_core {
	cpu_set_t before;
	bool borrowed;
};

// From now on the thread runs on the first worker's core alone. Where that is not allowed it stays.
void cv_worker_core_borrow(struct cv_worker_core *core, const struct cv_node *node);

// Before workers run again. Of one that is not borrowed: nothing.
void cv_worker_core_return(struct cv_worker_core *core);

#endif
