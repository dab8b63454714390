// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The inside of a trace, for its own files.
#ifndef CV_TRACE_STATE_H
#define CV_TRACE_STATE_H

#include "chain/trace.h"
#include "chain/trace_hooks.h"

enum cv_track_state {
	CV_TRACK_FREE,
	CV_TRACK_ON, // on its way through functions
	CV_TRACK_LEFT, // it has left its path; until the poll iteration ends it may be dropped
};

// A packet on its way.
struct cv_track {
	uint8_t state;
	const uint8_t *data; // where it begins now
	const struct rte_mbuf *frame; // of the convoy that it was put into; NULL: none
	uint16_t rest; // of so many bytes, where its beginning left before; 0: it is whole
	uint64_t placed; // when it left its path, or came to where it lies: in the order of a count
	struct cv_trace_record record; // and its bytes
};

struct cv_trace {
	struct cv_trace_config config;
	size_t record_bytes, track_bytes;
	uint8_t *tracks; // CV_TRACE_TRACKS_MAX
	unsigned taken; // tracks in use are below this one
	unsigned on; // tracks of that state
	unsigned cursor; // where the last one was found
	unsigned first; // track of the burst that is under way
	uint64_t placements;
	bool running; // between cv_trace_begin() and cv_trace_end()
	uint64_t skip, random; // packets until the next sample

	// Of the step that runs.
	const struct cv_path *path;
	unsigned step;
	const struct cv_view *views;
	struct cv_track *here[CV_BURST_VIEWS]; // by packet; NULL: not traced
	uint8_t position[CV_BURST_VIEWS], decision[CV_BURST_VIEWS];
	struct cv_nf_because because[CV_BURST_VIEWS], stated[CV_BURST_VIEWS];
	const void *stated_by[CV_BURST_VIEWS];

	uint64_t lost; // the worker writes
	uint8_t *ring; // CV_TRACE_RING_BYTES: records one behind the other, as in trace.c
	uint64_t head; // bytes that were ever written; the worker writes
	// The reader writes.
	uint64_t tail __rte_cache_aligned; // bytes that were ever read
	uint64_t next; // the tail behind the record that was read last
	struct cv_trace_record *read; // it
};

static inline struct cv_track *cv_trace_track(const struct cv_trace *trace, unsigned i)
{
	return (struct cv_track *)(trace->tracks + i * trace->track_bytes);
}

// Writes a track's record, if it is wanted, and frees the track.
void cv_trace_finish(
	struct cv_trace *trace, struct cv_track *track, enum cv_trace_end end, unsigned why);

#endif
