// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A worker: one thread on one core that polls its sources (source.h) and sends everything on before
// it polls again, but for frames that may wait for more packets (tx.h).
#ifndef CV_WORKER_H
#define CV_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/source.h"

enum cv_worker_phase {
	CV_WORKER_RUN,
	CV_WORKER_DRAIN, // ports are not received from any more
	CV_WORKER_EXIT,
};

// A function with a timer.
struct cv_tick {
	void (*tick)(void *instance, struct cv_nf_worker *worker);
	const struct cv_path *path; // the first that it is in
	const struct cv_step *step;
};

// Something that a worker does for the node between two poll iterations, when it uses nothing of any
// function.
struct cv_errand {
	void (*run)(void *argument);
	void *argument;
};

// What a worker does when an iteration found nothing to do.
enum cv_worker_idle {
	CV_WORKER_POLL, // goes on
	// Gives the core away, which others share; now and then also when there is no end of packets.
	// Else the first of a chain would fill the ring behind it and drop, while the next one waits
	// for the end of its time slice.
	CV_WORKER_YIELD,
	CV_WORKER_SLEEP, // the same, and sleeps for a moment when nothing came for a while
};

struct cv_worker {
	struct cv_path_worker paths; // as paths and functions know it, with its index

	// Set before the worker runs; changed by its errands alone.
	enum cv_worker_idle idle, own_idle; // as it is now; while it has sources
	struct cv_source *sources;
	unsigned sources_count;
	unsigned spare_count; // sources behind those, which other workers poll now
	bool expects; // a source is about to come: it does not sleep
	struct cv_tick *ticks; // once in each poll iteration
	unsigned ticks_count;
	struct cv_tx *tx; // where packets leave; its own, its tx_queue is the index
	const enum cv_worker_phase *phase; // the node's; written by the main thread

	// Written by the node; NULL again when it is done.
	const struct cv_errand *errand;

	// The worker's alone: packets or frames that it may still receive before it yields, and the
	// TSC when it last did something.
	unsigned left;
	uint64_t worked;

	// Written by the worker, read by anyone.
	uint64_t iterations; // of its poll loop
	uint64_t busy_cycles; // TSC ticks of iterations that moved a packet
	uint64_t total_cycles; // TSC ticks of all iterations
	uint64_t away_cycles; // those of all in which it had given its core away and had more to do
	uint64_t longest_cycles; // TSC ticks of the longest iteration, without giving the core away
} __rte_cache_aligned;

// Runs until the phase is CV_WORKER_EXIT. The argument is a struct cv_worker; returns 0.
int cv_worker_run(void *worker);

// Does the errand, if there is one: the worker does, or the node for one that has ended. Whether there
// was one: the phase may be another one then.
bool cv_worker_do_errand(struct cv_worker *worker);

// A source goes from its sources to the spare ones, or the other way: it is then the last one of them.
// By the worker, in an errand: all that the source brought has gone on. Of a worker that is left with
// spare ones only, an iteration is a rare one.
void cv_worker_leave_source(struct cv_worker *worker, unsigned source);
void cv_worker_take_source(struct cv_worker *worker, unsigned source);

// It has other sources than before.
void cv_worker_sources_changed(struct cv_worker *worker);

// What paths.leave must be: packets go into the ring behind their path, or out of the node.
void cv_worker_leave(
	struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst);

#endif
