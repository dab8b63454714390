// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flow path: consecutive stateful functions of a chain are one step of its path, a group. A
// burst takes one look-up in the flow table; the first packet of a flow takes decide() of each
// function in their order (flow/flow.h); every packet takes one rewrite, in place. Counters of the
// functions are what they would be if they ran one by one.
//
// Groups of the same functions share a zone, whatever their order: the flows that these functions
// know, on one worker. So replies that come by another chain, with the path reversed, find the flow.
#ifndef CV_FLOW_PATH_H
#define CV_FLOW_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "chain/counters.h"
#include "chain/nf.h"
#include "flow/flow.h"
#include "flow/limits.h"
#include "packet/error.h"

#define CV_FLOW_MEMBERS_MAX 7 // functions of a zone
#define CV_FLOW_GROUPS_MAX 64 // of a zone

struct cv_flow_zone;
struct cv_flow_group;

// Why the flow path itself, no function, dropped a packet.
enum cv_flow_drop {
	CV_FLOW_BY_FUNCTION, // not counted here: the function that dropped it counts it
	CV_FLOW_TABLE_FULL,
	CV_FLOW_HOST_LIMIT, // its source has as many flows as it may
	CV_FLOW_CONFLICT, // its replies could not be told from another flow's
	CV_FLOW_NOT_REWRITABLE, // the protocol has no ports that can be changed
	CV_FLOW_NO_FIRST_FRAGMENT, // the first one, which has the ports, did not come before
	CV_FLOW_OUT_OF_WINDOW, // TCP that its receiver would not accept
	CV_FLOW_RESTORING, // a new flow, while those of a process that was killed come back
	CV_FLOW_DROPS,
};

extern const char *const cv_flow_drop_names[CV_FLOW_DROPS]; // NULL for the first

struct cv_flow_member {
	const struct cv_nf *nf; // with flow
	void *instance;
};

// What a zone counts. One writer, the worker.
struct cv_flow_counters {
	uint64_t flows_ipv4, flows_ipv6; // now
	uint64_t denied; // of these, now
	uint64_t created, timed_out, invalidated; // since the start
};

// Whether the function remembers flows: it belongs into a group.
bool cv_flow_is_stateful(const struct cv_nf *nf, const void *instance);

// Which windows of TCP a stateful function wants checked.
enum cv_flow_windows cv_flow_windows_of(const struct cv_nf *nf, const void *instance);

// Bytes that a zone of these functions takes: limits are those of one worker.
size_t cv_flow_zone_bytes(
	const struct cv_flow_member *members, unsigned count, const struct cv_flow_limits *limits);

// Bytes of all slots of the members. More than CV_FLOW_SLOTS_MAX are refused by cv_flow_zone_create().
unsigned cv_flow_slots_bytes(const struct cv_flow_member *members, unsigned count);

// Makes a zone of these functions for one worker, whose limits these are: all of its memory is
// there when it returns. NULL with error set, which the caller puts a name before.
struct cv_flow_zone *cv_flow_zone_create(const struct cv_flow_member *members, unsigned count,
	const struct cv_flow_limits *limits, uint64_t tsc_hz, struct cv_error *error);

// Other workers have zones of the same functions, and each flow has one worker that keeps it.
void cv_flow_zone_share(struct cv_flow_zone *zone, const struct cv_flow_homes *homes);

// Functions do not hear of the flows that are left. NULL is allowed.
void cv_flow_zone_destroy(struct cv_flow_zone *zone);

// A group of the zone's members, all of them, in their order in a chain: order[i] is a member's
// index, counters[i] that function's counters of this worker. NULL: too many, or no memory. The
// zone owns it.
struct cv_flow_group *cv_flow_group_create(
	struct cv_flow_zone *zone, const uint8_t *order, struct cv_nf_counters *const *counters);

// The group of the zone with this order, or NULL.
struct cv_flow_group *cv_flow_group_find(struct cv_flow_zone *zone, const uint8_t *order);

// What it calls for a member, by its index, once in each poll iteration; NULL: nothing, for another
// zone of the worker does. By the worker, or before it runs.
void cv_flow_zone_set_tick(struct cv_flow_zone *zone, unsigned member,
	void (*tick)(void *instance, struct cv_nf_worker *worker));

// Which of the group's outputs is the first of each function's, by position: a function's CV_OUTPUT(i)
// becomes the group's CV_OUTPUT(first + i). Not needed where no function has outputs.
void cv_flow_group_set_outputs(struct cv_flow_group *group, const uint8_t *first);

// Another instance of a member, by its index, takes the place of the one before: its flows are decided
// again as they come, with their slots as they are. By any thread; the worker knows the one before no
// longer when it has begun and ended a poll iteration after the call.
void cv_flow_zone_replace(struct cv_flow_zone *zone, unsigned member, void *instance);

// The step of a path that a group is: struct cv_nf's process(). The instance is the group.
uint16_t cv_flow_process(void *group, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n);

// What becomes of a packet of a flow, in a trace: struct cv_nf's explain() and in_words().
enum cv_flow_because {
	CV_FLOW_BECAUSE_NEW = 1, // before the burst that the packet is in; or it is decided on anew
	CV_FLOW_BECAUSE_FORWARD, // of a flow that is known
	CV_FLOW_BECAUSE_REPLY,
	CV_FLOW_BECAUSE_DENIED, // known not to pass
	CV_FLOW_BECAUSE_FOREIGN, // another worker keeps it
};

extern const char *const cv_flow_because_words[]; // by enum cv_flow_because; NULL for 0

void cv_flow_explain(const void *group, const struct cv_nf_worker *worker,
	const struct cv_view *view, struct cv_nf_because *because);

// What a path counts for this step: packets, cycles, drops by enum cv_flow_drop.
struct cv_nf_counters *cv_flow_group_counters(struct cv_flow_group *group);

// Calls the members' tick(), and ends flows whose time is over: a bounded number, once in each poll
// iteration, for one group of
// the zone: struct cv_nf's tick().
void cv_flow_tick(void *group, struct cv_nf_worker *worker);

// May be read by any thread with cv_counted().
const struct cv_flow_counters *cv_flow_zone_counters(const struct cv_flow_zone *zone);

#endif
