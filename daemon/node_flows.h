// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's flows: which stateful functions of its stages share a look-up, and their zones
// (flow/path.h). Consecutive stateful functions of a stage become one step of its path.
#ifndef CV_NODE_FLOWS_H
#define CV_NODE_FLOWS_H

#include <jansson.h>

#include "chain/path.h"
#include "daemon/plan.h"
#include "flow/path.h"
#include "packet/error.h"

struct cv_node;
struct cv_node_gone;

// The flows of some functions on one worker.
struct cv_node_zone {
	unsigned worker;
	unsigned functions[CV_FLOW_MEMBERS_MAX]; // the plan's indices, ascending
	unsigned count;
	struct cv_flow_zone *zone; // NULL until they are made
	struct cv_flow_group *groups[CV_FLOW_GROUPS_MAX];
	unsigned groups_count;
	bool adopted; // it is a running node's: cv_node_flows_adopt()
	bool ticks; // one of its steps does
	bool taken; // its flows are those of the node that this one takes over from
};

// Finds the node's zones, once its functions are there. 0 or a negative errno with error set.
int cv_node_flows_find(struct cv_node *node, struct cv_error *error);

// Makes them: from then on their memory is there. 0 or a negative errno with error set.
int cv_node_flows_make(struct cv_node *node, struct cv_error *error);
void cv_node_flows_free(struct cv_node *node);

// Takes over the zones of a running node that are of the same functions: from has the running plan's
// index of each, -1 for a new one. The zone is the running node's until it is made anew with the plan.
void cv_node_flows_adopt(struct cv_node *node, const struct cv_node *running, const int *from);

// A worker's zones go over to the node's instances. By the worker, between two poll iterations.
void cv_node_flows_set(const struct cv_node *node, unsigned worker);

// How many functions of a stage, from the at-th of its path on, are one group: 0 if that is not
// stateful.
unsigned cv_node_flows_group(
	const struct cv_node *node, const struct cv_plan_stage *stage, unsigned at);

// The zone on a worker of the functions that a stage's path begins with; NULL: it begins with none that
// remembers flows, or that worker has none.
struct cv_flow_zone *cv_node_flows_zone(
	const struct cv_node *node, const struct cv_plan_stage *stage, unsigned worker);

// Sets the step that these are, but its outputs: those of the functions, one behind the other. 1: the
// first of its zone, which must tick; 0; or -ENOMEM.
int cv_node_flows_step(struct cv_node *node, const struct cv_plan_stage *stage, unsigned at,
	unsigned count, struct cv_step *step);

// What the flows of each set of functions may be and take, as a new object by the functions' names:
// needs cv_node_flows_find() only.
json_t *cv_node_flows_plan(const struct cv_node *node);

// The same with what was counted; and what the flow path dropped, all together.
json_t *cv_node_flows_counts(const struct cv_node *node);
uint64_t cv_node_flows_drops(const struct cv_node *node);

// Adds what was counted by zones that end with the node.
void cv_node_flows_gone(const struct cv_node *node, struct cv_node_gone *gone);

// Packets that stateful functions originated.
uint64_t cv_node_flows_originated(const struct cv_node *node);

// A function's share of the cycles of the groups that it is in: an equal part of each.
uint64_t cv_node_flows_busy(const struct cv_node *node, unsigned function);

// Adds how long packets took in groups whose last function it is, and in rings before those whose first
// it is.
void cv_node_flows_latency(const struct cv_node *node, unsigned function,
	struct cv_latency *in_ring, struct cv_latency *latency);

#endif
