// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which flow the fragments of a packet belong to: remembered of first fragments, which have ports,
// for those that follow. Bounded: the oldest of four is forgotten for a new one.
#ifndef CV_FLOW_FRAGMENTS_H
#define CV_FLOW_FRAGMENTS_H

#include <stdint.h>

#include "flow/hash.h"

#define CV_FLOW_FRAGMENTS 1024
#define CV_FLOW_FRAGMENTS_WAYS 4

// Every byte counts.
struct cv_flow_fragment_key {
	uint8_t src[16], dst[16];
	uint32_t id; // network order; IPv4's behind two zeros
	uint8_t proto, v6, zero[2];
};

_Static_assert(sizeof(struct cv_flow_fragment_key) == 40, "as hashed");

struct cv_flow_fragment {
	struct cv_flow_fragment_key key;
	uint32_t slot; // CV_FLOW_SLOT() of the family's table
	uint32_t deadline; // 0: nothing here
};

struct cv_flow_fragments {
	struct cv_flow_fragment set[CV_FLOW_FRAGMENTS / CV_FLOW_FRAGMENTS_WAYS]
				   [CV_FLOW_FRAGMENTS_WAYS];
};

void cv_flow_fragments_put(struct cv_flow_fragments *fragments, uint64_t hash,
	const struct cv_flow_fragment_key *key, uint32_t slot, uint32_t now, uint32_t deadline);

// The slot, or CV_FLOW_NONE.
uint32_t cv_flow_fragments_find(const struct cv_flow_fragments *fragments, uint64_t hash,
	const struct cv_flow_fragment_key *key, uint32_t now);

#endif
