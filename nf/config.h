// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reading a function's configuration: values.h, and what only functions have: ports by name.
#ifndef CV_CONFIG_H
#define CV_CONFIG_H

#include "chain/nf.h"
#include "config/values.h"

// Reads an optional string that is a port's name and makes *port its index; *port stays as it is
// when the key is absent. Returns 0, or -EINVAL with error set.
int cv_config_port(const json_t *object, const char *key, const char *where,
	const struct cv_nf_env *env, int *port, struct cv_error *error);

// Writes "no port called NAME; the ports are A, B" to error. Returns -EINVAL.
int cv_config_no_port(
	const char *where, const char *name, const struct cv_nf_env *env, struct cv_error *error);

#endif
