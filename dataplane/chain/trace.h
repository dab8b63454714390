// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A trace: the way of packets that a filter takes, through one worker. The worker writes a record of
// each into a ring of bounded length; another thread reads them. What does not fit is counted, and
// the worker never waits. Who traces hangs it into the worker between two poll iterations; without
// one the packet path asks once for each burst whether there is one (trace_hooks.h).
//
// A packet is known by where its bytes are, from the first function to the end of the poll iteration.
#ifndef CV_TRACE_H
#define CV_TRACE_H

#include "chain/counters.h"
#include "chain/filter.h"
#include "chain/path.h"

#define CV_TRACE_STEPS_MAX 24 // of a record; the last one stays the last
#define CV_TRACE_SNAP_MAX 2048 // bytes of a packet that a record has, twice
#define CV_TRACE_RING_BYTES (4u << 20) // of each worker
#define CV_TRACE_TRACKS_MAX 512 // packets on their way at a time

// How a packet came to be where its record begins.
enum cv_trace_origin {
	CV_TRACE_RECEIVED, // by a port, or by the ring that a path begins at
	CV_TRACE_FUNCTION, // a function made or released it
};

enum cv_trace_end {
	CV_TRACE_SENT,
	CV_TRACE_RING, // to the worker behind
	CV_TRACE_DROPPED, // by the node: why
	CV_TRACE_FUNCTION_DROPPED, // by the last step
	CV_TRACE_ABSORBED,
	CV_TRACE_HELD,
};

#define CV_TRACE_NO_POSITION UINT8_MAX

struct cv_trace_step {
	const struct cv_path *path;
	uint16_t step; // index in the path
	uint16_t bytes; // of the packet behind it
	uint32_t cycles; // of the burst, by packet
	uint8_t verdict;
	// Of several functions that share one look-up: which one decided, and its verdict.
	uint8_t position, decision;
	struct cv_nf_because because;
	// Of several as well: what one of them, by its instance, said of its decision. NULL: none did.
	const void *stated_by;
	struct cv_nf_because stated;
};

struct cv_trace_record {
	uint64_t begin, end_tsc; // TSC
	const struct cv_path *path; // where it begins; NULL: in none
	uint16_t first; // step that it begins with
	uint8_t origin, end, why; // enum cv_trace_origin, cv_trace_end, cv_drop_reason
	uint8_t in, out; // ports
	uint8_t convoy; // packets of the convoy that it left in; 0: in none
	uint16_t next_hop; // CV_NEXT_HOP_NONE: none
	uint16_t next_hop_of; // so many that its flow chose among; 0: it was the only one
	uint16_t steps_count, steps_more; // more than there is room for
	uint16_t len[2], snap[2]; // as it came, as it left: its length, and bytes that are here
	uint32_t terms; // of the filter
	struct cv_trace_step steps[CV_TRACE_STEPS_MAX];
	uint8_t bytes[]; // two of cv_trace_config's snap each
};

// Which chain a path is of.
struct cv_trace_chain {
	const struct cv_path *path;
	unsigned chain;
};

struct cv_trace_config {
	const struct cv_filter *filter;
	bool drops; // what is dropped, and nothing else
	uint32_t sample; // 1 of so many packets is looked at
	uint16_t snap; // bytes, at most CV_TRACE_SNAP_MAX
	const struct cv_trace_chain *chains;
	unsigned chains_count;
};

struct cv_trace;

// The configuration, and what it points to, must outlive the trace. NULL: no memory.
struct cv_trace *cv_trace_create(const struct cv_trace_config *config);
void cv_trace_free(struct cv_trace *trace);

// The worker that calls this traces from now on; NULL: no longer. Between two poll iterations.
void cv_trace_set(struct cv_trace *trace);

// The oldest record, until it is released or the next one is asked for; NULL: there is none. Of its
// steps only those are there that it counts. By one reader.
const struct cv_trace_record *cv_trace_peek(struct cv_trace *trace);
void cv_trace_release(struct cv_trace *trace);

// Packets that the filter took and no record has.
uint64_t cv_trace_lost(const struct cv_trace *trace);

#endif
