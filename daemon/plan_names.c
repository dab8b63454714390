// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_names.h"

#include <errno.h>
#include <string.h>

#include "daemon/plan_json.h"

int cv_plan_find(const char *const *names, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int cv_plan_find_function(const struct cv_plan *plan, const char *name)
{
	for (unsigned i = 0; i < plan->functions_count; i++)
		if (strcmp(plan->functions[i].name, name) == 0)
			return i;
	return -1;
}

int cv_plan_find_chain(const struct cv_plan *plan, const char *name)
{
	for (unsigned i = 0; i < plan->chains_count; i++)
		if (strcmp(plan->chains[i].name, name) == 0)
			return i;
	return -1;
}

const char *cv_plan_read_name(const struct cv_where *at, const json_t *object, const char *key)
{
	const char *name = cv_json_string(at, object, key, NULL);

	if (name != NULL && (name[0] == '\0' || strlen(name) >= CV_NAME_MAX)) {
		cv_where_error(
			at, "%s: \"%.64s\": a name has 1 to %d bytes", key, name, CV_NAME_MAX - 1);
		return NULL;
	}
	return name;
}

int cv_plan_read_port_name(const struct cv_plan *plan, const struct cv_where *at,
	const json_t *object, const char *key, unsigned *port)
{
	const char *name = cv_json_string(at, object, key, NULL);
	int index = name == NULL ? -1 : cv_plan_find(plan->port_names, plan->ports_count, name);

	if (name != NULL && index < 0)
		cv_where_error(at, "%s: no port is called \"%.64s\"", key, name);
	*port = index;
	return index < 0 ? -EINVAL : 0;
}
