// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Names in a plan: how they are read, and what they stand for.
#ifndef CV_PLAN_NAMES_H
#define CV_PLAN_NAMES_H

#include <jansson.h>

#include "daemon/plan.h"
#include "daemon/plan_json.h"

// The index of what is called so, or -1.
int cv_plan_find(const char *const *names, unsigned count, const char *name);
int cv_plan_find_function(const struct cv_plan *plan, const char *name);
int cv_plan_find_chain(const struct cv_plan *plan, const char *name);

// The value of a name key: present, a string, short and not empty. NULL with an error otherwise.
const char *cv_plan_read_name(const struct cv_where *at, const json_t *object, const char *key);

// The index of the port that a key names. Returns 0, or -EINVAL with an error.
int cv_plan_read_port_name(const struct cv_plan *plan, const struct cv_where *at,
	const json_t *object, const char *key, unsigned *port);

#endif
