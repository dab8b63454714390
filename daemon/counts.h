// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the node has counted, as JSON: for telemetry while it runs, and whole at its end.
#ifndef CV_COUNTS_H
#define CV_COUNTS_H

#include <stdbool.h>

#include <jansson.h>

#include "node.h"

// Each new: an object of one object per port or function, by name; an array of one per worker.
// Integers only; a drop reason that has not happened is there with 0.
json_t *cv_counts_ports(const struct cv_node *node);
json_t *cv_counts_functions(const struct cv_node *node);
json_t *cv_counts_workers(const struct cv_node *node);

// received = sent + dropped + held? A new object, with the answer as "balanced". Exact when the
// node has stopped; while it runs, packets under way are missing.
json_t *cv_counts_books(const struct cv_node *node);

// All of it: {"schema": "convoy.counts/1", "ports", "functions", "workers", "books", "tsc_hz"}.
json_t *cv_counts(const struct cv_node *node);

#endif
