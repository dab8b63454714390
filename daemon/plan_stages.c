// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/plan_stages.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/plan_check.h"
#include "daemon/plan_names.h"

#define STAGES_MAX 1024

// A ring's index by name; a new name is a new ring.
static int ring_index(struct cv_plan *plan, const char *name)
{
	int index = cv_plan_find(plan->rings, plan->rings_count, name);

	if (index >= 0)
		return index;
	plan->rings[plan->rings_count] = name;
	return plan->rings_count++;
}

static int read_source(struct cv_plan *plan, const struct cv_where *at, const json_t *stage,
	struct cv_plan_stage *to)
{
	static const char *const keys[] = {"port", "queue", "ring", NULL};
	const struct cv_plan_chain *chain = &plan->chains[to->chain];
	struct cv_where here = cv_where_key(at, "source");
	const json_t *source = cv_json_object(at, stage, "source");
	int64_t queue;
	unsigned port;

	if (source == NULL || cv_json_keys(&here, source, keys) != 0)
		return -EINVAL;
	to->source_ring = -1;
	if (json_object_get(source, "ring") != NULL) {
		const char *ring = cv_plan_read_name(&here, source, "ring");

		if (ring == NULL)
			return -EINVAL;
		to->source_ring = ring_index(plan, ring);
		return 0;
	}
	if (cv_plan_read_port_name(plan, &here, source, "port", &port) != 0 ||
		cv_json_integer(&here, source, "queue", 0, UINT16_MAX, 0, &queue) != 0)
		return -EINVAL;
	if (port != chain->in) {
		cv_where_error(&here, "port: \"%s\" is not where chain \"%s\" comes in (\"%s\")",
			plan->port_names[port], chain->name, plan->port_names[chain->in]);
		return -EINVAL;
	}
	if (queue >= plan->port_queues[port]) {
		cv_where_error(&here, "queue: %d: port \"%s\" has %u, counted from 0", (int)queue,
			plan->port_names[port], plan->port_queues[port]);
		return -EINVAL;
	}
	to->queue = queue;
	return 0;
}

static int read_sink(struct cv_plan *plan, const struct cv_where *at, const json_t *stage,
	struct cv_plan_stage *to)
{
	static const char *const keys[] = {"port", "ring", NULL};
	const struct cv_plan_chain *chain = &plan->chains[to->chain];
	struct cv_where here = cv_where_key(at, "sink");
	const json_t *sink = cv_json_object(at, stage, "sink");
	unsigned port;

	if (sink == NULL || cv_json_keys(&here, sink, keys) != 0)
		return -EINVAL;
	to->sink_ring = -1;
	if (json_object_get(sink, "ring") != NULL) {
		const char *ring = cv_plan_read_name(&here, sink, "ring");

		if (ring == NULL)
			return -EINVAL;
		to->sink_ring = ring_index(plan, ring);
		return 0;
	}
	if (cv_plan_read_port_name(plan, &here, sink, "port", &port) != 0)
		return -EINVAL;
	if (port != chain->out) {
		cv_where_error(&here, "port: \"%s\" is not where chain \"%s\" goes out (\"%s\")",
			plan->port_names[port], chain->name, plan->port_names[chain->out]);
		return -EINVAL;
	}
	return 0;
}

static int read_stage(struct cv_plan *plan, const struct cv_where *at, const json_t *stage,
	struct cv_plan_stage *to)
{
	static const char *const keys[] = {"worker", "chain", "source", "path", "sink", NULL};
	const char *chain;
	const json_t *path;
	json_t *item;
	int64_t worker;
	int index;
	size_t i;

	if (cv_json_keys(at, stage, keys) != 0 ||
		cv_json_integer(at, stage, "worker", 0, plan->workers_count - 1, -1, &worker) != 0)
		return -EINVAL;
	to->worker = worker;
	chain = cv_json_string(at, stage, "chain", NULL);
	if (chain == NULL)
		return -EINVAL;
	index = cv_plan_find_chain(plan, chain);
	if (index < 0) {
		cv_where_error(at, "chain: no chain is called \"%.64s\"", chain);
		return -EINVAL;
	}
	to->chain = index;
	if (read_source(plan, at, stage, to) != 0 || read_sink(plan, at, stage, to) != 0)
		return -EINVAL;
	path = cv_json_array(at, stage, "path", 0, CV_PATH_MAX);
	if (path == NULL)
		return -EINVAL;
	json_array_foreach (path, i, item) {
		struct cv_where here = cv_where_item(at, "path", i);

		if (!json_is_string(item)) {
			cv_where_error(&here, "give a function's name");
			return -EINVAL;
		}
		index = cv_plan_find_function(plan, json_string_value(item));
		if (index < 0) {
			cv_where_error(
				&here, "no function is called \"%.64s\"", json_string_value(item));
			return -EINVAL;
		}
		to->path[to->path_length++] = index;
	}
	return 0;
}

int cv_plan_read_stages(struct cv_plan *plan, const struct cv_where *top)
{
	json_t *stage;
	size_t i;
	const json_t *stages = cv_json_array(top, plan->json, "stages", 1, STAGES_MAX);

	if (stages == NULL)
		return -EINVAL;
	plan->stages = calloc(json_array_size(stages), sizeof(*plan->stages));
	plan->rings = calloc(2 * json_array_size(stages), sizeof(*plan->rings));
	if (plan->stages == NULL || plan->rings == NULL)
		return -ENOMEM;
	json_array_foreach (stages, i, stage) {
		struct cv_where at = cv_where_item(top, "stages", i);

		if (read_stage(plan, &at, stage, &plan->stages[i]) != 0)
			return -EINVAL;
		plan->stages_count++;
	}
	return cv_plan_check_stages(plan, top);
}
