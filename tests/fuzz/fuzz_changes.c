// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as the plan that a running node is asked to run instead: refused with a reason, or taken,
// with the ports and workers that run.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plan.h"
#include "daemon/plan_next.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

#define PLAN                                                                                    \
	"{\"schema\": \"convoy.plan/1\", \"ports\": [{\"name\": \"a\", \"kind\": \"null\"}],"   \
	"\"functions\": [{\"name\": \"fw\", \"type\": \"firewall\", \"config\": {\"default\": " \
	"\"deny\"}}, {\"name\": \"mac\", \"type\": \"l2fwd\", \"config\": {}}],"                \
	"\"chains\": [{\"name\": \"c\", \"match\": {}, \"in\": \"a\", \"out\": \"a\"}],"        \
	"\"workers\": [{\"core\": 0}], \"stages\": [{\"worker\": 0, \"chain\": \"c\", "         \
	"\"source\": "                                                                          \
	"{\"port\": \"a\", \"queue\": 0}, \"path\": [\"fw\", \"mac\"], \"sink\": {\"port\": "   \
	"\"a\"}}]}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cv_plan *running;
	json_t *after = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct cv_error error = {0};
	struct cv_plan *next;

	if (running == NULL)
		running = cv_plan_parse(PLAN, strlen(PLAN), "plan", &error);
	must(running != NULL);
	if (!json_is_object(after)) {
		json_decref(after);
		return 0;
	}
	next = cv_plan_read_next(running, after, &error);
	must((next == NULL) == (error.text[0] != '\0'));
	if (next != NULL) {
		json_t *differences = cv_plan_differences(running->json, next->json);

		must(next->ports_count == running->ports_count &&
			next->ports[0] == running->ports[0] && next->ports_lent &&
			next->workers_count == running->workers_count);
		must(json_is_array(differences));
		json_decref(differences);
	}
	cv_plan_free(next);
	json_decref(after);
	return 0;
}
