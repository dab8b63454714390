// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/ways.h"

#include <rte_common.h>

static uint32_t way_hash(const struct cv_flow_way *way)
{
	uint64_t low, high;
	uint32_t rest;

	_Static_assert(sizeof(*way) == 20, "every byte counts: none is padding");
	memcpy(&low, way, 8);
	memcpy(&high, (const uint8_t *)way + 8, 8);
	memcpy(&rest, (const uint8_t *)way + 16, 4);
	low = (low ^ rest) * 0x9e3779b97f4a7c15;
	return (uint32_t)(((low ^ low >> 32 ^ high) * 0xbf58476d1ce4e5b9) >> 40);
}

static void ways_index(struct cv_flow_ways *ways, unsigned way)
{
	unsigned at = way_hash(&ways->way[way]) % CV_FLOW_WAYS_INDEX;

	while (ways->index[at] != 0)
		at = (at + 1) % CV_FLOW_WAYS_INDEX;
	ways->index[at] = (uint16_t)way;
}

// Makes those that no flow uses free. At most once a tick.
static void ways_sweep(struct cv_flow_ways *ways, uint32_t now)
{
	if (ways->swept == now)
		return;
	ways->swept = now;
	memset(ways->index, 0, sizeof(ways->index));
	for (unsigned i = 1; i < CV_FLOW_WAYS_MAX; i++) {
		if (ways->flows[i] > 0)
			ways_index(ways, i);
		else
			ways->free[ways->free_count++] = (uint16_t)i;
	}
}

static struct cv_flow_way_mask mask_of(const struct cv_flow_way *way)
{
	struct cv_flow_way_mask mask = {.out_stays = 0xff,
		.more = (way->set & (CV_FLOW_SET_DSCP | CV_FLOW_SET_VLAN | CV_FLOW_SET_WRAP)) != 0};

	memset(mask.stays, 0xff, sizeof(mask.stays));
	if (way->set & CV_FLOW_SET_DST_MAC) {
		memset(mask.stays, 0, 6);
		memcpy(mask.value, way->dst_mac, 6);
	}
	if (way->set & CV_FLOW_SET_SRC_MAC) {
		memset(mask.stays + 6, 0, 6);
		memcpy(mask.value + 6, way->src_mac, 6);
	}
	if (way->set & CV_FLOW_SET_OUT) {
		mask.out_stays = 0;
		mask.out = way->out;
	}
	return mask;
}

void cv_flow_ways_init(struct cv_flow_ways *ways)
{
	ways->masks[0] = mask_of(&ways->way[0]);
	for (unsigned i = CV_FLOW_WAYS_MAX - 1; i > 0; i--)
		ways->free[ways->free_count++] = (uint16_t)i;
}

int cv_flow_ways_take(struct cv_flow_ways *ways, const struct cv_flow_way *way, uint32_t now)
{
	unsigned at = way_hash(way) % CV_FLOW_WAYS_INDEX;

	if (way->set == 0)
		return 0;
	for (; ways->index[at] != 0; at = (at + 1) % CV_FLOW_WAYS_INDEX) {
		unsigned index = ways->index[at];

		if (memcmp(&ways->way[index], way, sizeof(*way)) != 0)
			continue;
		ways->flows[index]++;
		return (int)index;
	}
	if (ways->free_count == 0)
		ways_sweep(ways, now);
	if (ways->free_count == 0)
		return -1;
	at = ways->free[--ways->free_count];
	ways->way[at] = *way;
	ways->masks[at] = mask_of(way);
	ways->flows[at] = 1;
	ways_index(ways, at);
	return (int)at;
}

void cv_flow_ways_give(struct cv_flow_ways *ways, unsigned way)
{
	if (way != 0)
		ways->flows[way]--;
}

bool cv_flow_ways_lead_inside(const struct cv_flow_ways *ways)
{
	unsigned indexed = 0;

	for (unsigned i = 0; i < CV_FLOW_WAYS_INDEX; i++) {
		if (ways->index[i] >= CV_FLOW_WAYS_MAX)
			return false;
		indexed += ways->index[i] != 0;
	}
	if (indexed >= CV_FLOW_WAYS_MAX || ways->free_count >= CV_FLOW_WAYS_MAX)
		return false;
	for (unsigned i = 0; i < ways->free_count; i++)
		if (ways->free[i] == 0 || ways->free[i] >= CV_FLOW_WAYS_MAX)
			return false;
	return true;
}
