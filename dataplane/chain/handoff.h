// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Handoff: several workers share the flows of a chain, and each packet goes through the chain on the
// worker that keeps its flow. Whoever receives it looks which one that is, and hands the packets of
// others over by a ring, one for each pair of workers. A packet is handed over once at most, right
// after it was classified: what comes by a ring stays. So nobody waits for anybody in a circle.
//
// Where nobody keeps flows, a chain's bursts may go to the workers in turn instead: so several share
// one flow, whose packets may overtake each other.
//
// A ring that is full drops (ring_full): a worker that is behind loses packets of its own flows, and
// does not keep the others from theirs. Packets of a capture wait instead.
//
// Packets in one buffer, those of a convoy, are handed over as they lie if one worker keeps all of
// their flows. Else each worker gets a copy of its own ones, in one buffer.
#ifndef CV_HANDOFF_H
#define CV_HANDOFF_H

#include "chain/burst.h"
#include "chain/nf.h"
#include "chain/ring.h"

struct cv_path_worker;

// What a worker hands over packets with that it receives for one path.
struct cv_handoff {
	// Which worker keeps the flow of each of n packets; returns how many are to go to others. One
	// whose function is done with here may be called this worker's own (CV_VIEW_DONE).
	uint16_t (*home)(void *homes, struct cv_view *views, uint8_t *workers, uint16_t n);
	void *homes;
	struct cv_ring *const *to; // by worker
	uint8_t self;
	uint8_t path; // what the other workers know the path by
	bool waits; // for room, rather than drop
};

// Workers that bursts go to in turn; one worker's alone.
struct cv_handoff_turn {
	uint8_t workers[CV_WORKERS_MAX];
	uint8_t count, next, self;
} __rte_cache_aligned;

// The whole burst is the next worker's, whatever flows it is of. struct cv_handoff's home(), of a
// struct cv_handoff_turn.
uint16_t cv_handoff_in_turn(void *turn, struct cv_view *views, uint8_t *workers, uint16_t n);

// Hands over what other workers keep; the rest stays in the burst, in its order.
void cv_handoff(
	const struct cv_handoff *handoff, struct cv_path_worker *worker, struct cv_burst *burst);

// Whether each ring can take a whole burst of so many views.
bool cv_handoff_has_room(const struct cv_handoff *handoff, uint32_t views);

#endif
