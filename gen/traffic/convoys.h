// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Convoys in a trial: packets aggregated into one frame (docs/convoy-frame.md).
//
// Sent: groups are packed before the trial, as frames are, and sent again and again with new
// stamps. Received: each frame that is a convoy is walked, and its packets are accounted for one
// by one; the device under test may disaggregate convoys, aggregate packets, or both.
#ifndef GEN_TRAFFIC_CONVOYS_H
#define GEN_TRAFFIC_CONVOYS_H

#include <stdint.h>

#include "convoy/outer.h"
#include "convoy/walk.h"
#include "gen/traffic/pool.h"
#include "gen/traffic/stamp.h"

#define GEN_CONVOY_SPLIT 512u // packets: about as many are sent or received in an iteration

// Several packets of a pool, one behind the other in one frame. The packets are the pool's
// frames[first] to frames[first + packets - 1], which lie inside.
struct gen_convoy {
	struct gen_frame frame; // sum means nothing
	uint32_t first;
	uint32_t packets; // 1: unaggregated
	uint32_t bytes; // of the packets, without headers
};

// What a trial received in convoys.
struct gen_convoy_counts {
	uint64_t sent; // frames of two packets or more
	uint64_t received; // convoys that add up
	uint64_t received_pkts; // in them
	uint64_t refused[CV_CONVOY_REASONS]; // frames, by why
	uint64_t packets[CV_CONVOY_PACKETS_MAX + 1]; // convoys of so many
};

// How many frames packets of these sizes (with FCS) make at the least, in whatever order; 1 or more.
uint32_t gen_convoys_least(const uint32_t *sizes, uint32_t count, const struct gen_spec *spec);

// Packs the pool's frames (just built, in room) behind each other, in their order, as many to a
// frame as the specification says and fit. 0, or a negative errno with error set.
int gen_convoys_build(struct gen_pool *pool, const struct gen_spec *spec,
	const struct gen_room *room, struct cv_error *error);

// Stamps the packets of convoy i of a burst, which lies at data: the pool's, or a copy of it.
static inline void gen_convoy_stamp(const struct gen_tx *burst, uint32_t i, uint8_t *data)
{
	const struct gen_convoy *convoy = burst->convoys[i];
	const struct gen_frame *packets = burst->packets + convoy->first;
	struct gen_stamp_run run = gen_stamp_run(burst->magic, burst->seq[i], burst->ticks[i]);
	uint8_t *base = data - convoy->frame.offset;

	for (uint32_t k = 0; k < convoy->packets; k++)
		__builtin_prefetch(
			base + packets[k].offset + gen_stamp_offset(packets[k].bytes), 1);
	for (uint32_t k = 0; k < convoy->packets; k++)
		gen_stamp_run_write(&run,
			base + packets[k].offset + gen_stamp_offset(packets[k].bytes),
			packets[k].sum);
}

#endif
