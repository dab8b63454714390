// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The source port of convoys: by the flow of the packet that leads.
#ifndef CV_CONVOY_FLOW_H
#define CV_CONVOY_FLOW_H

#include "convoy/format.h"
#include "packet/flow_hash.h"

// The source port of a convoy that a packet leads, where its next hop has none of its own.
static CV_INLINE rte_be16_t cv_flow_sport(const struct cv_view *view)
{
	return rte_cpu_to_be_16(CV_CONVOY_SPORT_MIN | (cv_flow_hash(view) & CV_CONVOY_SPORT_MASK));
}

#endif
