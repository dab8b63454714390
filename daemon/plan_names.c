// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_names.h"

#include <errno.h>
#include <string.h>

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

int cv_plan_find_port(const struct cv_plan *plan, const struct cv_where *at, const char *key,
	const char *name, unsigned *port)
{
	const int index = cv_plan_find(plan->port_names, plan->ports_count, name);

	if (index < 0)
		return cv_where_error(at, "%s: no port is called \"%.64s\"", key, name);
	*port = index;
	return 0;
}
