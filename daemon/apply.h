// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A running node goes over to another plan. What differs is built aside; then each worker goes over to
// all of it between two poll iterations. No packet waits, none is lost, and on a worker none meets
// parts of both plans. What did not change is not touched; functions that are in both keep their
// counters, and their flows as long as the same functions share them.
#ifndef CV_APPLY_H
#define CV_APPLY_H

#include "daemon/node.h"

struct cv_apply;

struct cv_apply_request {
	const json_t *plan; // whole
	const struct cv_files *files; // that its parameters name
	bool forget_flows; // where functions would share them otherwise than they do
};

// Builds what the plan has otherwise. NULL with error set: nothing has changed. One at a time; nobody
// changes next hops meanwhile.
struct cv_apply *cv_apply_begin(
	struct cv_node *node, const struct cv_apply_request *request, struct cv_error *error);

// What differs, as plan_next.h has it; of the apply.
const json_t *cv_apply_differences(const struct cv_apply *apply);

// Lets the workers go over; waits for them. Nobody reads the node meanwhile.
void cv_apply_commit(struct cv_apply *apply);

// Frees what does not run. NULL is allowed.
void cv_apply_end(struct cv_apply *apply);

#endif
