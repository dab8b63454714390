// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/spread.h"

#include <math.h>

// What MurmurHash3 ends with.
static uint64_t finish(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
	return h ^ h >> 33;
}

uint64_t cv_spread_id(const char *name)
{
	uint64_t h = 0xcbf29ce484222325; // FNV-1a

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3;
	return finish(h);
}

void cv_spread_rank(struct cv_spread_ranks *ranks, uint64_t id)
{
	for (unsigned i = 0; i < CV_SPREAD_BUCKETS; i++) {
		const uint64_t random = finish(id + i * 0x9e3779b97f4a7c15); // of 53 bits

		ranks->of[i] = (float)-log(((double)(random >> 11) + 0.5) * 0x1p-53);
	}
}

void cv_spread_fill(struct cv_spread *spread, struct cv_spread_ranks *const *ranks)
{
	float least[CV_SPREAD_BUCKETS];

	for (unsigned m = 0; m < spread->group.members_count; m++) {
		const uint16_t next_hop = spread->group.members[m].next_hop;
		const float weight = (float)spread->group.members[m].weight;
		const float *of = ranks[next_hop]->of;

		for (unsigned i = 0; i < CV_SPREAD_BUCKETS; i++) {
			const float rank = of[i] / weight;

			// Equal ones are the first one's: members are in order of their indices.
			if (m == 0 || rank < least[i]) {
				least[i] = rank;
				spread->bucket[i] = (uint8_t)next_hop;
			}
		}
	}
}
