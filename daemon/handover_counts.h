// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a node has counted, carried on by another that takes over from it: by names, as in
// `convoy.counts/3`, so that the two may be of different versions. What only the first knows is lost.
#ifndef CV_HANDOVER_COUNTS_H
#define CV_HANDOVER_COUNTS_H

#include "daemon/node.h"

// Of a node that stands still: a new {"ports", "functions", "next_hops", "gone"}.
json_t *cv_handover_counts(const struct cv_node *node);

// Packets that functions keep, which are lost with the node.
uint64_t cv_handover_held(const struct cv_node *node);

// Adds such counts to what a node counts, which runs. False: there is no memory.
bool cv_handover_add_counts(struct cv_node *node, const json_t *counts);

// Of a plan.
uint64_t cv_handover_digest(const json_t *plan);

// Names a function to a node of another plan: by its name and type.
uint64_t cv_handover_function_id(const struct cv_node *node, unsigned function);

// Names a zone to a node of another plan: by its functions, and which of how many zones of these it is.
uint64_t cv_handover_zone_id(const struct cv_node *node, unsigned zone);

// What the same zone would be known by in a node in which so many workers have such flows. The first of them,
// if this one is; 0: it is not.
uint64_t cv_handover_zone_id_of(const struct cv_node *node, unsigned zone, unsigned workers);

#endif
