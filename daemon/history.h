// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a node ran, and the way back: the last plans, with what was in the files that their parameters
// name. A change may have to be confirmed; if it is not in time, the node goes back by itself. All but
// cv_history_due() with the change begun (running.h).
#ifndef CV_HISTORY_H
#define CV_HISTORY_H

#include "daemon/apply.h"

#define CV_HISTORY_MAX 16 // plans that are remembered

// What is to be done with a plan.
struct cv_history_change {
	struct cv_apply_request request;
	bool dry_run;
	bool starts_with; // the node will be started with this plan from now on
	unsigned confirm_s; // 0: it need not be confirmed
};

// Remembers what the node started with: while it may still open files.
void cv_history_begin(const struct cv_node *node);
void cv_history_end(void);

// Makes the node run a plan, and remembers it. Returns a new {"number", "differences", "confirm_s"}, or
// NULL with error set: nothing has changed.
json_t *cv_history_apply(
	struct cv_node *node, const struct cv_history_change *change, struct cv_error *error);

// The change that waits for it stays. 0, or -EINVAL with error set.
int cv_history_confirm(const struct cv_node *node, struct cv_error *error);

// Whether a change waits for it.
bool cv_history_waits(void);

// Goes back to a plan by its number; 0: to the one before. As cv_history_apply().
json_t *cv_history_rollback(
	struct cv_node *node, unsigned to, bool forget_flows, struct cv_error *error);

// The plans, the newest last: a new array of {"number", "at" (seconds since 1970), "differences",
// "back_to", "confirm_s": seconds that are left}.
json_t *cv_history_list(void);

// Goes back if it is time to, in a thread of its own. Without the change begun; by one thread.
void cv_history_due(void);

#endif
