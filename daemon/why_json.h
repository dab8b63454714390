// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A record of a trace, in the node's names.
#ifndef CV_WHY_JSON_H
#define CV_WHY_JSON_H

#include "chain/trace.h"
#include "daemon/node.h"

// What the TSC and the time were at one moment.
struct cv_why_clock {
	uint64_t tsc, hz;
	uint64_t ns; // since 1970
};

struct cv_why_clock cv_why_clock_now(void);

// A TSC value in nanoseconds since 1970.
int64_t cv_why_time(const struct cv_why_clock *clock, uint64_t tsc);

// Whether the filter takes it, also for why it was dropped.
bool cv_why_is_wanted(const struct cv_node *node, const struct cv_trace_config *config,
	const struct cv_trace_record *record);

// One packet as docs/why.md has it, a new object.
json_t *cv_why_packet(const struct cv_node *node, const struct cv_trace_config *config,
	const struct cv_why_clock *clock, const struct cv_trace_record *record);

#endif
