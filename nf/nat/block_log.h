// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Who had which external ports when: a JSON line for each block that is taken or given back (RFC
// 6888 REQ-12). Workers put events into rings of their own; one thread writes them, in time order
// of each worker. What finds its ring full is counted as lost.
#ifndef CV_NAT_BLOCK_LOG_H
#define CV_NAT_BLOCK_LOG_H

#include <stdint.h>

#include "nf/nat/blocks.h"
#include "packet/error.h"

struct cv_nat_block_log;

// Makes a log, whose file can be written or made; it is not made yet. name: the function's, for errors
// and lines; copied. NULL with error set, or for want of memory.
struct cv_nat_block_log *cv_nat_block_log_create(
	const char *path, const char *name, unsigned workers, struct cv_error *error);

// Opens the file, to append to it, and begins to write. Without it nothing is written. 0 or -errno.
int cv_nat_block_log_start(struct cv_nat_block_log *log);

// Writes what is left, and ends. NULL is allowed.
void cv_nat_block_log_destroy(struct cv_nat_block_log *log);

// By the worker alone.
void cv_nat_block_log_add(
	struct cv_nat_block_log *log, unsigned worker, const struct cv_nat_block_event *event);

// Events that are not in the file and never will be. May be called by any thread.
uint64_t cv_nat_block_log_lost(const struct cv_nat_block_log *log);

#endif
