// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A worker: one thread on one core that polls its sources, takes what it gets through the stages
// behind them, and sends everything on before it polls again. Nothing is ever held back.
#ifndef CV_WORKER_H
#define CV_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/rx.h"
#include "chain/classify.h"
#include "chain/counters.h"
#include "chain/tx.h"
#include "chain/path.h"
#include "chain/ring.h"
#include "port/port.h"

// Convoys that one poll takes from a source at most: what they can hold must fit into a ring. Where
// none follows and few packets share a frame it takes CV_BURST_MAX, to share the cost of a poll.
#define CV_CONVOYS_MAX 32
#define CV_CONVOYS_VIEWS (CV_CONVOYS_MAX * CV_CONVOY_PACKETS_MAX)

// One path of a chain as one worker runs it, and where its packets go.
struct cv_stage {
	struct cv_path path;
	uint8_t out; // port that packets leave by unless a function says otherwise
	struct cv_ring *sink; // the next stage's ring; NULL: out of the node, by each packet's port
};

// A port's queue or a ring, and the stages its packets go to.
struct cv_source {
	struct cv_port *port; // NULL: ring
	uint16_t queue;
	uint8_t in; // the port's index
	struct cv_ring *ring;
	const struct cv_convoy_rx *convoys; // a port's that carries convoys; NULL: it does not
	// Polls without a convoy since the last one that came by a port that gives views: after
	// some, packets are received as views, which is cheaper, until convoys come.
	uint16_t plain_polls;
	bool sparse; // the frames of the last poll that brought some had few packets each
	struct cv_classifier classifier; // a port's: classes are indices of stages
	bool one_stage; // no packet needs classifying
	bool waits; // does not receive while a sink has no room: nothing is lost in the node
	struct cv_stage *stages;
	unsigned stages_count;
};

enum cv_worker_phase {
	CV_WORKER_RUN,
	CV_WORKER_DRAIN, // ports are not received from any more
	CV_WORKER_EXIT,
};

struct cv_worker {
	// Set before the worker runs; not changed after.
	unsigned index;
	// Others share the core: it is given away when an iteration found nothing to do, and now
	// and then when there is no end of packets. Else the first of a chain would fill the ring
	// behind it and drop, while the next one waits for the end of its time slice.
	bool yield;
	struct cv_source *sources;
	unsigned sources_count;
	struct cv_tx *tx; // where packets leave; its own, its tx_queue is the index
	const enum cv_worker_phase *phase; // the node's; written by the main thread

	// The worker's alone: packets or frames that it may still receive before it yields.
	unsigned left;

	// Written by the worker, read by anyone.
	struct cv_port_counters *ports_counters; // by port index; tx counts there, too
	uint64_t iterations; // of its poll loop
	uint64_t busy_cycles; // TSC ticks of iterations that moved a packet
	uint64_t total_cycles; // TSC ticks of all iterations
	uint64_t longest_cycles; // TSC ticks of the longest iteration, without giving the core away
} __rte_cache_aligned;

// Runs until the phase is CV_WORKER_EXIT. The argument is a struct cv_worker; returns 0.
int cv_worker_run(void *worker);

#endif
