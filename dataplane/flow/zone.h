// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The inside of the flow path, for its own files: a zone, and what its hot half (run.h) leaves to
// the rest.
#ifndef CV_FLOW_ZONE_H
#define CV_FLOW_ZONE_H

#include "chain/trace_here.h"
#include "flow/fragments.h"
#include "flow/hosts.h"
#include "flow/lookup.h"
#include "flow/memory.h"
#include "flow/parse.h"
#include "flow/path.h"
#include "flow/rewrite.h"
#include "flow/table.h"
#include "flow/tcp.h"
#include "flow/ways.h"
#include "flow/window.h"

#define CV_FLOW_TICKS_PER_S 32 // at least; time is counted in ticks of 2^n TSC cycles
// Where several workers see packets of a flow: each time it is written when the last one came, the
// others read that line from another core's cache.
#define CV_FLOW_STALE_SHARED (CV_FLOW_TICKS_PER_S / 2)

// Where a member's slots are: that of flow 0, and from one flow to the next.
struct cv_flow_place {
	uint8_t *first;
	uint32_t stride;
};

struct cv_flow_zone_member {
	const struct cv_nf_flow *flow;
	void (*tick)(void *instance, struct cv_nf_worker *worker); // NULL: not from here
	void *instance;
	void *next; // the instance from now on: cv_flow_zone_replace() writes, the worker reads
	const uint32_t *generation; // NULL: never changes
	uint32_t known; // generation that decisions were made with
	uint32_t changed; // the epoch when it last changed
	struct cv_flow_place slots[2]; // of IPv4 and IPv6 flows
};

struct cv_flow_restoring;

struct cv_flow_zone {
	struct cv_flow_table table[2]; // IPv4, IPv6
	uint32_t now; // tick
	uint32_t epoch; // grows when a member changes
	bool trusted; // cv_flow_is_free() said yes without a look
	uint64_t removals; // of flows: what was found before one may not be there
	unsigned shift; // of TSC cycles to ticks
	uint32_t stale; // ticks that a flow's last packet may be later than its entry says, and 1
	unsigned members_count;
	struct cv_flow_zone_member members[CV_FLOW_MEMBERS_MAX];
	uint32_t timeouts[CV_FLOW_TIMEOUTS]; // ticks
	enum cv_flow_windows windows; // that are checked
	struct cv_flow_place window[2]; // struct cv_flow_window of IPv4 and IPv6 flows
	uint32_t denied_max[2];
	uint32_t denied[2];

	uint32_t due[2]; // entries that ageing still has to see
	uint32_t aged; // until which tick that is counted
	struct cv_flow_hosts hosts;
	struct cv_flow_group *groups[CV_FLOW_GROUPS_MAX];
	unsigned groups_count;
	struct cv_flow_counters counters;
	const struct cv_flow_homes *homes; // NULL: no other worker has flows of these members
	struct cv_flow_lookup lookup;
	struct cv_flow_memory memory;
	struct cv_flow_carried *carried; // its end: what goes along to another process
	bool stored; // flow/restore.h: that is to know its groups
	// Flows of a process before that come back: the worker's, NULL when all came; and its owner's.
	struct cv_flow_restoring *restoring, *restored;
	bool refuses; // new flows, until all came back; atomic
	struct cv_flow_secret secret;
	struct cv_flow_ways ways;
	struct cv_flow_fragments fragments;
	// For other workers: lines that nothing else is in.
	_Alignas(RTE_CACHE_LINE_SIZE) uint32_t versions[2][CV_FLOW_VERSIONS];
	_Alignas(RTE_CACHE_LINE_SIZE) uint32_t published_epoch;
};

// A member that may follow flows, or the check of TCP's windows.
struct cv_flow_follower {
	unsigned (*follow)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n);
	void *instance;
	struct cv_flow_place slots[2];
	uint8_t bit; // of struct cv_flow's follows
	uint8_t position;
};

struct cv_flow_group {
	struct cv_flow_zone *zone;
	uint8_t index; // of the zone's
	uint8_t order[CV_FLOW_MEMBERS_MAX]; // members
	uint8_t position[CV_FLOW_MEMBERS_MAX]; // of members in order
	struct cv_flow_follower followers[1 + CV_FLOW_MEMBERS_MAX]; // in order
	unsigned followers_count;
	struct cv_nf_counters *counters[CV_FLOW_MEMBERS_MAX]; // by position
	uint8_t outputs[CV_FLOW_MEMBERS_MAX]; // by position: the group's number of its first
	// Packets of the burst that did not go on to the next function: [0] the flow path itself
	// dropped them, [1 + i] they left at position i.
	struct {
		uint32_t packets, bytes;
	} left[1 + CV_FLOW_MEMBERS_MAX];
	bool some_left; // some of these are not 0
	struct cv_nf_counters own;
};

static CV_INLINE void *cv_flow_slot_at(const struct cv_flow_place *place, uint32_t index)
{
	return place->first + (size_t)index * place->stride;
}

static CV_INLINE void *cv_flow_slot(
	const struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned member)
{
	return cv_flow_slot_at(&zone->members[member].slots[v6], index);
}

// A packet that leaves at the function at position, by its verdict. Returns the group's.
static CV_INLINE uint8_t cv_flow_leave(
	struct cv_flow_group *group, unsigned position, const struct cv_view *view, uint8_t verdict)
{
	group->left[1 + position].packets++;
	group->left[1 + position].bytes += view->len;
	group->some_left = true;
	if (cv_trace_is_on())
		cv_trace_decided(view, position, verdict);
	if (verdict >= CV_OUTPUT(0))
		return (uint8_t)(verdict + group->outputs[position]);
	if (CV_UNLIKELY(verdict == CV_ABSORBED))
		cv_count(&group->counters[position]->absorbed, 1);
	else
		cv_count(&group->counters[position]->drops[verdict - CV_DROP(0)], 1);
	return CV_DROP(CV_FLOW_BY_FUNCTION);
}

// A packet that the flow path drops. Returns the verdict.
static CV_INLINE uint8_t cv_flow_drop(
	struct cv_flow_group *group, const struct cv_view *view, enum cv_flow_drop why)
{
	group->left[0].packets++;
	group->left[0].bytes += view->len;
	group->some_left = true;
	return CV_DROP(why);
}

// Where the function that a flow's verdict is of stands in a group.
static CV_INLINE unsigned cv_flow_last_position(
	const struct cv_flow_group *group, const struct cv_flow *flow)
{
	const struct cv_flow_group *decided = group->zone->groups[flow->group];

	return group->position[decided->order[flow->deciders - 1]];
}

// A packet that does not pass a follower, by its verdict. Returns the group's.
static inline uint8_t cv_flow_stop(struct cv_flow_group *group,
	const struct cv_flow_follower *follower, const struct cv_view *view, uint8_t verdict)
{
	if (follower->bit == CV_FLOW_WINDOWED)
		return cv_flow_drop(group, view, CV_FLOW_OUT_OF_WINDOW);
	return cv_flow_leave(group, follower->position, view, verdict);
}

// Has a packet wrapped by the function that its way names. A verdict.
static inline uint8_t cv_flow_wrap(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *view, unsigned way)
{
	const struct cv_flow_way *of = &group->zone->ways.way[way];
	const unsigned index = of->wrapper - 1u;
	const struct cv_flow_zone_member *member = &group->zone->members[index];
	const uint8_t verdict = member->flow->wrap(member->instance, worker, view, of->wrap);

	if (CV_UNLIKELY(verdict != CV_NEXT))
		return cv_flow_leave(group, group->position[index], view, verdict);
	cv_flow_ways_apply_wrapped(&group->zone->ways, view, way);
	return CV_NEXT;
}

static CV_INLINE struct cv_flow_packet cv_flow_packet_of(struct cv_flow_zone *zone,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, unsigned direction)
{
	return (struct cv_flow_packet){
		.view = view,
		.l4 = parsed->l4,
		.tcp_flags = parsed->tcp_flags,
		.direction = (uint8_t)direction,
		.zone = zone,
	};
}

// zone.c: what is common to all that happens to flows.

static CV_INLINE uint64_t cv_flow_hash_of(
	const struct cv_flow_zone *zone, bool v6, const union cv_flow_key *key)
{
	return cv_flow_hash(&zone->secret, key, CV_FLOW_KEY_BYTES(v6));
}

uint64_t cv_flow_host_hash(const struct cv_flow_zone *zone, bool v6, const union cv_flow_key *key);

// What other workers read of a flow is not so any more after this: it is about to end, or to be
// another. They find it settled no more.
static CV_INLINE void cv_flow_unsettle(struct cv_flow_table *table, uint32_t index)
{
	struct cv_flow *flow = cv_flow_at(table, index);
	const uint8_t settled = CV_FLOW_SETTLED(CV_FLOW_FORWARD) | CV_FLOW_SETTLED(CV_FLOW_REPLY);

	cv_flow_table_touch(table, index);
	__atomic_store_n(&flow->flags, flow->flags & (uint8_t)~settled, __ATOMIC_RELAXED);
	cv_flow_table_touch(table, index);
}

// Learns which members changed, and begins a new epoch for each.
void cv_flow_learn_changes(struct cv_flow_zone *zone);

// Members that changed since an epoch, one bit each.
uint8_t cv_flow_changed_since(const struct cv_flow_zone *zone, uint32_t epoch);

// The flow ends when its time-out is over, counted from a tick.
void cv_flow_set_deadline(struct cv_flow_zone *zone, bool v6, uint32_t index, uint32_t from);

// A flow's time-out is another: ageing looks at it earlier if it is shorter, later by itself.
void cv_flow_set_timeout(
	struct cv_flow_zone *zone, bool v6, uint32_t index, enum cv_flow_timeout timeout);

// Updates the counters of flows that there are.
void cv_flow_count(struct cv_flow_zone *zone);

// The functions of the group from the first to before end hear that a flow has ended.
void cv_flow_end_functions(const struct cv_flow_group *group, struct cv_nf_worker *worker, bool v6,
	uint32_t index, unsigned first, unsigned end);

void cv_flow_remove_key(struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned direction);

// Ends a flow that is in the table.
void cv_flow_end(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6, uint32_t index);

// Ends n <= CV_BURST_MAX of them. What that reads is asked for before, of all.
void cv_flow_end_all(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	const uint32_t *indices, unsigned n);

// handover.c

// A zone's memory says what it is from now on.
void cv_flow_zone_mark(struct cv_flow_zone *zone);

// What two zones must have in common for the same bytes to mean the same; and what a file says that it is,
// 0 if it is none.
uint64_t cv_flow_zone_layout(const struct cv_flow_zone *zone);
uint64_t cv_flow_zone_layout_in(int fd, const struct cv_flow_zone *zone);

// Whether the members have places in an order, each one.
bool cv_flow_zone_is_order(const struct cv_flow_zone *zone, const uint8_t *order);

// restore.c, while flows come back (zone->restoring is not NULL)

// Some come back.
void cv_flow_restore_step(struct cv_flow_zone *zone, struct cv_nf_worker *worker);

// The slot of the flow that a packet with this key is of, which came back for it; or CV_FLOW_NONE.
uint32_t cv_flow_restore_for(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	const union cv_flow_key *key, uint64_t hash);

// Whether there is room for no other flows.
bool cv_flow_restore_needs_room(const struct cv_flow_zone *zone, bool v6);

void cv_flow_restoring_free(struct cv_flow_restoring *it);

// decide.c

// The first packet of a flow, with its key's hash. Returns the flow's slot, or CV_FLOW_NONE with the packet's verdict.
uint32_t cv_flow_decide(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint64_t hash,
	uint8_t *verdict);

// The slot of a flow whose epoch has passed, after the functions decided again; CV_FLOW_NONE: it
// has ended, and *verdict is the packet's unless that is CV_NEXT: then it is to be decided on.
uint32_t cv_flow_renew(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint32_t slot,
	uint8_t *verdict);

// Packets of common kinds of which no flow is known: views[which[i]], n of them. Asks for what will
// be read when they are decided on.
void cv_flow_expect(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *views, const uint8_t *which, unsigned n);

// The first packets of flows, of common kinds, in their order: views[which[i]], n <= CV_FLOW_OPENINGS of
// them, of which no flow was known, with the hashes of their keys. Begins their flows. slots[i] is that of a
// packet that its flow's followers have not seen, and that is not rewritten yet; CV_FLOW_NONE: its verdict is
// written, or it is late. Returns those, a bit each: they take the long way, behind the others.
#define CV_FLOW_OPENINGS 32 // the bits of its result
uint32_t cv_flow_open(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, const uint8_t *which, const uint64_t *hashes,
	unsigned n, uint32_t *slots);

// one.c

// Checks the windows of common packets of established connections: a follower, with the zone as
// its instance and a struct cv_flow_window as its slot.
unsigned cv_flow_window_follow(void *instance, struct cv_nf_worker *worker,
	const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n);

// Any packet, whatever it is: slot is what was found for it, or CV_FLOW_NONE. A verdict.
uint8_t cv_flow_one(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	uint32_t slot);

// A flow's state after its first packet, of a common kind. False: nothing was done, for its windows are
// checked as well; cv_flow_pass() does.
bool cv_flow_track_first(
	struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed, uint32_t slot);

// A packet that is of a flow. A verdict.
uint8_t cv_flow_pass(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	const struct cv_flow_parsed *parsed, uint32_t slot);

typedef uint16_t cv_flow_run(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *views, uint8_t *verdicts, uint16_t n);

// The hot half, for any processor, and for those with AES and AVX2.
cv_flow_run cv_flow_run_baseline, cv_flow_run_aes;

#endif
