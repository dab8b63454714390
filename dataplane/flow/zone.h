// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The inside of the flow path, for its own files: a zone, and what its hot half (run.h) leaves to
// the rest.
#ifndef CV_FLOW_ZONE_H
#define CV_FLOW_ZONE_H

#include "flow/fragments.h"
#include "flow/hosts.h"
#include "flow/parse.h"
#include "flow/path.h"
#include "flow/rewrite.h"
#include "flow/table.h"
#include "flow/tcp.h"

#define CV_FLOW_WAYS_MAX 4096 // different ones at a time; the first sets nothing
#define CV_FLOW_WAYS_INDEX 8192 // places to find them by
#define CV_FLOW_TICKS_PER_S 32 // at least; time is counted in ticks of 2^n TSC cycles

// A way as the hot half applies it: bits of a packet's beginning that are replaced, and their values.
struct cv_flow_way_mask {
	uint8_t mask[16], value[16];
	uint8_t out_mask, out;
	bool more; // there is more to set: cv_flow_rewrite_way()
} __attribute__((aligned(16)));

struct cv_flow_ways {
	struct cv_flow_way_mask masks[CV_FLOW_WAYS_MAX];
	struct cv_flow_way way[CV_FLOW_WAYS_MAX];
	uint32_t flows[CV_FLOW_WAYS_MAX]; // that use it
	uint16_t index[CV_FLOW_WAYS_INDEX]; // 0: none
	uint16_t free[CV_FLOW_WAYS_MAX];
	unsigned free_count;
	uint32_t swept; // the tick when unused ones were last looked for
};

struct cv_flow_zone_member {
	const struct cv_nf_flow *flow;
	void *instance;
	const uint32_t *generation; // NULL: never changes
	uint32_t known; // generation that decisions were made with
	uint32_t changed; // the epoch when it last changed
	uint32_t slot; // offset of its slot
};

struct cv_flow_zone {
	struct cv_flow_table table[2]; // IPv4, IPv6
	uint32_t now; // tick
	uint32_t epoch; // grows when a member changes
	uint64_t removals; // of flows: what was found before one may not be there
	unsigned shift; // of TSC cycles to ticks
	unsigned members_count;
	unsigned generations_count; // members that have one
	struct cv_flow_zone_member members[CV_FLOW_MEMBERS_MAX];
	uint32_t timeouts[CV_FLOW_TIMEOUTS]; // ticks
	uint32_t denied_max[2];
	uint32_t denied[2];

	uint32_t due[2]; // entries that ageing still has to see
	uint32_t aged; // until which tick that is counted
	struct cv_flow_hosts hosts;
	struct cv_flow_group *groups[CV_FLOW_GROUPS_MAX];
	unsigned groups_count;
	struct cv_flow_counters counters;
	void *memory;
	size_t memory_bytes;
	struct cv_flow_secret secret;
	struct cv_flow_ways ways;
	struct cv_flow_fragments fragments;
};

// A member that may follow flows.
struct cv_flow_follower {
	uint8_t (*follow)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_packet *packet, void *slot);
	void *instance;
	uint32_t slot; // offset
	uint8_t bit; // of struct cv_flow's follows
	uint8_t position;
};

struct cv_flow_group {
	struct cv_flow_zone *zone;
	uint8_t index; // of the zone's
	uint8_t order[CV_FLOW_MEMBERS_MAX]; // members
	uint8_t position[CV_FLOW_MEMBERS_MAX]; // of members in order
	struct cv_flow_follower followers[CV_FLOW_MEMBERS_MAX]; // members that can, in order
	unsigned followers_count;
	struct cv_nf_counters *counters[CV_FLOW_MEMBERS_MAX]; // by position
	// Of the burst: [0] by the flow path itself, [1 + i] by the function at position i.
	struct {
		uint32_t packets, bytes;
	} dropped[1 + CV_FLOW_MEMBERS_MAX];
	bool drops; // some of these are not 0
	struct cv_nf_counters own;
};

// A flow's slots, of all members.
static CV_INLINE uint8_t *cv_flow_slots(const struct cv_flow_table *table, uint32_t index)
{
	return table->slots + (size_t)index * table->slots_stride;
}

static CV_INLINE void *cv_flow_slot(
	const struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned member)
{
	return cv_flow_slots(&zone->table[v6], index) + zone->members[member].slot;
}

// Any packet, whatever it is: slot is what was found for it, or CV_FLOW_NONE. A verdict.
uint8_t cv_flow_one(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	uint32_t slot);

// Counts a packet that the function at position dropped for a reason of its own (its verdict).
static CV_INLINE uint8_t cv_flow_drop_by(
	struct cv_flow_group *group, unsigned position, const struct cv_view *view, uint8_t verdict)
{
	group->dropped[1 + position].packets++;
	group->dropped[1 + position].bytes += view->len;
	group->drops = true;
	cv_count(&group->counters[position]->drops[verdict - CV_DROP(0)], 1);
	return CV_DROP(CV_FLOW_BY_FUNCTION);
}

// Shows a packet to the functions that follow its flow. A verdict.
static CV_INLINE uint8_t cv_flow_follow(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_flow_packet *packet, uint8_t follows, uint8_t *slots)
{
	for (unsigned i = 0; i < group->followers_count; i++) {
		const struct cv_flow_follower *follower = &group->followers[i];
		uint8_t verdict;

		if (!(follows & follower->bit))
			continue;
		verdict = follower->follow(
			follower->instance, worker, packet, slots + follower->slot);
		if (CV_UNLIKELY(verdict != CV_NEXT))
			return cv_flow_drop_by(group, follower->position, packet->view, verdict);
	}
	return CV_NEXT;
}

// Learns which members changed, and begins a new epoch for each.
void cv_flow_learn_changes(struct cv_flow_zone *zone);

// Changes in a packet what its flow's way says: bits by their mask first, then the rest.
static CV_INLINE void cv_flow_apply_way(
	const struct cv_flow_zone *zone, struct cv_view *view, unsigned way)
{
	const struct cv_flow_way_mask *mask = &zone->ways.masks[way];
	uint64_t bits[2], values[2], bytes[2];

	memcpy(bytes, view->data, 16); // an IP packet's
	memcpy(bits, mask->mask, 16);
	memcpy(values, mask->value, 16);
	bytes[0] = (bytes[0] & ~bits[0]) | values[0];
	bytes[1] = (bytes[1] & ~bits[1]) | values[1];
	memcpy(view->data, bytes, 16);
	view->out = (uint8_t)((view->out & ~mask->out_mask) | mask->out);
	if (CV_UNLIKELY(mask->more))
		cv_flow_rewrite_way(view, &zone->ways.way[way]);
}

typedef uint16_t cv_flow_run(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, uint16_t n);

// The hot half, for any processor, and for those with AES and AVX2.
cv_flow_run cv_flow_run_baseline, cv_flow_run_aes;

#endif
