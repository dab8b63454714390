// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// DPDK's environment as a plan needs it: worker i on lcore i + 1, pinned to its core.
#ifndef CV_PLAN_EAL_H
#define CV_PLAN_EAL_H

#include <stdbool.h>

#include "daemon/plan.h"
#include "packet/error.h"

// check: only functions will be made, no worker and no telemetry. 0, or -EIO with error set.
int cv_plan_eal_start(
	const struct cv_plan *plan, bool check, const char *log_level, struct cv_error *error);

#endif
