// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the stages of a plan must be to each other, once each has been read.
#ifndef CV_PLAN_CHECK_H
#define CV_PLAN_CHECK_H

#include "daemon/plan.h"

// Finds the chains that functions' outputs lead to. 0, or -EINVAL with the error of top set.
int cv_plan_find_outputs(struct cv_plan *plan, const struct cv_where *top);

// Every ring has one stage that fills it and one of the same chain that empties it, lies on the
// way from a port, and every queue of every chain's port is polled by one worker, once. A chain that
// outputs lead to has a stage on each worker that runs a function which leads there, and none leads
// back to where it came from. 0, or
// -EINVAL with the error of top set.
int cv_plan_check_stages(const struct cv_plan *plan, const struct cv_where *top);

// Whether it polls a queue, when the node begins.
bool cv_plan_polls_port(const struct cv_plan *plan, const struct cv_plan_stage *stage);

#endif
