// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flows of a process that was killed go on in one that has the same functions and limits
// (docs/handover.md). The memory that they are in outlives the process. What is in it may be half written,
// so none of it is used as it is: each flow is read, checked and made anew in a zone of its own.
#ifndef CV_FLOW_RESTORE_H
#define CV_FLOW_RESTORE_H

#include "flow/hash.h"
#include "flow/path.h"
#include "packet/error.h"

// The file that the flows are in, which stays the zone's, and from which they can be restored from now on.
// -1: they cannot. Once its groups are there.
int cv_flow_zone_store(struct cv_flow_zone *zone);

struct cv_flow_restored {
	uint64_t flows; // that are known again
	uint64_t lost; // that were being written, or make no sense
};

// What a file of flows is.
enum cv_flow_origin {
	CV_FLOW_KEPT, // a zone's, of a process that was killed here
	CV_FLOW_REPLICATED, // a replica (flow/replica.h): flows' time-outs begin now
};

// Whether a file has flows that several workers shared, as they share the zone's: by this secret, which says
// which of them has a flow.
bool cv_flow_zone_homes_in(const struct cv_flow_zone *zone, int fd, enum cv_flow_origin origin,
	struct cv_flow_secret *secret);

// Makes the flows of a file anew, which stays the caller's. The zone's worker does not run yet, its groups
// are there, it has no flows, and its functions have begun to restore. Adds to *restored. 0; or a negative
// errno with error set: the file is another zone's, or nobody's, and the zone has no flows.
int cv_flow_zone_restore(struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd,
	enum cv_flow_origin origin, struct cv_flow_restored *restored, struct cv_error *error);

// Whether flows of a file can come back while the zone's worker runs: its functions allow it, and the file
// says how they are found.
enum cv_flow_later cv_flow_zone_restores_later(const struct cv_flow_zone *zone, int fd);

// As cv_flow_zone_restore(), of a file that was kept here, but that the flows come back while the worker
// runs: some in each poll iteration, and any that a packet comes for at once. Until all came, new ones find
// no room that these need; where there are to be none, until cv_flow_zone_accept().
int cv_flow_zone_restore_later(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd, struct cv_error *error);

// Whether no flows are to come back any more; the first time adds to *restored. By one thread.
bool cv_flow_zone_is_restored(struct cv_flow_zone *zone, struct cv_flow_restored *restored);

// From now on there may be new flows: all zones' came back, and the functions know that.
void cv_flow_zone_accept(struct cv_flow_zone *zone);

#endif
