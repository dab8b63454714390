// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The ways of a zone's flows: what they set beside the tuple. Different ones are few, so a flow has
// the index of its own.
#ifndef CV_FLOW_WAYS_H
#define CV_FLOW_WAYS_H

#include "flow/flow.h"
#include "flow/rewrite.h"

#define CV_FLOW_WAYS_MAX 4096 // different ones at a time; the first sets nothing
#define CV_FLOW_WAYS_INDEX 8192 // places to find them by

// A way as the hot half applies it, a line of its own: bits of a packet's beginning that stay, and those
// that take their place.
struct cv_flow_way_mask {
	uint8_t stays[16], value[16];
	uint8_t out_stays, out;
	bool more; // there is more to set: cv_flow_rewrite_way(), and to be wrapped
} __attribute__((aligned(RTE_CACHE_LINE_SIZE)));

struct cv_flow_ways {
	struct cv_flow_way_mask masks[CV_FLOW_WAYS_MAX];
	struct cv_flow_way way[CV_FLOW_WAYS_MAX];
	uint32_t flows[CV_FLOW_WAYS_MAX]; // that use it
	uint16_t index[CV_FLOW_WAYS_INDEX]; // 0: none
	uint16_t free[CV_FLOW_WAYS_MAX];
	unsigned free_count;
	uint32_t swept; // the tick when unused ones were last looked for
};

// Of zeros.
void cv_flow_ways_init(struct cv_flow_ways *ways);

// The index of a way, which one flow more uses; -1: there are too many. now: the tick.
int cv_flow_ways_take(struct cv_flow_ways *ways, const struct cv_flow_way *way, uint32_t now);
void cv_flow_ways_give(struct cv_flow_ways *ways, unsigned way);

// Whether no place of ways that another process wrote leads out of them, and a search in them ends.
bool cv_flow_ways_lead_inside(const struct cv_flow_ways *ways);

static CV_INLINE void cv_flow_ways_apply_mask(
	const struct cv_flow_way_mask *mask, struct cv_view *view)
{
	typedef uint64_t words __attribute__((vector_size(16)));
	words stay, values, bytes;

	memcpy(&bytes, view->data, 16); // an IP packet's
	memcpy(&stay, mask->stays, 16);
	memcpy(&values, mask->value, 16);
	bytes = (bytes & stay) | values;
	memcpy(view->data, &bytes, 16);
	view->out = (uint8_t)((view->out & mask->out_stays) | mask->out);
}

// Changes in a packet what its flow's way says. Returns whether it is to be wrapped first: then only
// its DSCP was set, and cv_flow_ways_apply_wrapped() does the rest, to what it is wrapped in.
static CV_INLINE bool cv_flow_ways_apply(
	const struct cv_flow_ways *ways, struct cv_view *view, unsigned way)
{
	const struct cv_flow_way_mask *mask = &ways->masks[way];

	if (CV_UNLIKELY(mask->more)) {
		const bool wrapped = ways->way[way].wrapper != 0;

		cv_flow_rewrite_way(
			view, &ways->way[way], CV_FLOW_SET_DSCP | (wrapped ? 0 : CV_FLOW_SET_VLAN));
		if (wrapped)
			return true;
	}
	cv_flow_ways_apply_mask(mask, view);
	return false;
}

static CV_INLINE void cv_flow_ways_apply_wrapped(
	const struct cv_flow_ways *ways, struct cv_view *view, unsigned way)
{
	cv_flow_rewrite_way(view, &ways->way[way], CV_FLOW_SET_VLAN);
	cv_flow_ways_apply_mask(&ways->masks[way], view);
}

#endif
