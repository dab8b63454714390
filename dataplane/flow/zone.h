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

struct cv_flow_ways {
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

struct cv_flow_group {
	struct cv_flow_zone *zone;
	uint8_t index; // of the zone's
	uint8_t order[CV_FLOW_MEMBERS_MAX]; // members
	uint8_t position[CV_FLOW_MEMBERS_MAX]; // of members in order
	struct cv_nf_counters *counters[CV_FLOW_MEMBERS_MAX]; // by position
	// Of the burst: [0] by the flow path itself, [1 + i] by the function at position i.
	struct {
		uint32_t packets, bytes;
	} dropped[1 + CV_FLOW_MEMBERS_MAX];
	bool drops; // some of these are not 0
	struct cv_nf_counters own;
};

static CV_INLINE void *cv_flow_slot(
	const struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned member)
{
	const struct cv_flow_table *table = &zone->table[v6];

	return table->slots + (size_t)index * table->slots_stride + zone->members[member].slot;
}

// Any packet, whatever it is: slot is what was found for it, or CV_FLOW_NONE. A verdict.
uint8_t cv_flow_one(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	uint32_t slot);

// Shows the packet to the functions that follow its flow. A verdict.
uint8_t cv_flow_follow(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, uint16_t l4, uint8_t tcp_flags, struct cv_flow *flow, bool v6,
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

// Learns which members changed, and begins a new epoch for each.
void cv_flow_learn_changes(struct cv_flow_zone *zone);

// Changes in a packet what its flow's way says.
void cv_flow_apply_way(const struct cv_flow_zone *zone, struct cv_view *view, unsigned way);

typedef uint16_t cv_flow_run(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, uint16_t n);

// The hot half, for any processor, and for those with AES and AVX2.
cv_flow_run cv_flow_run_baseline, cv_flow_run_aes;

#endif
