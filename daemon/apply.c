// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/apply_build.h"
#include "daemon/errands.h"
#include "daemon/node_workers.h"
#include "daemon/plan_next.h"
#include "daemon/scale.h"
#include "daemon/why.h"

struct cv_apply *cv_apply_begin(
	struct cv_node *node, const struct cv_apply_request *request, struct cv_error *error)
{
	struct cv_plan *plan = cv_plan_read_next(node->plan, request->plan, error);
	struct cv_apply *apply = plan == NULL ? NULL : calloc(1, sizeof(*apply));

	if (apply == NULL) {
		cv_plan_free(plan);
		return NULL;
	}
	apply->node = node;
	apply->differences = cv_plan_differences(node->plan->json, plan->json);
	if (cv_apply_build(apply, plan, request, error) == 0)
		return apply;
	cv_error_set(error, "out of memory"); // unless an error says more
	cv_files_name(request->files, error);
	cv_apply_end(apply);
	return NULL;
}

const json_t *cv_apply_differences(const struct cv_apply *apply)
{
	return apply->differences;
}

// One worker's part.
struct part {
	struct cv_apply *apply;
	unsigned worker;
};

#define EXCHANGE(a, b)                    \
	do {                              \
		__typeof__(a) kept = (a); \
		(a) = (b);                \
		(b) = kept;               \
	} while (0)

// What packets are handed over by goes over to the new instance.
static void set_home(struct cv_apply *apply, struct cv_flow_home *home)
{
	const struct cv_node *next = apply->next;
	const void *instance = home == NULL ? NULL : cv_flow_home_instance(home);

	for (unsigned i = 0; instance != NULL && i < next->plan->functions_count; i++)
		if (apply->from[i] >= 0 && apply->node->functions[apply->from[i]] == instance)
			cv_flow_home_replace(home, next->functions[i]);
}

// By a worker, between two poll iterations.
static void go_over(void *argument)
{
	const struct part *part = argument;
	struct cv_node *node = part->apply->node, *next = part->apply->next;
	struct cv_worker *worker = &node->workers[part->worker], *to = &next->workers[part->worker];

	cv_node_empty_paths(node, part->worker);
	cv_node_set_paths(next, part->worker);
	cv_node_flows_set(next, part->worker);
	for (unsigned i = 0; part->apply->same_stages && i < node->plan->stages_count; i++)
		if (node->plan->stages[i].worker == part->worker)
			set_home(part->apply, node->handoff.finders[i]);
	cv_node_handoff_read(next, part->worker);
	EXCHANGE(worker->sources, to->sources);
	EXCHANGE(worker->sources_count, to->sources_count);
	EXCHANGE(worker->spare_count, to->spare_count);
	cv_worker_sources_changed(worker);
	EXCHANGE(worker->ticks, to->ticks);
	EXCHANGE(worker->ticks_count, to->ticks_count);
}

// Counters are by index: another next hop begins anew. One at an index that was free has nothing to
// clear, and workers may have counted for it by now.
static void clear_next_hop_counters(struct cv_apply *apply)
{
	const struct cv_next_hop_set *now = apply->node->next_hop_set, *before = apply->next_hops;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		for (unsigned w = 0; w < apply->node->plan->workers_count; w++)
			if (before->next_hops[i].name[0] != '\0' &&
				strcmp(now->next_hops[i].name, before->next_hops[i].name) != 0)
				memset(&apply->node->workers[w].tx->next_hop_counters[i], 0,
					sizeof(struct cv_frame_counters));
}

static void start_functions(const struct cv_apply *apply)
{
	for (unsigned i = 0; i < apply->next->plan->functions_count; i++)
		if (apply->from[i] >= 0 && !apply->kept[i])
			cv_node_start_function(apply->next, i, apply->next->functions[i],
				apply->node->functions[apply->from[i]]);
}

static void all_go_over(struct cv_apply *apply)
{
	struct cv_node *node = apply->node;
	struct part parts[CV_WORKERS_MAX];
	void *arguments[CV_WORKERS_MAX];

	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		parts[i] = (struct part){.apply = apply, .worker = i};
		arguments[i] = &parts[i];
	}
	cv_errands_do(node, go_over, arguments);
}

// What a function that is no longer there counted is kept in sum. What it still held is dropped.
static void count_gone(struct cv_node *node, const struct cv_plan_function *function,
	const struct cv_nf_counters *counters)
{
	for (unsigned i = 0; i < node->plan->workers_count; i++) {
		node->gone.originated += counters[i].originated;
		node->gone.absorbed += counters[i].absorbed;
		node->gone.dropped += counters[i].held - counters[i].released;
		for (unsigned why = 0; function->nf->drops[why] != NULL; why++)
			node->gone.dropped += counters[i].drops[why];
	}
}

// After the exchange next is what was: what the node has taken over is taken out of it.
static void separate(struct cv_apply *apply)
{
	struct cv_node *node = apply->node, *before = apply->next;
	bool stays[CV_FUNCTIONS_MAX] = {false};

	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const int from = apply->from[i];

		if (from < 0)
			continue;
		stays[from] = true;
		before->function_counters[from] = NULL;
		if (apply->kept[i])
			before->functions[from] = NULL;
		else if (node->plan->functions[i].nf->inherit != NULL)
			node->plan->functions[i].nf->inherit(
				node->functions[i], before->functions[from]);
	}
	for (unsigned i = 0; i < before->plan->functions_count; i++)
		if (!stays[i])
			count_gone(node, &before->plan->functions[i], before->function_counters[i]);
	for (unsigned i = 0; i < before->zones_count; i++)
		for (unsigned j = 0; j < node->zones_count; j++)
			if (node->zones[j].zone == before->zones[i].zone)
				before->zones[i].adopted = true;
	for (unsigned i = 0; i < node->zones_count; i++)
		node->zones[i].adopted = false;
	cv_node_flows_gone(before, &node->gone);
}

void cv_apply_commit(struct cv_apply *apply)
{
	struct cv_node *node = apply->node, *next = apply->next;

	start_functions(apply);
	cv_why_pause(node);
	if (apply->next_hops != NULL) {
		cv_next_hop_set_exchange(node->next_hop_set, apply->next_hops);
		clear_next_hop_counters(apply);
	}
	cv_scale_follow(node, next);
	all_go_over(apply);
	cv_plan_take_ports(
		(struct cv_plan *)(uintptr_t)next->plan, (struct cv_plan *)(uintptr_t)node->plan);
	EXCHANGE(node->plan, next->plan);
	EXCHANGE(node->functions, next->functions);
	EXCHANGE(node->configs, next->configs);
	EXCHANGE(node->function_counters, next->function_counters);
	EXCHANGE(node->paths, next->paths);
	EXCHANGE(node->contents, next->contents);
	EXCHANGE(node->zones, next->zones);
	EXCHANGE(node->zones_count, next->zones_count);
	EXCHANGE(node->handoff, next->handoff);
	separate(apply);
	node->changes++;
	cv_why_resume(node);
	apply->committed = true;
}

// Not committed: what would have been taken over is the node's.
static void leave(struct cv_apply *apply)
{
	struct cv_node *next = apply->next;

	for (unsigned i = 0; i < next->plan->functions_count; i++) {
		if (apply->kept[i])
			next->functions[i] = NULL;
		if (apply->from[i] >= 0 && next->function_counters != NULL)
			next->function_counters[i] = NULL;
	}
}

void cv_apply_end(struct cv_apply *apply)
{
	if (apply == NULL)
		return;
	if (apply->next != NULL && !apply->committed)
		leave(apply);
	if (apply->next != NULL)
		cv_apply_free_next(apply);
	cv_next_hop_set_discard(apply->next_hops);
	json_decref(apply->differences);
	free(apply);
}
