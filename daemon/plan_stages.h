// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The stages of a plan: what each worker does, from a port or ring through functions to the next.
#ifndef CV_PLAN_STAGES_H
#define CV_PLAN_STAGES_H

#include "daemon/plan.h"
#include "daemon/plan_json.h"

// Reads and checks them; ports, functions, chains and workers were read before. Returns 0, -EINVAL
// with an error, or -ENOMEM.
int cv_plan_read_stages(struct cv_plan *plan, const struct cv_where *top);

#endif
