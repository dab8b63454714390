// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_check.h"
#include "daemon/plan_names.h"

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

bool cv_plan_polls_port(const struct cv_plan *plan, const struct cv_plan_stage *stage)
{
	return stage->source_ring < 0 && !stage->handed && !stage->spare &&
	       !plan->chains[stage->chain].from_outputs;
}

// Each queue of each chain's port is one worker's, and polled for that chain exactly once.
static int check_queues(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned c = 0; c < plan->chains_count; c++) {
		const struct cv_plan_chain *chain = &plan->chains[c];

		for (unsigned queue = 0;
			!chain->from_outputs && queue < plan->ports[chain->in]->queues; queue++) {
			unsigned stages = 0;

			for (unsigned i = 0; i < plan->stages_count; i++)
				stages += plan->stages[i].chain == c &&
					  cv_plan_polls_port(plan, &plan->stages[i]) &&
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

			if (!cv_plan_polls_port(plan, a) || !cv_plan_polls_port(plan, b) ||
				a->queue != b->queue ||
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

int cv_plan_find_outputs(struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned f = 0; f < plan->functions_count; f++) {
		struct cv_plan_function *function = &plan->functions[f];

		for (unsigned i = 0; i < function->outputs_count; i++) {
			const int chain = cv_plan_find_chain(plan, function->output_chains[i]);
			const struct cv_where at = cv_where_item(top, "functions", f);

			if (chain < 0)
				return cv_where_error(&at,
					"outputs: %s: no chain is called \"%.64s\"",
					function->outputs[i], function->output_chains[i]);
			if (!plan->chains[chain].from_outputs)
				return cv_where_error(&at,
					"outputs: %s: chain \"%s\" comes in by a port",
					function->outputs[i], plan->chains[chain].name);
			function->output_to[i] = (unsigned)chain;
		}
	}
	return 0;
}

// The stage of a chain from outputs on a worker, or NULL.
static const struct cv_plan_stage *stage_on(
	const struct cv_plan *plan, unsigned chain, unsigned worker)
{
	for (unsigned i = 0; i < plan->stages_count; i++)
		if (plan->stages[i].chain == chain && plan->stages[i].worker == worker)
			return &plan->stages[i];
	return NULL;
}

// Follows the outputs of a stage's functions. above: chains that led here, a loop if it is among
// them. reached: chains whose outputs were followed on this worker already.
static int follow_outputs(const struct cv_plan *plan, const struct cv_where *top,
	const struct cv_plan_stage *stage, bool *above, bool *reached)
{
	int rc = 0;

	above[stage->chain] = true;
	for (unsigned i = 0; rc == 0 && i < stage->path_length; i++) {
		const struct cv_plan_function *function = &plan->functions[stage->path[i]];

		for (unsigned o = 0; rc == 0 && o < function->outputs_count; o++) {
			const unsigned chain = function->output_to[o];
			const struct cv_plan_stage *next = stage_on(plan, chain, stage->worker);

			if (above[chain])
				return cv_where_error(top,
					"functions: output %s of \"%s\" leads back to chain \"%s\"",
					function->outputs[o], function->name,
					plan->chains[chain].name);
			if (next == NULL)
				return cv_where_error(top,
					"stages: chain \"%s\", where output %s of \"%s\" leads, "
					"has no "
					"stage on worker %u",
					plan->chains[chain].name, function->outputs[o],
					function->name, stage->worker);
			if (!reached[chain])
				rc = follow_outputs(plan, top, next, above, reached);
			reached[chain] = true;
		}
	}
	above[stage->chain] = false;
	return rc;
}

// Outputs lead to chains that are there, and not back; one stage of such a chain for each worker.
static int check_outputs(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];
		bool above[CV_CHAINS_MAX] = {false};
		bool reached[CV_CHAINS_MAX] = {false};

		if (follow_outputs(plan, top, stage, above, reached) != 0)
			return -EINVAL;
		if (plan->chains[stage->chain].from_outputs &&
			stage_on(plan, stage->chain, stage->worker) != stage)
			return cv_where_error(top,
				"stages[%u]: chain \"%s\" has another stage on worker %u", i,
				plan->chains[stage->chain].name, stage->worker);
	}
	return 0;
}

// A worker gets what others hand over of a chain by one stage.
static int check_handed(const struct cv_plan *plan, const struct cv_where *top)
{
	for (unsigned i = 0; i < plan->stages_count; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct cv_plan_stage *a = &plan->stages[i], *b = &plan->stages[j];

			if (a->handed && b->handed && a->chain == b->chain &&
				a->worker == b->worker)
				return cv_where_error(top,
					"stages[%u]: chain \"%s\" has another stage from handoff "
					"on "
					"worker %u",
					i, plan->chains[a->chain].name, a->worker);
		}
	return 0;
}

int cv_plan_check_stages(const struct cv_plan *plan, const struct cv_where *top)
{
	if (check_rings(plan, top) != 0 || check_reached(plan, top) != 0 ||
		check_queues(plan, top) != 0 || check_handed(plan, top) != 0)
		return -EINVAL;
	return check_outputs(plan, top);
}
