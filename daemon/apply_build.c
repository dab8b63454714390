// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/apply_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "daemon/node_workers.h"
#include "daemon/plan_check.h"
#include "daemon/plan_names.h"
#include "daemon/plan_next.h"
#include "daemon/scale.h"

static const struct cv_plan_function *function_of(const struct cv_node *node, unsigned function)
{
	return &node->plan->functions[function];
}

// The running function of the same name and type, or -1.
static int find_running(const struct cv_apply *apply, unsigned function)
{
	const struct cv_plan_function *of = function_of(apply->next, function);
	const int running = cv_plan_find_function(apply->node->plan, of->name);

	return running >= 0 && function_of(apply->node, (unsigned)running)->nf == of->nf ? running
											 : -1;
}

// Whether an instance knows the same of the node: who runs it, and its outputs.
static bool has_same_env(const struct cv_apply *apply, unsigned function, unsigned running)
{
	const struct cv_nf_env a = cv_node_function_env(apply->next, function),
			       b = cv_node_function_env(apply->node, running);

	if (a.runners != b.runners || a.outputs_count != b.outputs_count)
		return false;
	for (unsigned i = 0; i < a.outputs_count; i++)
		if (strcmp(a.outputs[i], b.outputs[i]) != 0)
			return false;
	return true;
}

static int refuse_runners(const struct cv_apply *apply, unsigned function, struct cv_error *error)
{
	const struct cv_plan_function *of = function_of(apply->next, function);

	if (of->nf->flow == NULL ||
		cv_node_handoff_workers(apply->next->plan, function) ==
			cv_node_handoff_workers(apply->node->plan, (unsigned)apply->from[function]))
		return 0;
	cv_error_set(error,
		"%s: would run on other workers; what remembers flows stays on its own: start the "
		"node anew",
		of->name);
	return -EINVAL;
}

// running: the instance that it takes the place of, or NULL.
static int make_function(struct cv_apply *apply, unsigned function, void *running,
	const struct cv_files *files, struct cv_error *error)
{
	const struct cv_plan_function *of = function_of(apply->next, function);
	struct cv_nf_env env = cv_node_function_env(apply->next, function);
	json_t *made_of = cv_function_config_made_of(of->nf, of->config, files);

	env.running = running;
	apply->next->functions[function] =
		made_of == NULL ? NULL : cv_nf_create(of->nf, made_of, &env, error);
	apply->kept[function] = false;
	json_decref(made_of);
	return apply->next->functions[function] != NULL ? 0 : -EINVAL;
}

static void add_keys(struct cv_apply *apply, const char *name, json_t *keys)
{
	const json_t *key;
	size_t i;

	json_array_foreach (keys, i, key)
		cv_plan_add_difference(
			apply->differences, "function", name, "changed", json_string_value(key));
}

// The flows of a function have no other windows than they had.
static int check_windows(const struct cv_apply *apply, unsigned function, struct cv_error *error)
{
	const struct cv_plan_function *of = function_of(apply->next, function);
	const void *running = apply->node->functions[apply->from[function]];
	const void *instance = apply->next->functions[function];

	if (!cv_flow_is_stateful(of->nf, running) || !cv_flow_is_stateful(of->nf, instance) ||
		cv_flow_windows_of(of->nf, instance) == cv_flow_windows_of(of->nf, running))
		return 0;
	cv_error_set(error,
		"%s: other windows of TCP would be checked; that cannot change while packets "
		"flow: start the node anew",
		of->name);
	return -EINVAL;
}

// A function that is in both: the running instance, if it can be the same.
static int take_function(struct cv_apply *apply, unsigned function, const struct cv_files *files,
	struct cv_error *error)
{
	const unsigned running = (unsigned)apply->from[function];
	struct cv_node *node = apply->node, *next = apply->next;
	json_t *keys =
		cv_function_config_differences(&node->configs[running], &next->configs[function]);
	const bool same = json_array_size(keys) == 0;

	add_keys(apply, function_of(next, function)->name, keys);
	json_decref(keys);
	if (refuse_runners(apply, function, error) != 0)
		return -EINVAL;
	if (!same || !has_same_env(apply, function, running)) {
		const int rc =
			make_function(apply, function, node->functions[running], files, error);

		return rc != 0 ? rc : check_windows(apply, function, error);
	}
	next->functions[function] = node->functions[running];
	apply->kept[function] = true;
	return 0;
}

static int make_functions(
	struct cv_apply *apply, const struct cv_files *files, struct cv_error *error)
{
	struct cv_node *next = apply->next;
	const unsigned count = next->plan->functions_count;
	int rc = 0;

	next->functions = calloc(count + 1, sizeof(*next->functions));
	next->configs = calloc(count + 1, sizeof(*next->configs));
	next->function_counters = calloc(count + 1, sizeof(*next->function_counters));
	if (next->functions == NULL || next->configs == NULL || next->function_counters == NULL)
		return -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < count; i++) {
		const struct cv_plan_function *of = function_of(next, i);

		apply->from[i] = find_running(apply, i);
		cv_function_config_set(&next->configs[i], of->nf, of->config, files);
		rc = apply->from[i] >= 0 ? take_function(apply, i, files, error)
					 : make_function(apply, i, NULL, files, error);
		next->function_counters[i] =
			apply->from[i] >= 0
				? apply->node->function_counters[apply->from[i]]
				: rte_calloc("function_counters", next->plan->workers_count,
					  sizeof(**next->function_counters), RTE_CACHE_LINE_SIZE);
		if (next->function_counters[i] == NULL)
			rc = -ENOMEM;
	}
	return rc;
}

// Whether a running zone goes on.
static bool is_adopted(const struct cv_apply *apply, const struct cv_node_zone *running)
{
	for (unsigned i = 0; i < apply->next->zones_count; i++)
		if (apply->next->zones[i].adopted && apply->next->zones[i].zone == running->zone)
			return true;
	return false;
}

static int next_index(const struct cv_apply *apply, unsigned running)
{
	for (unsigned i = 0; i < apply->next->plan->functions_count; i++)
		if (apply->from[i] == (int)running)
			return (int)i;
	return -1;
}

// Functions whose flows end: all that is left of them is forgotten, for it refers to the flows.
static int forget(struct cv_apply *apply, const struct cv_node_zone *zone,
	const struct cv_apply_request *request, struct cv_error *error)
{
	for (unsigned i = 0; i < zone->count; i++) {
		const int function = next_index(apply, zone->functions[i]);

		if (function < 0)
			continue;
		if (!request->forget_flows) {
			cv_error_set(error,
				"%s: would share its flows with other functions than now, and "
				"forget them: allow that (--forget-flows), or start the node anew",
				function_of(apply->next, (unsigned)function)->name);
			return -EINVAL;
		}
		if (!apply->kept[function])
			cv_nf_destroy(function_of(apply->next, (unsigned)function)->nf,
				apply->next->functions[function]);
		apply->next->functions[function] = NULL;
		if (make_function(apply, (unsigned)function, NULL, request->files, error) != 0)
			return -EINVAL;
		// Zones that go on must not meet it.
		for (unsigned z = 0; z < apply->next->zones_count; z++)
			for (unsigned j = 0; j < apply->next->zones[z].count; j++)
				if (apply->next->zones[z].functions[j] == (unsigned)function)
					apply->next->zones[z].adopted = false;
	}
	return 0;
}

static int check_zones(
	struct cv_apply *apply, const struct cv_apply_request *request, struct cv_error *error)
{
	const struct cv_node *node = apply->node;
	bool *done = calloc(node->zones_count + 1, sizeof(*done));
	int rc = done == NULL ? -ENOMEM : 0;
	bool again = true;

	// Each zone that ends may be the end of others.
	while (rc == 0 && again) {
		again = false;
		for (unsigned i = 0; rc == 0 && i < node->zones_count; i++) {
			if (done[i] || is_adopted(apply, &node->zones[i]))
				continue;
			done[i] = again = true;
			rc = forget(apply, &node->zones[i], request, error);
		}
	}
	free(done);
	for (unsigned i = 0; i < apply->next->zones_count; i++)
		if (!apply->next->zones[i].adopted) {
			apply->next->zones[i].zone = NULL;
			apply->next->zones[i].groups_count = 0;
		}
	return rc;
}

// Who polls a queue goes on polling it, or nobody does.
static int check_queues(const struct cv_apply *apply, struct cv_error *error)
{
	const struct cv_plan *a = apply->node->plan, *b = apply->next->plan;

	for (unsigned i = 0; i < a->stages_count; i++)
		for (unsigned j = 0; j < b->stages_count; j++) {
			const struct cv_plan_stage *x = &a->stages[i], *y = &b->stages[j];

			if (!cv_plan_polls_port(a, x) || !cv_plan_polls_port(b, y) ||
				a->chains[x->chain].in != b->chains[y->chain].in ||
				x->queue != y->queue || x->worker == y->worker)
				continue;
			cv_error_set(error,
				"plan: stages: queue %u of port \"%s\" would go from worker %u to "
				"worker %u; workers keep their queues: start the node anew",
				x->queue, a->port_names[a->chains[x->chain].in], x->worker,
				y->worker);
			return -EINVAL;
		}
	return 0;
}

static bool is_same_key(const struct cv_apply *apply, const char *key)
{
	return json_equal(json_object_get(apply->node->plan->json, key),
		       json_object_get(apply->next->plan->json, key)) == 1;
}

// What packets are handed over by was chosen by what functions need.
static int check_answers(const struct cv_apply *apply, struct cv_error *error)
{
	const struct cv_node *node = apply->node, *next = apply->next;

	for (unsigned i = 0; i < next->plan->functions_count; i++) {
		const struct cv_nf *nf = function_of(next, i)->nf;

		if (apply->from[i] < 0 ||
			cv_node_handoff_answers(nf, next->functions[i]) ==
				cv_node_handoff_answers(nf, node->functions[apply->from[i]]))
			continue;
		cv_error_set(error,
			"%s: its packets would go to other workers; that cannot change while "
			"packets flow: start the node anew",
			function_of(next, i)->name);
		return -EINVAL;
	}
	return 0;
}

// Rings have packets in them, which know chains by their numbers.
static int check_rings(const struct cv_apply *apply, struct cv_error *error)
{
	const struct cv_node *node = apply->node, *next = apply->next;

	if (node->handoff.rings_count > 0 && check_answers(apply, error) != 0)
		return -EINVAL;

	if (apply->same_stages ||
		(node->plan->rings_count == 0 && next->plan->rings_count == 0 &&
			node->handoff.rings_count == 0 && next->handoff.rings_count == 0))
		return 0;
	cv_error_set(error,
		"plan: chains: with pipelines, or chains that several workers share, only "
		"parameters of functions and next hops change while packets flow: start the node "
		"anew");
	return -EINVAL;
}

// Rings, and what packets are handed over with.
static int make_rings(struct cv_apply *apply, struct cv_error *error)
{
	struct cv_node *node = apply->node, *next = apply->next;

	if (!apply->same_stages)
		return cv_node_handoff_make(next, error);
	free(next->handoff.workers);
	next->handoff = node->handoff;
	next->rings = node->rings;
	return 0;
}

static int make_workers(struct cv_apply *apply)
{
	struct cv_node *next = apply->next;
	int rc;

	next->workers = calloc(next->plan->workers_count, sizeof(*next->workers));
	if (next->workers == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < next->plan->workers_count; i++)
		next->workers[i].paths.nf.index = i;
	rc = cv_node_make_paths(next);
	apply->node->all_paths = next->all_paths;
	return rc;
}

static int make_next_hops(struct cv_apply *apply, struct cv_error *error)
{
	if (apply->node->next_hop_set == NULL)
		return 0;
	apply->next_hops =
		cv_next_hop_set_prepare(apply->node->next_hop_set, apply->next->plan, error);
	return apply->next_hops != NULL ? 0 : -EINVAL;
}

// What is new starts now, and may still be refused.
static int start_functions(const struct cv_apply *apply, struct cv_error *error)
{
	for (unsigned i = 0; i < apply->next->plan->functions_count; i++) {
		const struct cv_nf *nf = function_of(apply->next, i)->nf;
		const struct cv_nf_env env = cv_node_function_env(apply->next, i);

		if (apply->from[i] >= 0)
			continue;
		cv_node_start_function(apply->next, i, apply->next->functions[i], NULL);
		if (nf->attach != NULL && nf->attach(apply->next->functions[i], &env, error) != 0)
			return -EIO;
	}
	return 0;
}

int cv_apply_build(struct cv_apply *apply, struct cv_plan *plan,
	const struct cv_apply_request *request, struct cv_error *error)
{
	struct cv_node *node = apply->node, *next = calloc(1, sizeof(*next));
	int rc;

	if (next == NULL) {
		cv_plan_free(plan);
		return -ENOMEM;
	}
	apply->next = next;
	*next = (struct cv_node){.plan = plan,
		.pool = node->pool,
		.ports = node->ports,
		.all_paths = node->all_paths,
		.next_hop_set = node->next_hop_set,
		.convoy_rx = node->convoy_rx,
		.rx_frames = node->rx_frames};
	apply->same_stages = is_same_key(apply, "stages") && is_same_key(apply, "chains");
	if ((rc = make_functions(apply, request->files, error)) != 0 ||
		(rc = cv_node_check_claims(next, next->functions, error)) != 0 ||
		(rc = cv_scale_check(next, error)) != 0 ||
		(rc = cv_node_flows_find(next, error)) != 0 ||
		(rc = cv_node_handoff_find(next, error)) != 0 ||
		(rc = check_queues(apply, error)) != 0 || (rc = check_rings(apply, error)) != 0)
		return rc;
	cv_node_flows_adopt(next, node, apply->from);
	if ((rc = check_zones(apply, request, error)) != 0 ||
		(rc = make_rings(apply, error)) != 0 ||
		(rc = cv_node_flows_make(next, error)) != 0 || (rc = make_workers(apply)) != 0 ||
		(rc = make_next_hops(apply, error)) != 0)
		return rc;
	return start_functions(apply, error);
}

void cv_apply_free_next(struct cv_apply *apply)
{
	struct cv_node *next = apply->next;

	cv_node_free_paths(next);
	cv_node_flows_free(next);
	if (next->handoff.finders != apply->node->handoff.finders || next->handoff.finders == NULL)
		cv_node_handoff_free(next);
	for (unsigned i = 0; next->functions != NULL && i < next->plan->functions_count; i++)
		if (next->functions[i] != NULL)
			cv_nf_destroy(function_of(next, i)->nf, next->functions[i]);
	for (unsigned i = 0; next->configs != NULL && i < next->plan->functions_count; i++)
		cv_function_config_clear(&next->configs[i]);
	for (unsigned i = 0; next->function_counters != NULL && i < next->plan->functions_count;
		i++)
		rte_free(next->function_counters[i]);
	free(next->functions);
	free(next->configs);
	free(next->function_counters);
	free(next->workers);
	cv_plan_free((struct cv_plan *)(uintptr_t)next->plan);
	free(next);
}
