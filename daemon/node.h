// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node: what a plan describes, built and running. Made and ended by the main thread; the
// counters may be read from any thread in between.
#ifndef CV_NODE_H
#define CV_NODE_H

#include <stdbool.h>

#include <rte_mempool.h>

#include "chain/worker.h"
#include "daemon/function_config.h"
#include "daemon/next_hop_set.h"
#include "daemon/node_flows.h"
#include "daemon/node_handoff.h"
#include "daemon/openflow/server.h"
#include "daemon/plan.h"
#include "daemon/sandbox/sandbox.h"

struct cv_node_path;

// What was counted by ports and functions that are no longer there.
struct cv_node_gone {
	uint64_t received, sent, originated, absorbed, dropped;
};

struct cv_node {
	const struct cv_plan *plan; // owned
	struct rte_mempool *pool;
	struct cv_port **ports; // by the plan's index
	void **functions; // instances, by the plan's index
	struct cv_function_config *configs; // what they were made of
	struct cv_ring **rings;
	struct cv_worker *workers;
	struct cv_path **paths; // by stage of the plan: of the list below
	struct cv_path *contents; // by stage: what these are, or are to be
	struct cv_node_path *all_paths; // that there ever were; a path's address stays
	struct cv_nf_counters **function_counters; // by function: of each worker
	struct cv_node_gone gone;
	struct cv_node_zone *zones; // of stateful functions
	unsigned zones_count;
	struct cv_node_handoff handoff;
	struct cv_next_hop_set *next_hop_set; // NULL: no port carries convoys
	struct cv_of_server *openflow; // NULL: no controllers; not owned
	struct cv_convoy_rx *convoy_rx; // [port * workers + worker]
	struct cv_frame_counters *rx_frames; // [port * workers + worker]
	enum cv_worker_phase phase;
	uint64_t taken[CV_WORKERS_MAX]; // queues that came to each worker from others
	uint64_t changes; // of its functions and paths, since it was made
	struct cv_sandbox_state sandbox;
};

// Makes every function instance, and with that checks what the plan says of it; opens nothing.
// The node takes the plan. NULL with error set: the plan is the caller's.
struct cv_node *cv_node_make(const struct cv_plan *plan, struct cv_error *error);

// What a function may ask about the node, without ports' addresses.
struct cv_nf_env cv_node_function_env(const struct cv_node *node, unsigned function);

// Whether these instances, by the plan's index, can be the node's functions together: 0, or a negative
// errno with error set.
int cv_node_check_claims(
	const struct cv_node *node, void *const *instances, struct cv_error *error);

// Starts an instance of a function: the ports are open. running: that it takes the place of, or NULL.
void cv_node_start_function(
	const struct cv_node *node, unsigned function, void *instance, void *running);

// Opens the ports and connects everything. Nothing runs yet. 0, or a negative errno with error set:
// then the node is good for cv_node_free() only.
int cv_node_connect(struct cv_node *node, struct cv_error *error);

// Starts the ports. 0 or a negative errno with error set.
int cv_node_start(struct cv_node *node, struct cv_error *error);

// Starts the workers (worker i on lcore i + 1): packets are forwarded from now on.
void cv_node_forward(struct cv_node *node);

// True once no packet can come any more: every port that is polled has come to its end.
bool cv_node_ended(const struct cv_node *node);

// Adds or replaces a next hop (an object as in a plan's next_hops), or removes one, while packets flow:
// none is lost. Its index, or a negative errno with error set. By one thread at a time.
int cv_node_put_next_hop(struct cv_node *node, const json_t *object, struct cv_error *error);
int cv_node_remove_next_hop(struct cv_node *node, const char *name, struct cv_error *error);

// Stops receiving, lets what is inside leave, ends the workers, stops the ports.
void cv_node_stop(struct cv_node *node);

// The end of that alone, of a node in which nothing moves any more.
void cv_node_join(struct cv_node *node);

// NULL is allowed.
void cv_node_free(struct cv_node *node);

#endif
