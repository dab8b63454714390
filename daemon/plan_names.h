// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What names in a plan stand for.
#ifndef CV_PLAN_NAMES_H
#define CV_PLAN_NAMES_H

#include "daemon/plan.h"

// A row of a table: a name, a member const char * of what is being named.
#define CV_PLAN_NAME(type, member)                                                               \
	{                                                                                        \
		"name", CV_TEXT, CV_AT(type, member), .high = CV_NAME_MAX - 1, .required = true, \
	}

// The index of what is called so, or -1.
int cv_plan_find(const char *const *names, unsigned count, const char *name);
int cv_plan_find_function(const struct cv_plan *plan, const char *name);
int cv_plan_find_chain(const struct cv_plan *plan, const char *name);

// The index of the port that a key names. Returns 0, or -EINVAL with an error.
int cv_plan_find_port(const struct cv_plan *plan, const struct cv_where *at, const char *key,
	const char *name, unsigned *port);

#endif
