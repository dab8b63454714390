// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a node runs, kept in a folder: started again from the plan that it was started from before, it
// runs what ran last. Two files take turns, each with a number and a digest, so that there is always
// one that is whole. They are opened before rights are given up. Whatever fails here costs only that:
// it is said once, counted, and packets flow on. All but open and close with the change begun
// (running.h).
#ifndef CV_STATE_H
#define CV_STATE_H

#include "daemon/node.h"

#define CV_STATE_BYTES_MAX (UINT64_C(1) << 28) // of a file

// folder: NULL for no state at all; then the others do nothing. base: the plan that the node was given.
void cv_state_open(const char *folder, const struct cv_plan *base);
void cv_state_close(void);

// The plan that ran last, where that began from base; NULL: there is none that could run. To be freed.
struct cv_plan *cv_state_plan(const struct cv_plan *base);

// What cv_state_plan() returned does not run after all, for this reason.
void cv_state_refused(const char *why);

// The node forwards. What is kept of another plan is not valid any more.
void cv_state_begin(const struct cv_node *node);

// The node will be started with this plan from now on. Before what runs next is kept.
void cv_state_starts_with(const json_t *plan);

// What runs now is to be kept.
void cv_state_settled(const struct cv_node *node);

// Another process keeps it from now on: it gets both files, into fds, and what is known of them, into json,
// as "state". False: there is no folder. And that process, which began without.
bool cv_state_give(json_t *json, int fds[2]);
void cv_state_adopt(const json_t *json, int fds[2]); // takes the files: -1 is put there

// A new {"folder", "from": "descriptor" or "state", "number", "written", "failed", "error"}; the folder
// is null where there is none.
json_t *cv_state_describe(void);

#endif
