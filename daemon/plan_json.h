// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// values.h for a plan, whose errors say where: "plan.json: stages[2].source: queue: 9: ...".
#ifndef CV_PLAN_JSON_H
#define CV_PLAN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "config/params.h"

// 0 if object is an object that has no keys but these (NULL at the end); else -EINVAL, error set.
int cv_json_keys(const struct cv_where *at, const json_t *object, const char *const *keys);

// The value of a key, borrowed from object; NULL with error set where it is missing or of another
// type. A string has a fallback for when it is missing (NULL: it must be there).
const char *cv_json_string(
	const struct cv_where *at, const json_t *object, const char *key, const char *fallback);
const json_t *cv_json_object(const struct cv_where *at, const json_t *object, const char *key);
const json_t *cv_json_array(
	const struct cv_where *at, const json_t *object, const char *key, size_t min, size_t max);

// An integer from min to max; a fallback outside of that means it must be there. 0 or -EINVAL.
int cv_json_integer(const struct cv_where *at, const json_t *object, const char *key, int64_t min,
	int64_t max, int64_t fallback, int64_t *value);

// *value stays as it is where the key is missing. 0 or -EINVAL.
int cv_json_bool(const struct cv_where *at, const json_t *object, const char *key, bool *value);

#endif
