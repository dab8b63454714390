// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a plan's node still needs once its ports are open, so that it can give up everything else.
#ifndef CV_NODE_SANDBOX_H
#define CV_NODE_SANDBOX_H

#include "daemon/plan.h"
#include "daemon/sandbox/sandbox.h"

// Checks what the plan says of it, with no effect; runs: the node is to run, not only to be checked.
// 0, or -EINVAL with error set.
int cv_node_sandbox_check(const struct cv_plan *plan, bool runs, struct cv_error *error);

// Once the ports are open and started, and before a worker runs. core_dumps: for a debugger. 0, or a
// negative errno with error set.
int cv_node_sandbox_enter(const struct cv_plan *plan, bool core_dumps,
	struct cv_sandbox_state *state, struct cv_error *error);

#endif
