// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdio.h>

#include "nf/config.h"

int cv_config_no_port(
	const char *where, const char *name, const struct cv_nf_env *env, struct cv_error *error)
{
	char list[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < env->ports_count && used < sizeof(list); i++)
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", env->ports[i]);
	cv_error_set(error, "%s: no port is called \"%s\"; the ports are %s", where, name,
		env->ports_count == 0 ? "none" : list);
	return -EINVAL;
}

int cv_config_no_port_at(
	const struct cv_where *at, const char *key, const char *name, const struct cv_nf_env *env)
{
	char where[256];

	snprintf(where, sizeof(where), "%s: %s%s%s", at->document, at->path,
		at->path[0] != '\0' && key[0] != '\0' ? ": " : "", key);
	return cv_config_no_port(where, name, env, at->error);
}

int cv_config_no_output_at(const struct cv_where *at, const char *key, const char *name)
{
	return cv_where_error(at,
		"%s: no output is called \"%.64s\"; add it to the function's outputs", key, name);
}
