// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Starting and ending DPDK's environment: worker i on lcore i + 1, pinned to its core; files of
// its own, removed at the end; without hugepages and without root where it can be.
#ifndef CV_EAL_H
#define CV_EAL_H

#include <stdbool.h>

#include "error.h"
#include "plan.h"

// check: only functions will be made, no worker and no telemetry. 0, or -EIO with error set.
int cv_eal_start(
	const struct cv_plan *plan, bool check, const char *log_level, struct cv_error *error);

// Path of the telemetry socket.
const char *cv_eal_telemetry_path(void);

void cv_eal_stop(void);

#endif
