// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets by row of a function's configuration: each worker counts for itself, and another instance
// goes on from what the one before has counted of the same rows.
#ifndef CV_ROW_COUNTERS_H
#define CV_ROW_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "chain/nf.h"
#include "packet/compiler.h"

struct cv_row_counters {
	size_t rows;
	unsigned workers;
	uint64_t *packets[CV_WORKERS_MAX]; // by row; each is written by its worker
	uint64_t *before; // by row, what instances before counted; NULL: nothing
};

// Returns 0 or -ENOMEM; either way *counters, which was zero, is to be freed.
int cv_row_counters_make(
	struct cv_row_counters *counters, size_t rows, const struct cv_nf_env *env);
void cv_row_counters_free(struct cv_row_counters *counters);

// By a worker: n packets more of a row, of its own packets[].
static CV_INLINE void cv_row_count(uint64_t *packets, size_t row, uint64_t n)
{
	// With the load in cv_row_counters_sum().
	__atomic_store_n(&packets[row], packets[row] + n, __ATOMIC_RELAXED);
}

// Packets of a row, of all workers and instances. By any thread.
uint64_t cv_row_counters_sum(const struct cv_row_counters *counters, size_t row);

// Goes on from what was counted before: same[row] is the row + 1 that a row was there; 0: it is new.
// NULL, or no memory: all are.
void cv_row_counters_inherit(struct cv_row_counters *counters, const struct cv_row_counters *before,
	const uint32_t *same);

#endif
