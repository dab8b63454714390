// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the node has counted, as JSON: for telemetry while it runs, and whole at its end.
#ifndef CV_COUNTS_H
#define CV_COUNTS_H

#include <stdbool.h>

#include <jansson.h>

#include "daemon/node.h"

// Each new: an object of one object per port or function, by name; an array of one per worker.
// Integers only; a drop reason that has not happened is there with 0.
json_t *cv_counts_ports(const struct cv_node *node);
json_t *cv_counts_functions(const struct cv_node *node);
json_t *cv_counts_next_hops(const struct cv_node *node);
json_t *cv_counts_workers(const struct cv_node *node);

// Packets that were sent to the next hop with this index.
uint64_t cv_counts_next_hop_packets(const struct cv_node *node, unsigned next_hop);

// {"on", "landlock": its version, "uid", "capabilities": a bit each, "dumpable"} of the process: what it
// gave up, or not, after start.
json_t *cv_counts_sandbox(const struct cv_node *node);

// {"received", "sent", "dropped", "held"} of the whole node, in packets. Packets that a worker has
// in its hands are in none of them; a node that has stopped has none.
json_t *cv_counts_accounting(const struct cv_node *node);

// received + originated = sent + dropped + absorbed + held?
bool cv_counts_conserved(const json_t *accounting);

// All of it, as it is now: {"schema": "convoy.counts/3", "ports", "functions", "workers", ...}; and of
// a node that has stopped, "accounting" with "conserved".
json_t *cv_counts_now(const struct cv_node *node);
json_t *cv_counts(const struct cv_node *node);

#endif
