// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Chains whose flows several workers share: who hands packets over to whom (chain/handoff.h), and by
// what (flow/home.h), or in turn. The plan says it: such a chain has a stage from "handoff" on each of
// them.
#ifndef CV_NODE_HANDOFF_H
#define CV_NODE_HANDOFF_H

#include "chain/path.h"
#include "daemon/plan.h"
#include "flow/home.h"
#include "packet/error.h"

struct cv_node;
struct cv_worker;

struct cv_node_handoff {
	uint64_t *workers; // by chain: that share its flows, a bit each; 0: it is not shared
	struct cv_flow_homes *homes; // by chain
	struct cv_ring **rings; // [from * CV_WORKERS_MAX + to]; NULL: nothing is handed over
	unsigned rings_count;
	struct cv_flow_home **finders; // by stage; NULL: it does not hand over, or does in turn
	struct cv_handoff_turn *turns; // by stage
	struct cv_handoff *paths; // by stage; without home: it does not hand over
};

// The workers that have a stage with the function in its path, a bit each.
uint64_t cv_node_handoff_workers(const struct cv_plan *plan, unsigned function);

// Whether a function would do otherwise with a packet on another worker: it remembers what passed on its
// own.
bool cv_node_handoff_remembers(const struct cv_node *node, unsigned function);

// What a function needs of its answers; CV_FLOW_ANSWERS_APART: it remembers no flows.
enum cv_flow_answers cv_node_handoff_answers(const struct cv_nf *nf, const void *instance);

// Finds which chains are shared, once functions are there: each stateful function whose answers must
// meet its flows runs on one worker, or is in chains that all of its workers share; of a chain that is
// dealt out in turn none remembers anything. 0 or a negative errno with error set.
int cv_node_handoff_find(struct cv_node *node, struct cv_error *error);

// Makes what they are handed over with. 0 or a negative errno with error set.
int cv_node_handoff_make(struct cv_node *node, struct cv_error *error);
void cv_node_handoff_free(struct cv_node *node);

// A worker reads the flows that others keep of its chains in their zones of this node, where a chain
// begins with functions that remember flows. By the worker, between two poll iterations, or while it
// does not run.
void cv_node_handoff_read(const struct cv_node *node, unsigned worker);

// Packets have the workers that another process's secret gives them, which has the same number of workers.
// Nothing runs yet.
void cv_node_handoff_rekey(struct cv_node *node, const struct cv_flow_secret *secret);

// What a stage's path hands over with; NULL: it keeps everything.
const struct cv_handoff *cv_node_handoff_of(const struct cv_node *node, unsigned stage);

// Adds a handed-over stage's path to the sources of its worker. 0 or -ENOMEM.
int cv_node_handoff_add(
	struct cv_node *node, const struct cv_plan_stage *stage, const struct cv_path *path);

// The workers that share a function's flows; NULL: there is but one.
const struct cv_flow_homes *cv_node_handoff_homes(const struct cv_node *node, unsigned function);

// Packets that are on their way from one worker to another.
uint64_t cv_node_handoff_count(const struct cv_node *node);

#endif
