// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "daemon/node_workers.h"

// A path of the node's, by what it is: whatever the plan is, its address stays, and packets that
// functions hold may refer to it. One that the plan no longer has is empty.
struct cv_node_path {
	struct cv_node_path *next;
	char name[96];
	struct cv_path path;
};

static struct cv_path *find_path(struct cv_node *node, const struct cv_plan_stage *stage)
{
	struct cv_node_path *path;
	char name[sizeof(path->name)];

	snprintf(name, sizeof(name), "%s %u %d %d %u", node->plan->chains[stage->chain].name,
		stage->worker, stage->source_ring, stage->handed, stage->queue);
	for (path = node->all_paths; path != NULL; path = path->next)
		if (strcmp(path->name, name) == 0)
			return &path->path;
	path = calloc(1, sizeof(*path));
	if (path == NULL)
		return NULL;
	snprintf(path->name, sizeof(path->name), "%s", name);
	path->next = node->all_paths;
	node->all_paths = path;
	return &path->path;
}

// The source of a worker that a stage belongs to; a new one at the end where there is none yet.
static struct cv_source *source_of(
	struct cv_node *node, struct cv_worker *worker, const struct cv_plan_stage *stage)
{
	uint8_t in = node->plan->chains[stage->chain].in;
	struct cv_source *source;

	for (unsigned i = 0; i < worker->sources_count; i++) {
		source = &worker->sources[i];
		if (stage->source_ring < 0 && source->port != NULL && source->in == in &&
			source->queue == stage->queue)
			return source;
	}
	source = &worker->sources[worker->sources_count++];
	source->in = in;
	cv_classifier_init(&source->classifier);
	if (stage->source_ring >= 0) {
		source->ring = node->rings[stage->source_ring];
	} else {
		source->port = node->ports[in];
		source->queue = stage->queue;
		source->moves = stage->moves;
		source->spare = stage->spare;
		if (node->plan->port_convoys[in].carries)
			source->convoys = &node->convoy_rx[in * node->plan->workers_count +
							   worker->paths.nf.index];
	}
	return source;
}

// From now on convoys are received with the source's own classifier.
static int add_nfi(struct cv_source *source, uint16_t nfi, uint8_t class)
{
	if (source->by_nfi == NULL) {
		source->by_nfi = malloc(sizeof(*source->by_nfi));
		if (source->by_nfi == NULL)
			return -ENOMEM;
		*source->by_nfi = *source->convoys;
		source->by_nfi->by_nfi = &source->classifier;
		source->convoys = source->by_nfi;
	}
	return cv_classifier_add_nfi(&source->classifier, nfi, class);
}

static int add_class(struct cv_source *source, const struct cv_plan_chain *chain, uint8_t class)
{
	// A ring's packets all have the chain that it is of.
	if (chain->nfi >= 0)
		return source->ring != NULL ? 0 : add_nfi(source, (uint16_t)chain->nfi, class);
	switch (chain->match.kind) {
	case CV_SCID_VLAN:
		return cv_classifier_add_vlan(&source->classifier, chain->match.id, class);
	case CV_SCID_VNI:
		return cv_classifier_add_vni(&source->classifier, chain->match.id, class);
	case CV_SCID_NONE:
	default:
		return cv_classifier_add_rest(&source->classifier, class);
	}
}

// Whatever has a timer is called once in each poll iteration of a worker that runs it.
static int add_tick(struct cv_worker *worker, const struct cv_path *path,
	const struct cv_step *step, void (*tick)(void *instance, struct cv_nf_worker *worker))
{
	struct cv_tick *ticks;

	for (unsigned i = 0; i < worker->ticks_count; i++)
		if (worker->ticks[i].step->instance == step->instance)
			return 0;
	ticks = realloc(worker->ticks, (worker->ticks_count + 1) * sizeof(*ticks));
	if (ticks == NULL)
		return -ENOMEM;
	worker->ticks = ticks;
	ticks[worker->ticks_count++] = (struct cv_tick){.tick = tick, .path = path, .step = step};
	return 0;
}

// The path of a chain that outputs lead to, as a worker runs it.
static const struct cv_path *output_path(
	const struct cv_node *node, unsigned chain, unsigned worker)
{
	const struct cv_plan_stage *stages = node->plan->stages;
	unsigned i = 0;

	while (stages[i].chain != chain || stages[i].worker != worker)
		i++;
	return node->paths[i];
}

// Sets a step's outputs: those of count functions, one behind the other. 0 or -ENOMEM.
static int set_outputs(const struct cv_node *node, const struct cv_plan_stage *stage,
	const unsigned *functions, unsigned count, struct cv_step *step)
{
	const struct cv_plan_function *all = node->plan->functions;
	const struct cv_path **outputs;
	unsigned outputs_count = 0;

	for (unsigned i = 0; i < count; i++)
		outputs_count += all[functions[i]].outputs_count;
	if (outputs_count == 0)
		return 0;
	step->outputs = outputs = calloc(outputs_count, sizeof(*outputs));
	if (outputs == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < all[functions[i]].outputs_count; j++)
			*outputs++ =
				output_path(node, all[functions[i]].output_to[j], stage->worker);
	return 0;
}

// The step of one function that is not stateful. path: what to is to be.
static int make_step(struct cv_node *node, const struct cv_plan_stage *stage, unsigned at,
	struct cv_path *path, const struct cv_path *to)
{
	const struct cv_plan *plan = node->plan;
	const unsigned function = stage->path[at];
	const struct cv_nf *nf = plan->functions[function].nf;
	struct cv_step *step = &path->steps[path->length];

	*step = (struct cv_step){
		.process = nf->process,
		.instance = node->functions[function],
		.counters = &node->function_counters[function][stage->worker],
		.explain = nf->explain,
	};
	if (set_outputs(node, stage, &stage->path[at], 1, step) != 0)
		return -ENOMEM;
	return nf->tick == NULL ? 0 : add_tick(&node->workers[stage->worker], to, step, nf->tick);
}

// Consecutive stateful functions, as one step.
static int make_group(struct cv_node *node, const struct cv_plan_stage *stage, unsigned at,
	unsigned count, struct cv_path *path, const struct cv_path *to)
{
	struct cv_step *step = &path->steps[path->length];
	const int rc = cv_node_flows_step(node, stage, at, count, step);

	if (rc < 0 || set_outputs(node, stage, &stage->path[at], count, step) != 0)
		return -ENOMEM;
	return rc == 0 ? 0 : add_tick(&node->workers[stage->worker], to, step, cv_flow_tick);
}

// A stage's functions as its worker runs them: what a path is to be. 0 or -ENOMEM.
static int make_path(struct cv_node *node, const struct cv_plan_stage *stage, struct cv_path *path,
	const struct cv_path *to)
{
	path->out = node->plan->chains[stage->chain].out;
	path->sink = stage->sink_ring >= 0 ? node->rings[stage->sink_ring] : NULL;
	path->handoff = cv_node_handoff_of(node, (unsigned)(stage - node->plan->stages));
	path->steps = calloc(stage->path_length + 1, sizeof(*path->steps));
	if (path->steps == NULL)
		return -ENOMEM;
	for (unsigned at = 0; at < stage->path_length; path->length++) {
		const unsigned group = cv_node_flows_group(node, stage, at);
		const int rc = group == 0 ? make_step(node, stage, at, path, to)
					  : make_group(node, stage, at, group, path, to);

		if (rc != 0)
			return rc;
		at += group == 0 ? 1 : group;
	}
	return 0;
}

// Whether packets that came by a port become longer on a chain or on those that its outputs lead to. seen:
// chains that were asked.
static bool grows_on(const struct cv_node *node, unsigned chain, unsigned in, bool *seen)
{
	const struct cv_plan *plan = node->plan;
	bool grows = false;

	if (seen[chain])
		return false;
	seen[chain] = true;
	for (unsigned i = 0; i < plan->stages_count; i++)
		for (unsigned at = 0;
			plan->stages[i].chain == chain && at < plan->stages[i].path_length; at++) {
			const unsigned index = plan->stages[i].path[at];
			const struct cv_plan_function *function = &plan->functions[index];

			grows |= function->nf->grows != NULL &&
				 function->nf->grows(node->functions[index], in);
			for (unsigned j = 0; j < function->outputs_count; j++)
				grows |= grows_on(node, function->output_to[j], in, seen);
		}
	return grows;
}

// A path begins at its worker's source, at those of other workers' handoff, or at outputs.
static int add_to_source(
	struct cv_node *node, const struct cv_plan_stage *stage, const struct cv_path *path)
{
	const struct cv_plan_chain *chain = &node->plan->chains[stage->chain];
	struct cv_source *source;
	const struct cv_path **paths;
	bool seen[CV_CHAINS_MAX] = {false};
	int rc;

	if (chain->from_outputs)
		return 0;
	if (stage->handed)
		return cv_node_handoff_add(node, stage, path);
	source = source_of(node, &node->workers[stage->worker], stage);
	paths = realloc(source->paths, (source->paths_count + 1) * sizeof(*source->paths));
	if (paths == NULL)
		return -ENOMEM;
	source->paths = paths;
	paths[source->paths_count] = path;
	rc = add_class(source, chain, (uint8_t)source->paths_count);
	source->paths_count++;
	// A chain that takes every packet of its port needs no classifying; nor does a ring.
	source->one_path =
		source->paths_count == 1 &&
		(source->ring != NULL || (chain->match.kind == CV_SCID_NONE && chain->nfi < 0));
	source->by_buffer |= node->ports[path->out]->sends_buffers ||
			     grows_on(node, stage->chain, source->in, seen);
	// Chains that share a port must not hold each other up, unless the port can wait for ever.
	source->waits =
		source->paths_count == 1 || (source->port != NULL && source->port->ended != NULL);
	return rc;
}

static int make_tx(struct cv_node *node, struct cv_worker *worker)
{
	struct cv_tx *tx = rte_zmalloc("tx", sizeof(*tx), RTE_CACHE_LINE_SIZE);

	worker->tx = tx;
	if (tx == NULL)
		return -ENOMEM;
	tx->ports = node->ports;
	tx->ports_count = node->plan->ports_count;
	tx->tx_queue = (uint16_t)worker->paths.nf.index;
	tx->pool = node->pool;
	tx->counters = worker->paths.ports_counters;
	for (unsigned i = 0; i < node->plan->ports_count; i++)
		if (node->plan->port_convoys[i].carries)
			tx->convoy_ports[i] =
				rte_cpu_to_be_16(node->plan->port_convoys[i].udp_port);
	if (node->next_hop_set == NULL)
		return 0;
	tx->next_hop_rcu = &node->next_hop_set->table;
	tx->next_hop_counters = rte_calloc("next_hop_counters", CV_NEXT_HOPS_MAX,
		sizeof(*tx->next_hop_counters), RTE_CACHE_LINE_SIZE);
	return tx->next_hop_counters != NULL ? 0 : -ENOMEM;
}

// What functions count.
static int make_counters(struct cv_node *node)
{
	const struct cv_plan *plan = node->plan;

	node->function_counters =
		calloc(plan->functions_count + 1, sizeof(*node->function_counters));
	if (node->function_counters == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->functions_count; i++) {
		node->function_counters[i] = rte_calloc("function_counters", plan->workers_count,
			sizeof(**node->function_counters), RTE_CACHE_LINE_SIZE);
		if (node->function_counters[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static unsigned spare_sources(const struct cv_worker *worker)
{
	unsigned count = 0;

	for (unsigned i = 0; i < worker->sources_count; i++)
		count += worker->sources[i].spare;
	return count;
}

int cv_node_make_paths(struct cv_node *node)
{
	const struct cv_plan *plan = node->plan;

	node->paths = calloc(plan->stages_count, sizeof(*node->paths));
	node->contents = calloc(plan->stages_count, sizeof(*node->contents));
	if (node->paths == NULL || node->contents == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->workers_count; i++) {
		struct cv_worker *worker = &node->workers[i];

		worker->sources =
			calloc(plan->stages_count + plan->workers_count, sizeof(*worker->sources));
		if (worker->sources == NULL)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < plan->stages_count; i++) {
		node->paths[i] = find_path(node, &plan->stages[i]);
		if (node->paths[i] == NULL)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];
		int rc = make_path(node, stage, &node->contents[i], node->paths[i]);

		if (rc == 0)
			rc = add_to_source(node, stage, node->paths[i]);
		if (rc != 0)
			return rc;
	}
	// Spare stages are the last of the plan, so their sources are of each worker.
	for (unsigned i = 0; i < plan->workers_count; i++) {
		node->workers[i].spare_count = spare_sources(&node->workers[i]);
		node->workers[i].sources_count -= node->workers[i].spare_count;
	}
	return 0;
}

void cv_node_set_paths(struct cv_node *node, unsigned worker)
{
	for (unsigned i = 0; i < node->plan->stages_count; i++)
		if (node->plan->stages[i].worker == worker)
			*node->paths[i] = node->contents[i];
}

void cv_node_empty_paths(struct cv_node *node, unsigned worker)
{
	for (unsigned i = 0; i < node->plan->stages_count; i++)
		if (node->plan->stages[i].worker == worker)
			*node->paths[i] = (struct cv_path){.out = node->paths[i]->out};
}

int cv_node_make_workers(struct cv_node *node)
{
	const struct cv_plan *plan = node->plan;
	int rc;

	node->workers = rte_calloc(
		"workers", plan->workers_count, sizeof(*node->workers), RTE_CACHE_LINE_SIZE);
	if (node->workers == NULL || make_counters(node) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->workers_count; i++) {
		struct cv_worker *worker = &node->workers[i];

		worker->paths.nf.index = i;
		worker->own_idle = (enum cv_worker_idle)plan->workers[i].idle;
		worker->idle = worker->own_idle;
		worker->paths.pool = node->pool;
		worker->paths.leave = cv_worker_leave;
		worker->phase = &node->phase;
		worker->paths.ports_counters = rte_calloc("port_counters", plan->ports_count,
			sizeof(*worker->paths.ports_counters), RTE_CACHE_LINE_SIZE);
		if (worker->paths.ports_counters == NULL || make_tx(node, worker) != 0)
			return -ENOMEM;
	}
	rc = cv_node_make_paths(node);
	for (unsigned i = 0; rc == 0 && i < plan->workers_count; i++) {
		cv_node_set_paths(node, i);
		cv_worker_sources_changed(&node->workers[i]);
	}
	return rc;
}

static void free_sources(struct cv_worker *worker)
{
	for (unsigned i = 0; i < worker->sources_count + worker->spare_count; i++) {
		struct cv_source *source = &worker->sources[i];

		free(source->paths);
		cv_classifier_free(&source->classifier);
		free(source->by_nfi);
	}
	free(worker->sources);
	free(worker->ticks);
}

void cv_node_free_paths(struct cv_node *node)
{
	for (unsigned i = 0; node->workers != NULL && i < node->plan->workers_count; i++)
		free_sources(&node->workers[i]);
	for (unsigned i = 0; node->contents != NULL && i < node->plan->stages_count; i++) {
		struct cv_path *path = &node->contents[i];

		for (unsigned j = 0; j < path->length; j++)
			free((void *)(uintptr_t)path->steps[j].outputs);
		free(path->steps);
	}
	free(node->contents);
	free(node->paths);
}

static void free_worker(struct cv_worker *worker)
{
	rte_free(worker->paths.ports_counters);
	if (worker->tx != NULL)
		rte_free(worker->tx->next_hop_counters);
	rte_free(worker->tx);
}

void cv_node_free_workers(struct cv_node *node)
{
	cv_node_free_paths(node);
	for (unsigned i = 0; node->workers != NULL && i < node->plan->workers_count; i++)
		free_worker(&node->workers[i]);
	for (struct cv_node_path *next, *path = node->all_paths; path != NULL; path = next) {
		next = path->next;
		free(path);
	}
	for (unsigned i = 0; node->function_counters != NULL && i < node->plan->functions_count;
		i++)
		rte_free(node->function_counters[i]);
	free(node->function_counters);
	rte_free(node->workers);
}
