// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The inside of apply.h: the node as another plan has it, with what it takes over from the one that
// runs.
#ifndef CV_APPLY_BUILD_H
#define CV_APPLY_BUILD_H

#include "daemon/apply.h"

struct cv_apply {
	struct cv_node *node; // that runs
	// What is to be; once committed what was. Ports, memory, workers and next hops are the node's.
	struct cv_node *next;
	int from[CV_FUNCTIONS_MAX]; // by next's function: the running one's index; -1: it is new
	bool kept[CV_FUNCTIONS_MAX]; // by next's function: the running instance goes on
	bool same_stages; // and chains: then rings and what is handed over are the node's, too
	struct cv_next_hop_set *next_hops; // NULL: they stay
	json_t *differences;
	bool committed;
};

// Makes apply->next of a plan, which it takes. 0, or a negative errno with error set; either way
// it is to be freed.
int cv_apply_build(struct cv_apply *apply, struct cv_plan *plan,
	const struct cv_apply_request *request, struct cv_error *error);

// Frees next, but what the node has.
void cv_apply_free_next(struct cv_apply *apply);

#endif
