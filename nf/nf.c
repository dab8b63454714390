// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Every network function that there is. The list is made by meson.build from its own.
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "nf/nf_list.h" // CV_NF_LIST(X): X(name) for each; CV_NF_LEFT_OUT(X): X(name, package)

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

#define LEFT_OUT(name, package) {#name, #package},
const char *cv_nf_left_out(const char *name)
{
	static const struct {
		const char *name, *package;
	} all[] = {CV_NF_LEFT_OUT(LEFT_OUT){NULL, NULL}};

	for (unsigned i = 0; all[i].name != NULL; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].package;
	return NULL;
}

static int find(const char *const *names, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

int cv_nf_env_port(const struct cv_nf_env *env, const char *name)
{
	return find(env->ports, env->ports_count, name);
}

int cv_nf_env_output(const struct cv_nf_env *env, const char *name)
{
	return find(env->outputs, env->outputs_count, name);
}

void *cv_nf_create(const struct cv_nf *nf, const json_t *config, const struct cv_nf_env *env,
	struct cv_error *error)
{
	const struct cv_where at = cv_where_top(env->name, error);
	void *read = calloc(1, nf->config_size);
	void *instance = NULL;

	if (read == NULL || cv_params_read(&at, config, nf->params, read) == 0)
		instance = read == NULL || nf->create == NULL ? read : nf->create(read, env, error);
	if (instance == NULL)
		cv_error_set(error, "%s: out of memory", env->name); // unless an error says more
	if (instance != read)
		free(read);
	return instance;
}

void cv_nf_destroy(const struct cv_nf *nf, void *instance)
{
	if (nf->destroy != NULL)
		nf->destroy(instance);
	else
		free(instance);
}

json_t *cv_nf_describe(void)
{
	json_t *types = json_array();

	for (const struct cv_nf *const *nf = cv_nfs; *nf != NULL; nf++) {
		json_t *drops = json_array();

		for (const char *const *drop = (*nf)->drops; *drop != NULL; drop++)
			json_array_append_new(drops, json_string(*drop));
		json_array_append_new(types,
			json_pack("{s:s, s:s, s:o, s:b, s:o}", "name", (*nf)->name, "summary",
				(*nf)->summary, "drops", drops, "branches", (*nf)->branches,
				"params", cv_params_describe((*nf)->params)));
	}
	return types;
}
