// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A path: the functions that a burst of packets goes through. What functions must not care
// about happens here, once: which buffer a view belongs to, dropping, freeing, counting.
#ifndef CV_PATH_H
#define CV_PATH_H

#include "chain/burst.h"
#include "chain/handoff.h"
#include "chain/nf.h"

struct cv_path;

// One function of a path, as one worker runs it. The worker replaces the instance between two poll
// iterations.
struct cv_step {
	uint16_t (*process)(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
		uint8_t *verdicts, uint16_t n);
	void *instance;
	struct cv_nf_counters *counters; // this worker's
	const struct cv_path *const *outputs; // of a function that has some
	// For a trace: struct cv_nf's. NULL: it says nothing.
	void (*explain)(const void *instance, const struct cv_nf_worker *worker,
		const struct cv_view *view, struct cv_nf_because *because);
};

struct cv_path {
	unsigned length;
	struct cv_step *steps;
	uint8_t out; // port that packets leave by unless a function says otherwise
	struct cv_ring *sink; // the next path's ring; NULL: out of the node, by each packet's port
	// Of a path that begins at a port: packets whose flows other workers keep. NULL: none.
	const struct cv_handoff *handoff;
};

#define CV_WAITING_MAX 2048 // packets that a worker's functions make or release at a time

// A packet that a function made or released, until the burst that it was made for is done.
struct cv_waiting {
	struct cv_held packet;
	uint16_t step; // to go on with
};

// A worker, as paths know it.
struct cv_path_worker {
	struct cv_nf_worker nf; // as functions know it
	struct rte_mempool *pool;
	struct cv_port_counters *ports_counters; // its own, by port
	// Takes a burst of at least one packet that has come to the end of a path. NULL: that of no
	// path, each packet leaves by its port.
	void (*leave)(
		struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst);

	// Of the function that runs, for nf_worker.c.
	const struct cv_path *path;
	const struct cv_step *step;
	struct cv_burst *burst; // NULL: in tick()
	struct cv_latency_draw draw;
	uint16_t moved_count;
	struct rte_mbuf *moved[CV_BURST_VIEWS]; // the buffers of packets that were copied out
	uint16_t waiting_first, waiting_count; // those before the first have gone on
	struct cv_waiting waiting[CV_WAITING_MAX];
};

// Runs a burst of at least one packet through the path, and what leaves it on. Then what functions
// made or released meanwhile.
void cv_path_run(const struct cv_path *path, struct cv_path_worker *worker, struct cv_burst *burst);

// The same without what leaves: burst->n packets are left, in their order; the others were counted at
// the function that dropped or kept them, and buffers that nothing is left in freed. Packets
// may have left already where functions resize them.
void cv_path_run_functions(
	const struct cv_path *path, struct cv_path_worker *worker, struct cv_burst *burst);

// Calls the tick() of one of the path's functions, and runs what it made or released.
void cv_path_tick(const struct cv_path *path, const struct cv_step *step,
	void (*tick)(void *instance, struct cv_nf_worker *worker), struct cv_path_worker *worker);

#endif
