// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A plan beside the one that runs: what must be as it is, and what differs.
#ifndef CV_PLAN_NEXT_H
#define CV_PLAN_NEXT_H

#include <jansson.h>

#include "packet/error.h"

// The plan that comes next as a new object: with the running one's ports, workers and memory, and with
// functions that are in both in their order. NULL with error set: something differs that stays as it is
// as long as the node runs.
json_t *cv_plan_next_json(const json_t *running, const json_t *after, struct cv_error *error);

// What differs but for the parameters of functions that are in both, as a new array of
// {"what": "port", "function", "chain", "next hop" or "setting", "name", "change": "added", "removed" or
// "changed", "key" if it is changed}.
json_t *cv_plan_differences(const json_t *running, const json_t *after);

// The same with parameters, as the plans have them: not what is in files that they name.
json_t *cv_plan_all_differences(const json_t *running, const json_t *after);

// Adds one to the array.
void cv_plan_add_difference(
	json_t *array, const char *what, const char *name, const char *change, const char *key);

#endif
