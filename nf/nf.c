// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Every network function that there is. The list is made by meson.build from its own.
#include <string.h>

#include "chain/nf.h"
#include "nf/nf_list.h" // CV_NF_LIST(X): X(name) for each

#define DECLARE(name) extern const struct cv_nf cv_nf_##name;
CV_NF_LIST(DECLARE)

#define ENTRY(name) &cv_nf_##name,
const struct cv_nf *const cv_nfs[] = {CV_NF_LIST(ENTRY) NULL};

const struct cv_nf *cv_nf_find(const char *name)
{
	for (const struct cv_nf *const *nf = cv_nfs; *nf != NULL; nf++)
		if (strcmp((*nf)->name, name) == 0)
			return *nf;
	return NULL;
}

int cv_nf_env_port(const struct cv_nf_env *env, const char *name)
{
	for (unsigned i = 0; i < env->ports_count; i++)
		if (strcmp(env->ports[i], name) == 0)
			return (int)i;
	return -1;
}
