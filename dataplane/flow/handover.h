// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The flows of a zone go over to that of another process, which has the same functions and limits
// (docs/handover.md): both map the memory that the flows are in, and what is beside it is written to its
// end when the worker stands still. The functions decide on each flow again at its next packet, as after
// a change of their rules.
#ifndef CV_FLOW_HANDOVER_H
#define CV_FLOW_HANDOVER_H

#include "flow/hash.h"
#include "flow/path.h"
#include "packet/error.h"

// Whether a function of it knows more of flows than their slots, which goes along apart (flow/flow.h).
bool cv_flow_zone_keeps(const struct cv_flow_zone *zone);

// Why its flows cannot go over, in words that go on "its flows ..."; NULL: they can.
const char *cv_flow_zone_stays(const struct cv_flow_zone *zone);

// The file that the flows are in, which stays the zone's. Packets flow.
int cv_flow_zone_give(struct cv_flow_zone *zone);

// What is beside the flows goes into the file. The worker stands still.
void cv_flow_zone_freeze(struct cv_flow_zone *zone);

// The other process, in this order; the zone's worker does not run yet, its groups are there, and its
// functions have what they know of flows.

// The flows are those in a file, which becomes the zone's own, also after an error. They still change. 0;
// -ESTALE: they are kept in another layout there, and the zone has its own, none; or another negative errno:
// the zone is to be destroyed. error is set.
int cv_flow_zone_take(struct cv_flow_zone *zone, int fd, struct cv_error *error);

// Whether what came is whole, once it was frozen. 0, or a negative errno with error set: as above.
int cv_flow_zone_taken(struct cv_flow_zone *zone, struct cv_error *error);

// By what several workers shared the flows that came; NULL: one has them all. Its own are to be shared by it,
// too.
const struct cv_flow_secret *cv_flow_zone_taken_homes(const struct cv_flow_zone *zone);

// From now on they are the zone's. Nothing was written to the file before.
void cv_flow_zone_adopt(struct cv_flow_zone *zone);

#endif
