// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/node_handoff.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "daemon/node.h"

#define RING_BUFFERS 1024 // of each ring: as that of a pipeline
#define RING_VIEWS (2 * CV_CONVOYS_VIEWS) // of one that convoys may pass
#define RING_VIEWS_PLAIN 4096 // of one that ports' shared buffers may pass
#define NONE UINT32_MAX

uint64_t cv_node_handoff_workers(const struct cv_plan *plan, unsigned function)
{
	uint64_t workers = 0;

	for (unsigned i = 0; i < plan->stages_count; i++)
		for (unsigned j = 0; j < plan->stages[i].path_length; j++)
			if (plan->stages[i].path[j] == function)
				workers |= UINT64_C(1) << plan->stages[i].worker;
	return workers;
}

enum cv_flow_answers cv_node_handoff_answers(const struct cv_nf *nf, const void *instance)
{
	if (nf->answers_meet)
		return CV_FLOW_ANSWERS_MEET;
	if (!cv_flow_is_stateful(nf, instance) || nf->flow->answers == NULL)
		return CV_FLOW_ANSWERS_APART;
	return nf->flow->answers(instance);
}

bool cv_node_handoff_remembers(const struct cv_node *node, unsigned function)
{
	const struct cv_nf *nf = node->plan->functions[function].nf;
	const void *instance = node->functions[function];

	return cv_nf_keeps(nf, instance) != NULL || nf->answers_meet ||
	       cv_flow_is_stateful(nf, instance);
}

static enum cv_flow_answers answers_of(const struct cv_node *node, unsigned function)
{
	return cv_node_handoff_answers(
		node->plan->functions[function].nf, node->functions[function]);
}

// The functions that a chain's packets may come to, outputs followed. No chain leads back to itself
// (plan_check.h).
static void reach(const struct cv_plan *plan, unsigned chain, bool *functions)
{
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		if (stage->chain != chain)
			continue;
		for (unsigned j = 0; j < stage->path_length; j++) {
			const struct cv_plan_function *function = &plan->functions[stage->path[j]];

			if (functions[stage->path[j]])
				continue; // its outputs, too
			functions[stage->path[j]] = true;
			for (unsigned o = 0; o < function->outputs_count; o++)
				reach(plan, function->output_to[o], functions);
		}
	}
}

// Who of the functions that a chain reaches rewrites, of those whose flows several workers share:
// NONE, or one function. -EINVAL with error set: there are two.
static int find_rewriter(const struct cv_node *node, unsigned chain, const bool *reached,
	unsigned *rewriter, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;

	*rewriter = NONE;
	for (unsigned f = 0; f < plan->functions_count; f++) {
		if (!reached[f] || answers_of(node, f) != CV_FLOW_ANSWERS_REWRITTEN)
			continue;
		if (*rewriter != NONE) {
			cv_error_set(error,
				"stages: chain \"%s\" is shared by several workers, and both "
				"\"%s\" "
				"and \"%s\" rewrite its packets: run it on one worker",
				plan->chains[chain].name, plan->functions[*rewriter].name,
				plan->functions[f].name);
			return -EINVAL;
		}
		*rewriter = f;
	}
	return 0;
}

// A chain from a port, with the workers that share a function of it.
static int check_workers(const struct cv_node *node, unsigned chain, unsigned function,
	uint64_t sharing, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	const uint64_t running = cv_node_handoff_workers(plan, function);

	if (running == sharing || (sharing == 0 && (running & (running - 1)) == 0))
		return 0;
	cv_error_set(error,
		"stages: function \"%s\" remembers flows and runs on several workers: give chain "
		"\"%s\" a stage on worker %u with \"source\": {\"handoff\": true}, or run them on "
		"one worker",
		plan->functions[function].name, plan->chains[chain].name,
		(unsigned)__builtin_ctzll(running ^ sharing));
	return -EINVAL;
}

// The stages of a shared chain are whole: a pipeline is not divided.
static int check_stages(const struct cv_plan *plan, unsigned chain, struct cv_error *error)
{
	for (unsigned i = 0; i < plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &plan->stages[i];

		if (stage->chain != chain || (stage->source_ring < 0 && stage->sink_ring < 0))
			continue;
		cv_error_set(error,
			"stages[%u]: chain \"%s\" is shared by several workers: a stage of it has "
			"no "
			"ring",
			i, plan->chains[chain].name);
		return -EINVAL;
	}
	return 0;
}

// Homes of a function's flows are the same, whichever chain their packets come by. rewriters: by
// function, what rewrites in the chains before; -1: none was seen.
static int check_alike(const struct cv_node *node, unsigned chain, unsigned function,
	unsigned rewriter, int64_t *rewriters, struct cv_error *error)
{
	if (rewriters[function] == -1 || rewriters[function] == rewriter) {
		rewriters[function] = rewriter;
		return 0;
	}
	cv_error_set(error,
		"stages: several workers share \"%s\", and chain \"%s\" does not pass the same nat "
		"or "
		"balancer as the others through it: run them on one worker",
		node->plan->functions[function].name, node->plan->chains[chain].name);
	return -EINVAL;
}

// A chain whose bursts go to workers in turn.
static int check_in_turn(
	const struct cv_node *node, unsigned chain, const bool *reached, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;

	for (unsigned f = 0; f < plan->functions_count; f++) {
		if (!reached[f] || !cv_node_handoff_remembers(node, f))
			continue;
		cv_error_set(error,
			"chains[%u].spread: round-robin: function \"%s\" remembers what passed "
			"on one worker: spread chain \"%s\" by rss",
			chain, plan->functions[f].name, plan->chains[chain].name);
		return -EINVAL;
	}
	return node->handoff.workers[chain] != 0 ? check_stages(plan, chain, error) : 0;
}

static int find_chain(
	struct cv_node *node, unsigned chain, int64_t *rewriters, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	bool reached[CV_FUNCTIONS_MAX] = {false};
	uint64_t sharing = 0;
	unsigned rewriter;
	bool any = false;
	int rc = 0;

	for (unsigned i = 0; i < plan->stages_count; i++)
		if (plan->stages[i].chain == chain && plan->stages[i].handed)
			sharing |= UINT64_C(1) << plan->stages[i].worker;
	node->handoff.workers[chain] = sharing;
	reach(plan, chain, reached);
	if (plan->chains[chain].in_turn)
		return check_in_turn(node, chain, reached, error);
	for (unsigned f = 0; rc == 0 && f < plan->functions_count; f++) {
		if (!reached[f] || answers_of(node, f) == CV_FLOW_ANSWERS_APART)
			continue;
		any = true;
		rc = check_workers(node, chain, f, sharing, error);
	}
	if (rc != 0 || sharing == 0)
		return rc;
	if (!any) {
		cv_error_set(error,
			"stages: chain \"%s\": no function of it remembers flows whose answers "
			"must "
			"meet: remove its stages from \"handoff\", or add \"spread\": "
			"\"round-robin\"",
			plan->chains[chain].name);
		return -EINVAL;
	}
	if (find_rewriter(node, chain, reached, &rewriter, error) != 0 ||
		check_stages(plan, chain, error) != 0)
		return -EINVAL;
	for (unsigned f = 0; rc == 0 && f < plan->functions_count; f++)
		if (reached[f] && answers_of(node, f) != CV_FLOW_ANSWERS_APART)
			rc = check_alike(node, chain, f, rewriter, rewriters, error);
	return rc;
}

// Whether a worker hands over to another: it polls a port of a chain that the other shares.
static bool hands_over(const struct cv_node *node, unsigned from, unsigned to)
{
	const struct cv_plan *plan = node->plan;

	for (unsigned i = 0; from != to && i < plan->stages_count; i++)
		if (plan->stages[i].worker == from && !plan->stages[i].handed &&
			(node->handoff.workers[plan->stages[i].chain] >> to & 1) != 0)
			return true;
	return false;
}

int cv_node_handoff_find(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	int64_t rewriters[CV_FUNCTIONS_MAX];
	int rc = 0;

	memset(rewriters, 0xff, sizeof(rewriters));
	node->handoff.workers = calloc(plan->chains_count, sizeof(*node->handoff.workers));
	if (node->handoff.workers == NULL)
		return -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < plan->chains_count; i++)
		if (!plan->chains[i].from_outputs)
			rc = find_chain(node, i, rewriters, error);
	for (unsigned from = 0; from < plan->workers_count; from++)
		for (unsigned to = 0; to < plan->workers_count; to++)
			node->handoff.rings_count += hands_over(node, from, to);
	return rc;
}

static int make_rings(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	const unsigned views = plan->convoys ? RING_VIEWS : RING_VIEWS_PLAIN;

	for (unsigned from = 0; from < plan->workers_count; from++)
		for (unsigned to = 0; to < plan->workers_count; to++) {
			struct cv_ring **ring = &node->handoff.rings[from * CV_WORKERS_MAX + to];

			if (!hands_over(node, from, to))
				continue;
			*ring = cv_ring_create("handoff", RING_BUFFERS, views, error);
			if (*ring == NULL)
				return -ENOMEM;
		}
	return 0;
}

static unsigned rewriter_of(const struct cv_node *node, unsigned chain)
{
	bool reached[CV_FUNCTIONS_MAX] = {false};
	struct cv_error none;
	unsigned rewriter;

	reach(node->plan, chain, reached);
	find_rewriter(node, chain, reached, &rewriter, &none);
	return rewriter;
}

// Workers take turns from their own on: several that deal out do not all begin with the same.
static struct cv_handoff_turn turn_of(const struct cv_flow_homes *homes, unsigned self)
{
	struct cv_handoff_turn turn = {.count = (uint8_t)homes->count, .self = (uint8_t)self};

	memcpy(turn.workers, homes->workers, sizeof(turn.workers));
	for (unsigned i = 0; i < homes->count; i++)
		if (homes->workers[i] == self)
			turn.next = (uint8_t)i;
	return turn;
}

static struct cv_flow_home *finder_of(const struct cv_node *node, const struct cv_plan_stage *stage)
{
	const struct cv_plan *plan = node->plan;
	const struct cv_node_handoff *handoff = &node->handoff;
	const unsigned rewriter = rewriter_of(node, stage->chain);

	return cv_flow_home_create(&handoff->homes[stage->chain], stage->worker,
		rewriter == NONE ? NULL : plan->functions[rewriter].nf,
		rewriter == NONE ? NULL : node->functions[rewriter], rte_get_tsc_hz(),
		&handoff->rings[stage->worker * CV_WORKERS_MAX]);
}

static int make_handoff(struct cv_node *node, unsigned index)
{
	const struct cv_plan *plan = node->plan;
	const struct cv_plan_stage *stage = &plan->stages[index];
	struct cv_node_handoff *handoff = &node->handoff;
	const bool in_turn = plan->chains[stage->chain].in_turn;

	if (in_turn)
		handoff->turns[index] = turn_of(&handoff->homes[stage->chain], stage->worker);
	else
		handoff->finders[index] = finder_of(node, stage);
	if (!in_turn && handoff->finders[index] == NULL)
		return -ENOMEM;
	handoff->paths[index] = (struct cv_handoff){
		.home = in_turn ? cv_handoff_in_turn : cv_flow_home_find,
		.homes = in_turn ? (void *)&handoff->turns[index] : handoff->finders[index],
		.to = &handoff->rings[stage->worker * CV_WORKERS_MAX],
		.self = (uint8_t)stage->worker,
		.path = (uint8_t)stage->chain,
		.waits = node->ports[plan->chains[stage->chain].in]->ended != NULL,
	};
	return 0;
}

// One secret for all: a flow's packets come by several chains.
static int make_homes(struct cv_node *node, struct cv_error *error)
{
	struct cv_flow_secret secret;
	const int rc = cv_flow_secret_make(&secret);

	if (rc != 0) {
		cv_error_set(error, "no random numbers: %s", strerror(-rc));
		return rc;
	}
	for (unsigned i = 0; i < node->plan->chains_count; i++) {
		struct cv_flow_homes *homes = &node->handoff.homes[i];

		homes->secret = secret;
		for (uint64_t left = node->handoff.workers[i]; left != 0; left &= left - 1)
			homes->workers[homes->count++] = (uint8_t)__builtin_ctzll(left);
	}
	return 0;
}

int cv_node_handoff_make(struct cv_node *node, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	struct cv_node_handoff *handoff = &node->handoff;
	int rc;

	handoff->homes = rte_calloc(
		"homes", plan->chains_count, sizeof(*handoff->homes), RTE_CACHE_LINE_SIZE);
	handoff->rings =
		calloc((size_t)plan->workers_count * CV_WORKERS_MAX, sizeof(*handoff->rings));
	handoff->finders = calloc(plan->stages_count, sizeof(*handoff->finders));
	handoff->turns = rte_calloc(
		"turns", plan->stages_count, sizeof(*handoff->turns), RTE_CACHE_LINE_SIZE);
	handoff->paths = calloc(plan->stages_count, sizeof(*handoff->paths));
	if (handoff->homes == NULL || handoff->rings == NULL || handoff->finders == NULL ||
		handoff->turns == NULL || handoff->paths == NULL)
		return -ENOMEM;
	rc = make_homes(node, error);
	if (rc == 0)
		rc = make_rings(node, error);
	for (unsigned i = 0; rc == 0 && i < plan->stages_count; i++)
		if (handoff->workers[plan->stages[i].chain] != 0 && !plan->stages[i].handed)
			rc = make_handoff(node, i);
	return rc;
}

void cv_node_handoff_free(struct cv_node *node)
{
	const struct cv_plan *plan = node->plan;
	struct cv_node_handoff *handoff = &node->handoff;

	for (unsigned i = 0; handoff->finders != NULL && i < plan->stages_count; i++)
		cv_flow_home_destroy(handoff->finders[i]);
	for (unsigned i = 0; handoff->rings != NULL && i < plan->workers_count * CV_WORKERS_MAX;
		i++)
		cv_ring_free(handoff->rings[i]);
	free(handoff->finders);
	free(handoff->paths);
	free(handoff->rings);
	free(handoff->workers);
	rte_free(handoff->turns);
	rte_free(handoff->homes);
}

void cv_node_handoff_read(const struct cv_node *node, unsigned worker)
{
	for (unsigned i = 0; i < node->plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &node->plan->stages[i];
		struct cv_flow_home *finder = node->handoff.finders[i];
		uint64_t left = node->handoff.workers[stage->chain];

		for (; stage->worker == worker && finder != NULL && left != 0; left &= left - 1) {
			const unsigned keeps = (unsigned)__builtin_ctzll(left);

			cv_flow_home_read(finder, keeps, cv_node_flows_zone(node, stage, keeps));
		}
	}
}

void cv_node_handoff_rekey(struct cv_node *node, const struct cv_flow_secret *secret)
{
	for (unsigned i = 0; i < node->plan->chains_count; i++)
		memcpy(node->handoff.homes[i].secret.keys, secret->keys, sizeof(secret->keys));
}

const struct cv_handoff *cv_node_handoff_of(const struct cv_node *node, unsigned stage)
{
	return node->handoff.paths[stage].home != NULL ? &node->handoff.paths[stage] : NULL;
}

// The source of what a worker's ring brings; a new one at the end where there is none yet.
static struct cv_source *source_of(
	struct cv_node *node, struct cv_worker *worker, struct cv_ring *ring)
{
	struct cv_source *source = worker->sources;

	for (; source < worker->sources + worker->sources_count; source++)
		if (source->ring == ring)
			return source;
	source->paths = calloc(node->plan->chains_count, sizeof(*source->paths));
	if (source->paths == NULL)
		return NULL;
	cv_classifier_init(&source->classifier);
	source->ring = ring;
	source->handed = true;
	source->paths_count = node->plan->chains_count;
	worker->sources_count++;
	return source;
}

int cv_node_handoff_add(
	struct cv_node *node, const struct cv_plan_stage *stage, const struct cv_path *path)
{
	for (unsigned from = 0; from < node->plan->workers_count; from++) {
		struct cv_ring *ring = node->handoff.rings[from * CV_WORKERS_MAX + stage->worker];
		struct cv_source *source;

		if (ring == NULL)
			continue;
		source = source_of(node, &node->workers[stage->worker], ring);
		if (source == NULL)
			return -ENOMEM;
		source->paths[stage->chain] = path;
	}
	return 0;
}

const struct cv_flow_homes *cv_node_handoff_homes(const struct cv_node *node, unsigned function)
{
	const struct cv_plan *plan = node->plan;

	for (unsigned chain = 0; chain < plan->chains_count; chain++) {
		bool reached[CV_FUNCTIONS_MAX] = {false};

		if (node->handoff.workers[chain] == 0)
			continue;
		reach(plan, chain, reached);
		if (reached[function])
			return &node->handoff.homes[chain];
	}
	return NULL;
}

uint64_t cv_node_handoff_count(const struct cv_node *node)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < node->plan->workers_count * CV_WORKERS_MAX; i++)
		if (node->handoff.rings[i] != NULL)
			count += cv_ring_count(node->handoff.rings[i]);
	return count;
}
