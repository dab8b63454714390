// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A burst that is looked up in its worker's own flows: what the passes of the hot half (lookup_run.h) hand
// on.
#ifndef CV_FLOW_LOOKUP_H
#define CV_FLOW_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "flow/table.h"

// For each packet, beside what a follower is shown.
struct cv_flow_lane {
	// Its bucket, then its slot; CV_FLOW_NONE: it is looked at for itself; or CV_FLOW_FRESH.
	uint32_t at;
	uint16_t signature;
	bool v6;
	uint8_t *ip; // the packet's layer 3
	struct cv_flow *flow; // that the slot is of
};

#define CV_FLOW_FRESH (CV_FLOW_NONE - 1) // of no flow that is known

struct cv_flow_lanes {
	struct cv_flow_lane lane[CV_BURST_MAX];
	// As the first follower sees them: those that all follow, in one piece. direction and slot are
	// known when the flow is; the rest is of common packets.
	struct cv_flow_followed packet[CV_BURST_MAX];
};

// A burst that was looked up before it came to the flow path: where several workers share flows, to find
// those that this one keeps.
struct cv_flow_lookup {
	const struct cv_view *views;
	unsigned n; // of them; 0: nothing is looked up
	uint64_t removals; // the zone's then
	uint32_t bytes;
	bool some_v6, some_fresh;
	struct cv_flow_lanes lanes;
};

#endif
