// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What only functions' configurations have: ports and outputs by name.
#ifndef CV_CONFIG_H
#define CV_CONFIG_H

#include "chain/nf.h"

// Writes "no port called NAME; the ports are A, B" to error. Returns -EINVAL.
int cv_config_no_port(
	const char *where, const char *name, const struct cv_nf_env *env, struct cv_error *error);

// The same, and "no output is called NAME", of a key at a place.
int cv_config_no_port_at(
	const struct cv_where *at, const char *key, const char *name, const struct cv_nf_env *env);
int cv_config_no_output_at(const struct cv_where *at, const char *key, const char *name);

#endif
