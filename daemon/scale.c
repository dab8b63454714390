// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/scale.h"

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "daemon/errands.h"
#include "daemon/scale_choose.h"
#include "flow/flow.h"

// A period is long beside a time slice that somebody else gets of a core.
#define PERIODS_PER_S 20

static struct {
	const struct cv_node *of;
	uint64_t changes; // of the node, at that time
	uint64_t due; // TSC
	uint64_t busy[CV_WORKERS_MAX], own[CV_WORKERS_MAX]; // cycles at the last time
	struct cv_scale_choice choice;
} scale;

static bool any_moves(const struct cv_node *node)
{
	return node->plan->spare_count > 0;
}

static bool is_queue(const struct cv_source *source, unsigned port, unsigned queue)
{
	return source->port != NULL && source->in == port && source->queue == queue;
}

// Its place among the sources of a worker, the spare ones included; -1: it has none.
static int find(const struct cv_worker *worker, unsigned port, unsigned queue)
{
	for (unsigned i = 0; i < worker->sources_count + worker->spare_count; i++)
		if (is_queue(&worker->sources[i], port, queue))
			return (int)i;
	return -1;
}

// The worker that polls a queue; -1: none.
static int poller(const struct cv_node *node, unsigned port, unsigned queue)
{
	for (unsigned w = 0; w < node->plan->workers_count; w++) {
		const int at = find(&node->workers[w], port, queue);

		if (at >= 0 && (unsigned)at < node->workers[w].sources_count)
			return (int)w;
	}
	return -1;
}

// Of a chain, outputs followed. None leads back (plan_check.h).
static int check_path(const struct cv_node *node, const struct cv_plan_stage *stage,
	const unsigned *path, unsigned length, struct cv_error *error)
{
	const struct cv_plan *plan = node->plan;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < length; i++) {
		const struct cv_plan_function *function = &plan->functions[path[i]];

		if (cv_node_handoff_remembers(node, path[i])) {
			cv_error_set(error,
				"stages: moves: function \"%s\" remembers what passed on one "
				"worker; queue %u of port \"%s\" must stay",
				function->name, stage->queue,
				plan->port_names[plan->chains[stage->chain].in]);
			return -EINVAL;
		}
		for (unsigned o = 0; rc == 0 && o < function->outputs_count; o++)
			for (unsigned s = 0; rc == 0 && s < plan->stages_count; s++)
				if (plan->stages[s].chain == function->output_to[o] &&
					plan->stages[s].worker == stage->worker)
					rc = check_path(node, stage, plan->stages[s].path,
						plan->stages[s].path_length, error);
	}
	return rc;
}

int cv_scale_check(const struct cv_node *node, struct cv_error *error)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < node->plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &node->plan->stages[i];

		if (stage->moves)
			rc = check_path(node, stage, stage->path, stage->path_length, error);
	}
	return rc;
}

// One move, as its workers share it.
struct move {
	struct cv_node *node;
	struct cv_worker *from, *to;
	unsigned port, queue;
	struct cv_errand take;
	bool forced; // whatever functions hold
	bool moved;
};

// Packets that a function keeps would meet those that come to the other worker.
static bool holds_packets(const struct cv_node *node, unsigned worker)
{
	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const struct cv_nf_counters *counters = &node->function_counters[i][worker];

		if (cv_counted(&counters->held) != cv_counted(&counters->released))
			return true;
	}
	return false;
}

// In the worker that the queue goes to: it is awake until it comes.
static void expect(void *argument)
{
	const struct move *move = argument;

	move->to->expects = true;
	if (move->to->sources_count == 0) // polls slowly else
		cv_worker_sources_changed(move->to);
}

static void take(void *argument)
{
	const struct move *move = argument;

	if (move->moved)
		cv_worker_take_source(move->to, (unsigned)find(move->to, move->port, move->queue));
	move->to->expects = false;
}

// In the worker that has it, which says itself when the other one may begin.
static void leave(void *argument)
{
	struct move *move = argument;

	if (move->forced || !holds_packets(move->node, move->from->paths.nf.index)) {
		cv_worker_leave_source(
			move->from, (unsigned)find(move->from, move->port, move->queue));
		move->moved = true;
	}
	cv_errands_give(move->to, &move->take);
}

static int move_queue(
	struct cv_node *node, unsigned port, unsigned queue, unsigned worker, bool forced)
{
	const int from = poller(node, port, queue);
	struct move move = {.node = node,
		.from = &node->workers[RTE_MAX(from, 0)],
		.to = &node->workers[worker],
		.port = port,
		.queue = queue,
		.forced = forced};
	const struct cv_errand first = {expect, &move}, second = {leave, &move};

	if (from == (int)worker)
		return 0;
	if (from < 0 || find(move.to, port, queue) < 0)
		return -ENOENT;
	move.take = (struct cv_errand){take, &move};
	cv_errands_give(move.to, &first);
	cv_errands_await(node, worker);
	cv_errands_give(move.from, &second);
	cv_errands_await(node, (unsigned)from);
	cv_errands_await(node, worker);
	if (move.moved)
		node->taken[worker]++;
	return move.moved ? 0 : -EBUSY;
}

int cv_scale_move(struct cv_node *node, unsigned port, unsigned queue, unsigned worker)
{
	return move_queue(node, port, queue, worker, false);
}

// In a node that does not run.
static void place(struct cv_node *node, unsigned port, unsigned queue, unsigned to)
{
	const int from = poller(node, port, queue);

	if (from < 0 || from == (int)to)
		return;
	cv_worker_leave_source(
		&node->workers[from], (unsigned)find(&node->workers[from], port, queue));
	cv_worker_take_source(&node->workers[to], (unsigned)find(&node->workers[to], port, queue));
}

// A queue that moves in the node which runs.
static void follow(struct cv_node *node, struct cv_node *next, unsigned port, unsigned queue)
{
	const int now = poller(node, port, queue), then = poller(next, port, queue);

	if (now < 0 || then < 0 || now == then)
		return;
	if (find(&next->workers[now], port, queue) >= 0)
		place(next, port, queue, (unsigned)now);
	else
		move_queue(node, port, queue, (unsigned)then, true);
}

void cv_scale_follow(struct cv_node *node, struct cv_node *next)
{
	for (unsigned i = 0; i < node->plan->stages_count; i++) {
		const struct cv_plan_stage *stage = &node->plan->stages[i];

		if (stage->moves && !stage->spare)
			follow(node, next, node->plan->chains[stage->chain].in, stage->queue);
	}
}

// What a worker did since the last time.
static struct cv_scale_load load_of(const struct cv_node *node, unsigned worker)
{
	const struct cv_worker *of = &node->workers[worker];
	const uint64_t busy = cv_counted(&of->busy_cycles);
	// What others that share the core take of it is none of its time.
	const uint64_t own = cv_counted(&of->total_cycles) - cv_counted(&of->away_cycles);
	const uint64_t passed = own - scale.own[worker];
	struct cv_scale_load load = {.queues = of->sources_count};

	for (unsigned i = 0; i < of->sources_count; i++)
		load.moving += of->sources[i].moves;
	load.percent = passed == 0 ? 0 : (unsigned)((busy - scale.busy[worker]) * 100 / passed);
	scale.busy[worker] = busy;
	scale.own[worker] = own;
	return load;
}

// The first of a worker's queues that moves.
static const struct cv_source *first_moving(const struct cv_worker *worker)
{
	for (unsigned i = 0; i < worker->sources_count; i++)
		if (worker->sources[i].moves)
			return &worker->sources[i];
	return NULL;
}

static void move_queues(struct cv_node *node, const struct cv_scale_order *order)
{
	for (unsigned i = 0; i < order->queues; i++) {
		const struct cv_source *source = first_moving(&node->workers[order->from]);

		if (source == NULL ||
			cv_scale_move(node, source->in, source->queue, order->to) != 0)
			return;
	}
}

void cv_scale_due(struct cv_node *node)
{
	struct cv_scale_load loads[CV_WORKERS_MAX];
	const uint64_t now = rte_rdtsc();
	const bool anew = scale.of != node || scale.changes != node->changes;
	struct cv_scale_order order;

	if (!any_moves(node) || node->phase != CV_WORKER_RUN || (!anew && now < scale.due))
		return;
	scale.due = now + rte_get_tsc_hz() / PERIODS_PER_S;
	for (unsigned i = 0; i < node->plan->workers_count; i++)
		loads[i] = load_of(node, i);
	if (anew) {
		scale.of = node;
		scale.changes = node->changes;
		memset(&scale.choice, 0, sizeof(scale.choice));
		return;
	}
	order = cv_scale_choose(&scale.choice, loads, node->plan->workers_count);
	move_queues(node, &order);
}

void cv_scale_count(const struct cv_node *node, unsigned worker, json_t *object)
{
	const struct cv_worker *of = &node->workers[worker];
	json_t *queues;

	if (!any_moves(node))
		return;
	queues = json_array();
	for (unsigned i = 0; i < of->sources_count; i++)
		if (of->sources[i].port != NULL)
			json_array_append_new(
				queues, json_pack("{s:s, s:i}", "port",
						node->plan->port_names[of->sources[i].in], "queue",
						of->sources[i].queue));
	json_object_set_new(object, "queues", queues);
	json_object_set_new(object, "taken", json_integer((json_int_t)node->taken[worker]));
}
