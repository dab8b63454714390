// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reading a function's configuration: every key known, every type right, each error one line that
// names the function, the key, the value and the fix.
#ifndef CV_CONFIG_H
#define CV_CONFIG_H

#include "nf.h"

// Checks that object has no key but the known ones (NULL at the end). where names the object in
// error texts ("fw", "fw: rules[3]"). Returns 0, or -EINVAL with error set.
int cv_config_keys(
	const json_t *object, const char *const *known, const char *where, struct cv_error *error);

// Reads an optional string: *value stays as it is when the key is absent. The string belongs to
// the object. Returns 0, or -EINVAL with error set.
int cv_config_string(const json_t *object, const char *key, const char *where, const char **value,
	struct cv_error *error);

// Reads an optional integer from low to high: *value stays as it is when the key is absent.
// Returns 0, or -EINVAL with error set.
int cv_config_integer(const json_t *object, const char *key, const char *where, int64_t low,
	int64_t high, int64_t *value, struct cv_error *error);

// Reads an optional array; *value becomes NULL when the key is absent. The array belongs to the
// object. Returns 0, or -EINVAL with error set.
int cv_config_array(const json_t *object, const char *key, const char *where, const json_t **value,
	struct cv_error *error);

// Reads an optional string that is a port's name and makes *port its index; *port stays as it is
// when the key is absent. Returns 0, or -EINVAL with error set.
int cv_config_port(const json_t *object, const char *key, const char *where,
	const struct cv_nf_env *env, int *port, struct cv_error *error);

// Writes "no port called NAME; the ports are A, B" to error. Returns -EINVAL.
int cv_config_no_port(
	const char *where, const char *name, const struct cv_nf_env *env, struct cv_error *error);

#endif
