// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One of several next hops, by a packet's flow: a table of buckets, each of which is one's. A bucket
// goes to whom weighted rendezvous hashing (Thaler and Ravishankar 1998; Schindelhauer and Schomaker
// 2005) gives it: so the table follows from the members alone, when one comes or its weight grows
// buckets go to it alone, and when one goes its buckets alone go elsewhere. Shares are near the weights,
// not exact: of 4,096 buckets one of four equal members has 1,024 and a standard deviation of 28.
#ifndef CV_SPREAD_H
#define CV_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/compiler.h"

#define CV_SPREAD_BUCKETS 4096u
#define CV_SPREAD_MEMBERS_MAX 64u
#define CV_SPREAD_WEIGHT_MAX 256u // of a plan; a controller may say more

struct cv_spread_member {
	uint16_t next_hop; // index < 256
	uint16_t weight; // 1 or more
};

// Next hops that share flows.
struct cv_spread_group {
	uint16_t members_count;
	bool by_addresses; // packets between two addresses are not told apart
	struct cv_spread_member members[CV_SPREAD_MEMBERS_MAX];
};

struct cv_spread {
	struct cv_spread_group group;
	uint8_t bucket[CV_SPREAD_BUCKETS]; // next hops
};

// What buckets think of one next hop, whoever else there is: exponentially distributed numbers, which
// follow from its id.
struct cv_spread_ranks {
	float of[CV_SPREAD_BUCKETS];
};

// id: what the next hop is known by, the same everywhere and always.
void cv_spread_rank(struct cv_spread_ranks *ranks, uint64_t id);

// Gives buckets to the members, of which there is at least one. ranks: by the next hop's index, those
// of all members.
void cv_spread_fill(struct cv_spread *spread, struct cv_spread_ranks *const *ranks);

// The next hop of a flow by its hash.
static CV_INLINE uint16_t cv_spread_choose(const struct cv_spread *spread, uint32_t hash)
{
	return spread->bucket[hash % CV_SPREAD_BUCKETS];
}

// A name as 64 bits: those that differ in a digit are far apart.
uint64_t cv_spread_id(const char *name);

#endif
