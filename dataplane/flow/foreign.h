// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Foreign flows: those that another worker keeps, where several share a chain. A worker reads the
// others' tables without a lock, and rewrites the packets of a flow that is settled itself: such
// packets change nothing of the flow but when it was last seen. All others it hands over: of flows
// that are new, end, were decided before a change, are followed by a function, or take a way of their
// own; TCP with SYN, FIN or RST; fragments, ICMP errors, and what was about to change when it was read.
//
// Order: as long as a packet of a flow that was handed over may not have left, those behind it are
// handed over as well. Fragments and ICMP errors may be overtaken.
#ifndef CV_FLOW_FOREIGN_H
#define CV_FLOW_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/burst.h"
#include "flow/hash.h"
#include "flow/table.h"

struct cv_flow_zone;
struct cv_ring;

#define CV_FLOW_HANDED 2048u // places by hash, of flows with packets on their way

enum cv_flow_handed_state {
	CV_FLOW_HANDED_NONE,
	CV_FLOW_HANDED_NOW, // in this burst
	CV_FLOW_HANDED_WAITS, // until the ring is done with them
};

// Whether packets of a flow are on their way to the worker that keeps it. Where two flows meet at a
// place, all that come there are taken to be: a few too many are handed over then.
struct cv_flow_handed {
	uint32_t pushed; // done when the ring is done with so many buffers
	uint16_t signature;
	uint8_t state; // enum cv_flow_handed_state
	bool any; // signature
};

// Another worker's flows as this one reads them.
struct cv_flow_peer {
	struct cv_flow_secret secret;
	struct {
		const struct cv_flow_bucket *buckets;
		uint8_t *flows;
		const uint32_t *versions;
		uint32_t buckets_count;
	} table; // IPv4; buckets are NULL: nothing is read
	const uint32_t *epoch;
	unsigned shift; // of TSC cycles to ticks
	const struct cv_ring *ring; // to that worker
	bool busy; // some of those below may be on their way
	uint32_t pushed; // none is, when the ring is done with so many buffers
	struct cv_flow_handed handed[CV_FLOW_HANDED];
};

struct cv_flow_foreign {
	uint8_t peer[CV_WORKERS_MAX]; // by worker: its index below
	unsigned peers_count;
	bool busy; // with one of them
	// Handed over in the last burst, whose place in the ring is not known yet.
	unsigned now_count;
	struct cv_flow_handed *now[CV_BURST_VIEWS];
	struct cv_flow_peer *now_peer[CV_BURST_VIEWS];
	struct cv_flow_peer peers[];
};

// For workers (ids, count of them) that share flows; to: this worker's rings to them, by id. NULL: no
// memory. Nothing is read until cv_flow_foreign_read().
struct cv_flow_foreign *cv_flow_foreign_create(
	const uint8_t *workers, unsigned count, struct cv_ring *const *to);
void cv_flow_foreign_destroy(struct cv_flow_foreign *foreign);

// The flows of a worker are in this zone, which is shared, from now on; NULL: they are not read. By the
// worker that reads, or while it does not run.
void cv_flow_foreign_read(
	struct cv_flow_foreign *foreign, unsigned worker, const struct cv_flow_zone *zone);

#endif
