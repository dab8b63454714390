// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/walk.h"

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

// Near a golden section of them: no two packets that follow each other are of flows that do.
static uint32_t far_step(uint32_t flows)
{
	uint32_t step = (uint32_t)(flows * 0.6180339887498949) | 1;

	while (step < flows && greatest_divisor(flows, step) != 1)
		step++;
	return step < flows ? step : 1;
}

static uint32_t sum_words(const uint8_t *at, uint32_t bytes)
{
	uint32_t sum = 0;
	uint16_t word;

	for (; bytes >= 2; at += 2, bytes -= 2) {
		memcpy(&word, at, 2);
		sum += word;
	}
	if (bytes == 1) {
		uint8_t last[2] = {*at, 0};

		memcpy(&word, last, 2);
		sum += word;
	}
	return sum;
}

static struct gen_walk_value begin(const struct gen_range *range, const struct gen_walk *walk)
{
	struct gen_walk_value value = {.span = range->span};
	const uint64_t step = (uint64_t)walk->step * walk->parts % range->span;
	const uint64_t round = (uint64_t)walk->flows * walk->parts % range->span;

	for (int i = 12; i < 16; i++)
		value.low = value.low << 8 | range->low[i];
	value.at = ((uint64_t)walk->first * walk->parts + walk->part) % range->span;
	value.step = step;
	value.over = (step + range->span - round) % range->span;
	return value;
}

struct gen_walk gen_walk_begin(const struct gen_spec *spec, uint32_t flows, uint32_t part,
	uint32_t parts, const uint8_t *frame, uint32_t bytes)
{
	const struct gen_flows *all = &spec->flows;
	const bool tcp = all->protocol == GEN_TCP;
	const uint32_t l3 = all->tagged ? 18 : 14, l4 = l3 + 20;
	struct gen_walk walk = {
		.flows = flows,
		.part = part,
		.parts = parts,
		.step = all->shuffle ? far_step(flows) : 1,
		.l3 = l3,
		.l4 = l4,
		.l4_check = (uint16_t)(l4 + (tcp ? 16 : 6)),
		.zero_sum = tcp ? 0 : UINT16_MAX,
	};

	walk.step = flows > 1 ? walk.step : 1;
	walk.first = (uint32_t)((uint64_t)(all->first / parts) * walk.step % flows);
	walk.at = walk.first;
	walk.values[GEN_WALK_SRC_IP] = begin(&all->src_ip, &walk);
	walk.values[GEN_WALK_DST_IP] = begin(&all->dst_ip, &walk);
	walk.values[GEN_WALK_SRC_PORT] = begin(&all->src_port, &walk);
	walk.values[GEN_WALK_DST_PORT] = begin(&all->dst_port, &walk);

	// Without checksums, addresses and ports, which lie at even places of both headers.
	walk.l3_sum = sum_words(frame + l3, 10);
	walk.l4_sum = sum_words(frame + l4 + 4, bytes - l4 - 4) -
		      sum_words(frame + walk.l4_check, 2) +
		      rte_cpu_to_be_16((uint16_t)(bytes - l4)) +
		      rte_cpu_to_be_16((uint16_t)all->protocol);
	return walk;
}

struct gen_walk_tuple gen_walk_tuple(const struct gen_walk *walk, uint32_t seq)
{
	const uint64_t j = (walk->first + (uint64_t)seq * walk->step) % walk->flows;
	const uint64_t flow = j * walk->parts + walk->part;
	struct gen_walk_tuple tuple;

	for (int i = 0; i < GEN_WALK_FIELDS; i++)
		tuple.field[i] = walk->values[i].low + (uint32_t)(flow % walk->values[i].span);
	return tuple;
}
