// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The stages of a plan: what each worker does, from a port or ring through functions to the next.
#ifndef CV_PLAN_STAGES_H
#define CV_PLAN_STAGES_H

#include "daemon/plan.h"

// Reads one of them, a cv_param's read() into a struct cv_plan whose ports, functions, chains and
// workers were read before. 0, or -EINVAL with an error.
int cv_plan_stage_read(const struct cv_where *at, const char *key, const json_t *value, void *plan);

// Adds what stages that move are on the other workers, behind all others. 0, or -EINVAL with the error of
// top set.
int cv_plan_spare_stages(struct cv_plan *plan, const struct cv_where *top);

#endif
