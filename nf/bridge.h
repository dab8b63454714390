// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A learning bridge between two ports: l2fwd's mode "bridge". It remembers on which side each source
// address was heard, for age_s seconds after its last packet, and sends every packet out of the other
// side, unless its destination was heard on the side that it came from. Unknown and group
// destinations go to the other side. Addresses are learned over all VLANs together, by all workers.
#ifndef CV_BRIDGE_H
#define CV_BRIDGE_H

#include "chain/nf.h"
#include "nf/mac_table.h"

enum cv_l2_drop {
	CV_L2_BAD_HEADER,
	CV_L2_SAME_SIDE, // the destination is on the side that the packet came from
	CV_L2_BAD_SOURCE, // a group address or 0 as source
	CV_L2_NOT_A_SIDE, // came in by a port that is neither side
};

struct cv_bridge {
	int side[2]; // ports
	struct cv_mac_table table;
	uint64_t ticks_per_cycle; // of the table's clock, times 2^64
};

// sides: the array of its two ports' names. 0, or a negative errno with error set.
int cv_bridge_init(struct cv_bridge *bridge, const json_t *sides, uint32_t entries, uint32_t age_s,
	const struct cv_nf_env *env, struct cv_error *error);
void cv_bridge_free(struct cv_bridge *bridge); // one that is all zero, too

// As struct cv_nf's process.
uint16_t cv_bridge_forward(
	const struct cv_bridge *bridge, struct cv_view *view, uint8_t *verdict, uint16_t n);

// Adds "entries" and "learned" to an object.
void cv_bridge_info(const struct cv_bridge *bridge, json_t *info);

#endif
