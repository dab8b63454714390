// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The frames of one stream, built before the trial and sent round and round: packet `seq` is
// frame seq % count. Sending one then takes no more than its stamp, and its flow's addresses and
// ports if there is a walk.
#ifndef GEN_TRAFFIC_POOL_H
#define GEN_TRAFFIC_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "gen/spec/spec.h"
#include "gen/traffic/walk.h"
#include "gen/traffic/wire.h"

struct gen_convoy;

struct gen_pool {
	uint8_t *base;
	size_t used_bytes; // of the memory
	uint32_t count; // of packets
	struct gen_frame *frames; // one for each packet
	uint32_t convoy_count;
	struct gen_convoy *convoys; // what is sent instead of frames; NULL: frames are
	uint32_t flow_count; // packet `seq` belongs to flow seq % flow_count …
	uint32_t *flow_of; // … or, not NULL, to flow_of[seq % count]
	uint64_t *gaps_ns; // replay: from packet i to the next; NULL otherwise
	uint32_t pass_count; // replay: packets of the capture
	uint64_t bytes; // of all frames, without FCS
	struct gen_walk walk; // .flows > 0: writes the frames as they are sent
};

// Which part of the flows a pool carries: those with index % parts == part.
struct gen_part {
	uint32_t part, parts;
};

struct gen_room {
	uint8_t *memory; // 64-byte aligned, at least one cache line kept free before each frame
	size_t bytes;
	uint32_t frame_max; // bytes without FCS
	uint32_t frames_min; // a send queue's places: as many frames may be on their way at once
};

// Fills *pool. 0, or a negative errno with error set (the spec's fault: too short or too long frames,
// too many of them, an unreadable size file). gen_pool_free afterwards in both cases.
int gen_pool_build(struct gen_pool *pool, const struct gen_spec *spec, struct gen_part part,
	const struct gen_room *room, struct cv_error *error);

// `memory` stays the caller's.
void gen_pool_free(struct gen_pool *pool);

#endif
