// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Whether this thread traces packets (chain/trace.h), and what stateful functions tell the trace.
#ifndef CV_TRACE_HERE_H
#define CV_TRACE_HERE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/view.h"

struct cv_trace;

// Of the worker that this thread is. NULL: it does not trace. A program's own, never a library's: it is
// read without a call.
extern _Thread_local struct cv_trace *cv_trace_here __attribute__((tls_model("initial-exec")));

static CV_INLINE bool cv_trace_is_on(void)
{
	return CV_UNLIKELY(cv_trace_here != NULL);
}

struct cv_nf_because;

// What an instance of several that share a look-up owes its decision on a packet of the burst to.
void cv_trace_because(
	const struct cv_view *view, const void *instance, const struct cv_nf_because *because);

// What the function at a position of several that share a look-up said of a packet of the burst.
void cv_trace_decided(const struct cv_view *view, unsigned position, uint8_t verdict);

#endif
