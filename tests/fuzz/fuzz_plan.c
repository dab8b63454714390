// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a plan: read or refused with a reason, never half of each. What is accepted keeps
// the promises that the node is built on.
#include <stdint.h>
#include <stdlib.h>

#include "daemon/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_error error = {0};
	struct cv_plan *plan = cv_plan_parse((const char *)data, size, "plan", &error);

	must((plan == NULL) == (error.text[0] != '\0'));
	if (plan == NULL)
		return 0;
	must(plan->ports_count >= 1 && plan->ports_count <= CV_PORTS_MAX);
	must(plan->workers_count >= 1 && plan->workers_count <= CV_WORKERS_MAX);
	for (unsigned i = 0; i < plan->chains_count; i++)
		must(plan->chains[i].in < plan->ports_count &&
			plan->chains[i].out < plan->ports_count);
	must(plan->next_hops_count <= CV_NEXT_HOPS_MAX);
	for (unsigned i = 0; i < plan->next_hops_count; i++)
		must(plan->next_hops[i].name[0] != '\0' && plan->next_hops[i].keys_count > 0 &&
			plan->next_hops[i].port < plan->ports_count);
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		must(stage->worker < plan->workers_count && stage->chain < plan->chains_count);
		must(stage->source_ring < (int)plan->rings_count);
		must(stage->sink_ring < (int)plan->rings_count);
		must(stage->path_length <= CV_PATH_MAX);
		for (unsigned j = 0; j < stage->path_length; j++)
			must(stage->path[j] < plan->functions_count);
	}
	cv_plan_free(plan);
	return 0;
}
