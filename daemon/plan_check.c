// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_check.h"

#include <errno.h>

// How often stages push to and pop from each ring, and where each ring leads.
static int check_rings(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned ring = 0; ring < plan->rings_count; ring++) {
		const struct cv_plan_stage *pusher = NULL;
		const struct cv_plan_stage *popper = NULL;
		unsigned pushers = 0;
		unsigned poppers = 0;

		for (unsigned i = 0; i < plan->stages_count; i++) {
			const struct cv_plan_stage *stage = &plan->stages[i];

			if (stage->sink_ring == (int)ring) {
				pusher = stage;
				pushers++;
			}
			if (stage->source_ring == (int)ring) {
				popper = stage;
				poppers++;
			}
		}
		if (pushers != 1 || poppers != 1)
			return cv_where_error(top,
				"stages: ring \"%s\" is the sink of %u stages and the source of "
				"%u: make it one each",
				plan->rings[ring], pushers, poppers);
		if (pusher->chain != popper->chain)
			return cv_where_error(top,
				"stages: ring \"%s\" joins chain \"%s\" to chain \"%s\"",
				plan->rings[ring], plan->chains[pusher->chain].name,
				plan->chains[popper->chain].name);
	}
	return 0;
}

// Every ring lies on the way from a port: no stage can wait for a loop of rings.
static int check_reached(const struct cv_plan *plan, const struct cv_where *top)
{
	unsigned reached = 0;

	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		if (stage->source_ring >= 0)
			continue;
		while (stage->sink_ring >= 0) {
			int ring = stage->sink_ring;

			reached++;
			for (unsigned j = 0; j < plan->stages_count; j++)
				if (plan->stages[j].source_ring == ring)
					stage = &plan->stages[j];
		}
	}
	if (reached == plan->rings_count)
		return 0;
	return cv_where_error(top, "stages: some rings form a loop that no port leads into");
}

// Each queue of each chain's port is one worker's, and polled for that chain exactly once.
static int check_queues(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned c = 0; c < plan->chains_count; c++) {
		const struct cv_plan_chain *chain = &plan->chains[c];

		for (unsigned queue = 0; queue < plan->ports[chain->in]->queues; queue++) {
			unsigned stages = 0;

			for (unsigned i = 0; i < plan->stages_count; i++)
				stages += plan->stages[i].chain == c &&
					  plan->stages[i].source_ring < 0 &&
					  plan->stages[i].queue == queue;
			if (stages == 1)
				continue;
			return cv_where_error(top,
				"stages: chain \"%s\" has %u stages for queue %u of port \"%s\": "
				"make it one",
				chain->name, stages, queue, plan->port_names[chain->in]);
		}
	}
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *a = &plan->stages[i];

		for (unsigned j = 0; j < i; j++) {
			const struct cv_plan_stage *b = &plan->stages[j];

			if (a->source_ring >= 0 || b->source_ring >= 0 || a->queue != b->queue ||
				plan->chains[a->chain].in != plan->chains[b->chain].in ||
				a->worker == b->worker)
				continue;
			return cv_where_error(top,
				"stages[%u]: worker: queue %u of port \"%s\" belongs to worker %u",
				i, a->queue, plan->port_names[plan->chains[a->chain].in],
				b->worker);
		}
	}
	return 0;
}

int cv_plan_check_stages(const struct cv_plan *plan, const struct cv_where *top)
{
	if (check_rings(plan, top) != 0 || check_reached(plan, top) != 0)
		return -EINVAL;
	return check_queues(plan, top);
}
