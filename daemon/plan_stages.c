// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_stages.h"

#include <errno.h>

#include "daemon/plan_check.h"
#include "daemon/plan_names.h"

// One end of a stage, as the plan has it.
struct end {
	const char *port, *ring;
	uint16_t queue;
	bool outputs, handoff;
};

struct keys {
	const struct cv_plan *plan;
	struct cv_plan_stage *stage;
	unsigned worker;
	const char *chain;
	bool moves;
	struct end source, sink;
};

// A ring's index by name; a new name is a new ring.
static int ring_index(struct cv_plan *plan, const char *name)
{
	int index = cv_plan_find(plan->rings, plan->rings_count, name);

	if (index >= 0)
		return index;
	plan->rings[plan->rings_count] = name;
	return plan->rings_count++;
}

// The ring, or -1 where the end is a port: it must be the one that the chain has there.
static int read_end(struct cv_plan *plan, const struct cv_where *at, const struct end *end,
	unsigned wanted, const char *chain, const char *way, int *ring)
{
	unsigned port;

	if ((end->port != NULL) == (end->ring != NULL))
		return cv_where_error(at, "port, ring: give one of them");
	*ring = -1;
	if (end->ring != NULL) {
		*ring = ring_index(plan, end->ring);
		return 0;
	}
	if (cv_plan_find_port(plan, at, "port", end->port, &port) != 0)
		return -EINVAL;
	if (port == wanted)
		return 0;
	return cv_where_error(at, "port: \"%s\" is not where chain \"%s\" %s (\"%s\")", end->port,
		chain, way, plan->port_names[wanted]);
}

static int read_step(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	const struct keys *keys = of;
	struct cv_plan_stage *stage = keys->stage;
	const char *name = json_string_value(value);
	int index;

	if (name == NULL)
		return cv_where_wrong(at, key, value, "give a function's name");
	index = cv_plan_find_function(keys->plan, name);
	if (index < 0)
		return cv_where_error(at, "no function is called \"%.64s\"", name);
	stage->path[stage->path_length++] = index;
	return 0;
}

static const struct cv_param source_params[] = {
	{"port", CV_TEXT, CV_AT(struct end, port)},
	{"queue", CV_INTEGER, CV_AT(struct end, queue), .high = UINT16_MAX},
	{"ring", CV_TEXT, CV_AT(struct end, ring), .high = CV_NAME_MAX - 1},
	{"outputs", CV_BOOL, CV_AT(struct end, outputs)},
	{"handoff", CV_BOOL, CV_AT(struct end, handoff)},
	{0},
};

static const struct cv_param sink_params[] = {
	{"port", CV_TEXT, CV_AT(struct end, port)},
	{"ring", CV_TEXT, CV_AT(struct end, ring), .high = CV_NAME_MAX - 1},
	{0},
};

// A chain without a port in has stages from port and ring neither.
static int read_source(struct cv_plan *plan, const struct cv_where *at, const struct keys *keys,
	const struct cv_plan_chain *chain)
{
	const struct end *end = &keys->source;

	if (end->outputs != chain->from_outputs)
		return cv_where_error(at,
			chain->from_outputs
				? "outputs: chain \"%s\" has no port in: this must be true"
				: "outputs: chain \"%s\" comes in by a port",
			chain->name);
	keys->stage->source_ring = -1;
	keys->stage->handed = end->handoff;
	if (end->handoff && (end->outputs || end->port != NULL || end->ring != NULL))
		return cv_where_error(at, "handoff: is a source of its own; remove the other");
	if (end->outputs || end->handoff)
		return 0;
	if (read_end(plan, at, end, chain->in, chain->name, "comes in",
		    &keys->stage->source_ring) != 0)
		return -EINVAL;
	if (end->ring == NULL && end->queue >= plan->ports[chain->in]->queues)
		return cv_where_error(at, "queue: %u: port \"%s\" has %u, counted from 0",
			end->queue, end->port, plan->ports[chain->in]->queues);
	return 0;
}

int cv_plan_stage_read(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_plan *plan = of;
	struct cv_plan_stage *stage = &plan->stages[plan->stages_count];
	struct keys keys = {.plan = plan, .stage = stage};
	const struct cv_param params[] = {
		{"worker", CV_INTEGER, CV_AT(struct keys, worker), .required = true,
			.high = plan->workers_count - 1},
		{"chain", CV_TEXT, CV_AT(struct keys, chain), .required = true},
		{"source", CV_PARAMS, CV_AT(struct keys, source), .required = true,
			.params = source_params},
		{"moves", CV_BOOL, CV_AT(struct keys, moves)},
		{"path", CV_EACH, .required = true, .high = CV_PATH_MAX, .read = read_step},
		{"sink", CV_PARAMS, CV_AT(struct keys, sink), .required = true,
			.params = sink_params},
		{0},
	};
	const struct cv_where source = cv_where_key(at, "source");
	const struct cv_where sink = cv_where_key(at, "sink");
	const struct cv_plan_chain *chain;
	int index;

	if (cv_params_read(at, value, params, &keys) != 0)
		return -EINVAL;
	index = cv_plan_find_chain(plan, keys.chain);
	if (index < 0)
		return cv_where_error(at, "chain: no chain is called \"%.64s\"", keys.chain);
	chain = &plan->chains[index];
	if (read_source(plan, &source, &keys, chain) != 0 ||
		read_end(plan, &sink, &keys.sink, chain->out, chain->name, "goes out",
			&stage->sink_ring) != 0)
		return -EINVAL;
	if (chain->from_outputs && stage->sink_ring >= 0)
		return cv_where_error(&sink, "ring: a chain from outputs is one stage");
	if (keys.moves && (keys.source.port == NULL || stage->sink_ring >= 0))
		return cv_where_error(at, "moves: only a stage from port to port does");
	stage->moves = keys.moves;
	stage->worker = keys.worker;
	stage->chain = index;
	stage->queue = keys.source.queue;
	plan->stages_count++;
	return 0;
}

// Whether all chains of a queue say the same: they move together.
static int check_moves(
	const struct cv_plan *plan, const struct cv_where *top, const struct cv_plan_stage *stage)
{
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *other = &plan->stages[i];

		if (!other->moves && cv_plan_polls_port(plan, other) &&
			other->queue == stage->queue &&
			plan->chains[other->chain].in == plan->chains[stage->chain].in)
			return cv_where_error(top,
				"stages[%u]: moves: another stage of queue %u of port \"%s\" does: "
				"make them the same",
				i, stage->queue, plan->port_names[plan->chains[stage->chain].in]);
	}
	return 0;
}

int cv_plan_spare_stages(struct cv_plan *plan, const struct cv_where *top)
{
	const unsigned count = plan->stages_count;

	for (unsigned i = 0; i < count; i++) {
		if (!plan->stages[i].moves)
			continue;
		if (check_moves(plan, top, &plan->stages[i]) != 0)
			return -EINVAL;
		for (unsigned worker = 0; worker < plan->workers_count; worker++) {
			struct cv_plan_stage *spare = &plan->stages[plan->stages_count];

			if (worker == plan->stages[i].worker)
				continue;
			if (plan->stages_count == CV_STAGES_MAX)
				return cv_where_error(top,
					"stages: moves: more than %u stages on all workers "
					"together; give it fewer cores",
					CV_STAGES_MAX);
			*spare = plan->stages[i];
			spare->worker = worker;
			spare->spare = true;
			plan->stages_count++;
		}
	}
	plan->spare_count = plan->stages_count - count;
	return 0;
}
