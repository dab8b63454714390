// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A copy of a zone's flows in the memory of another machine, to restore them from (flow/restore.h,
// docs/handover.md). It has what restoring reads, at the places where the zone's file has it, and zeros
// everywhere else: no times, for clocks differ, and no windows of TCP, which are others with each packet.
//
// Whoever keeps it reads the zone's file while the worker writes. What was being written comes in pieces;
// it differs from what was sent until it is whole.
#ifndef CV_FLOW_REPLICA_H
#define CV_FLOW_REPLICA_H

#include "flow/path.h"

// Where what is copied lies in a zone's file, and how far the copying is. All of it lives on without the
// zone.
struct cv_flow_replica {
	uint64_t layout;
	size_t carried; // offsets in the file
	struct {
		size_t deadlines, flows, beside;
		uint32_t beside_bytes; // of each flow
		uint32_t max;
	} table[2]; // IPv4, IPv6
	bool v6; // where it is
	uint32_t index;
	uint64_t flows; // of this pass, so far
};

// What two zones must have in common for one to be restored from the other's replica.
uint64_t cv_flow_zone_replica_layout(const struct cv_flow_zone *zone);

void cv_flow_zone_replica(const struct cv_flow_zone *zone, struct cv_flow_replica *replica);

// Writes a part of the copy, which is as *sent has it from now on. False: it cannot.
typedef bool cv_flow_replica_write(void *to, size_t at, const void *bytes, size_t count);

enum cv_flow_replica_step {
	CV_FLOW_REPLICA_GOES_ON,
	CV_FLOW_REPLICA_DONE, // all flows were looked at: the next step begins again
	CV_FLOW_REPLICA_FAILED,
};

// Looks at some more flows of the file at live, and writes what is otherwise in the copy at sent: zeros at
// first, as long as the file. Takes bounded time.
enum cv_flow_replica_step cv_flow_replica_step(struct cv_flow_replica *replica, const void *live,
	void *sent, cv_flow_replica_write *write, void *to);

#endif
