// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows written into frames as these are sent: a few frames carry any number of flows, and the
// device meets the flows, not the memory that their frames would take. IPv4, UDP or TCP.
//
// The order is 0, 1, 2 …, or "shuffled" in steps of a golden section of their number: each flow
// once a round, far from the one before.
#ifndef GEN_TRAFFIC_WALK_H
#define GEN_TRAFFIC_WALK_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "gen/spec/spec.h"
#include "gen/traffic/stamp.h"

enum gen_walk_field {
	GEN_WALK_SRC_IP,
	GEN_WALK_DST_IP,
	GEN_WALK_SRC_PORT,
	GEN_WALK_DST_PORT,
	GEN_WALK_FIELDS
};

// low + at, where at counts modulo span, by `step` from flow to flow, by `over` from round to round.
struct gen_walk_value {
	uint32_t low;
	uint64_t at, span, step, over;
};

struct gen_walk {
	uint32_t flows; // 0: the frames were written before
	uint32_t part, parts; // its flow j is flow j * parts + part of all
	uint32_t first, at, step; // j of packet 0, of the next packet; from packet to packet
	uint32_t l3, l4; // where these begin
	uint32_t l3_sum, l4_sum; // of what the flows have in common, as the CPU reads 16-bit words
	uint16_t l4_check; // where the checksum is
	uint16_t zero_sum; // what a checksum of 0 is written as
	struct gen_walk_value values[GEN_WALK_FIELDS];
};

// What a flow's packets have in their headers, in host order, by field.
struct gen_walk_tuple {
	uint32_t field[GEN_WALK_FIELDS];
};

// For frames of `bytes` that are copies of `frame`, which gen_template_write wrote.
struct gen_walk gen_walk_begin(const struct gen_spec *spec, uint32_t flows, uint32_t part,
	uint32_t parts, const uint8_t *frame, uint32_t bytes);

// Of packet `seq`, by division.
struct gen_walk_tuple gen_walk_tuple(const struct gen_walk *walk, uint32_t seq);

static inline uint32_t gen_walk_next(struct gen_walk_value *value, bool over)
{
	const uint32_t now = value->low + (uint32_t)value->at;

	value->at += over ? value->over : value->step;
	value->at -= value->at >= value->span ? value->span : 0;
	return now;
}

// Makes `frame` the next flow's.
static inline void gen_walk_write(struct gen_walk *walk, uint8_t *frame)
{
	const bool over = walk->at >= walk->flows - walk->step;
	const rte_be32_t src =
		rte_cpu_to_be_32(gen_walk_next(&walk->values[GEN_WALK_SRC_IP], over));
	const rte_be32_t dst =
		rte_cpu_to_be_32(gen_walk_next(&walk->values[GEN_WALK_DST_IP], over));
	const rte_be16_t ports[2] = {
		rte_cpu_to_be_16((uint16_t)gen_walk_next(&walk->values[GEN_WALK_SRC_PORT], over)),
		rte_cpu_to_be_16((uint16_t)gen_walk_next(&walk->values[GEN_WALK_DST_PORT], over)),
	};
	const uint64_t addresses = (uint64_t)src + dst;
	const uint16_t l3_check = (uint16_t)~gen_fold(walk->l3_sum + addresses);
	uint16_t l4_check = (uint16_t)~gen_fold(walk->l4_sum + addresses + ports[0] + ports[1]);

	walk->at += over ? walk->step - walk->flows : walk->step;
	l4_check = l4_check == 0 ? walk->zero_sum : l4_check;
	memcpy(frame + walk->l3 + 10, &l3_check, 2);
	memcpy(frame + walk->l3 + 12, &src, 4);
	memcpy(frame + walk->l3 + 16, &dst, 4);
	memcpy(frame + walk->l4, ports, 4);
	memcpy(frame + walk->l4_check, &l4_check, 2);
}

#endif
