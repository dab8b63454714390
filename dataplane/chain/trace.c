// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A trace's memory, its ring, and what is written into it.
#include "chain/trace.h"

#include <stdlib.h>

#include <rte_cycles.h>

#include "chain/trace_state.h"

_Thread_local struct cv_trace *cv_trace_here;

struct cv_trace *cv_trace_create(const struct cv_trace_config *config)
{
	struct cv_trace *trace =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*trace), RTE_CACHE_LINE_SIZE));

	if (trace == NULL)
		return NULL;
	memset(trace, 0, sizeof(*trace));
	trace->config = *config;
	trace->random = rte_rdtsc() | 1;
	trace->record_bytes = RTE_ALIGN(sizeof(struct cv_trace_record) + 2u * config->snap, 8);
	trace->track_bytes = RTE_ALIGN(offsetof(struct cv_track, record) + trace->record_bytes, 8);
	trace->tracks = calloc(CV_TRACE_TRACKS_MAX, trace->track_bytes);
	trace->ring = malloc(CV_TRACE_RING_BYTES);
	trace->read = malloc(trace->record_bytes);
	if (trace->tracks != NULL && trace->ring != NULL && trace->read != NULL)
		return trace;
	cv_trace_free(trace);
	return NULL;
}

void cv_trace_free(struct cv_trace *trace)
{
	if (trace == NULL)
		return;
	free(trace->tracks);
	free(trace->ring);
	free(trace->read);
	free(trace);
}

void cv_trace_set(struct cv_trace *trace)
{
	cv_trace_here = trace;
}

// In the ring a record is followed by the next. It has those of its steps that there are, behind them
// the bytes of its first packet, then those of the other. None goes over the ring's end: what is left
// there has NO_RECORD in the place of the record's time.
#define HEAD_BYTES offsetof(struct cv_trace_record, steps)
#define NO_RECORD UINT64_C(0)
#define ALIGNED sizeof(uint64_t)

static size_t steps_bytes(const struct cv_trace_record *record)
{
	return record->steps_count * sizeof(record->steps[0]);
}

static size_t packed_bytes(const struct cv_trace_record *record)
{
	return RTE_ALIGN_CEIL(
		HEAD_BYTES + steps_bytes(record) + record->snap[0] + record->snap[1], ALIGNED);
}

static size_t up_to_the_end(uint64_t at)
{
	return CV_TRACE_RING_BYTES - at % CV_TRACE_RING_BYTES;
}

static void pack(uint8_t *to, const struct cv_trace_record *record, uint16_t snap)
{
	const size_t begin = HEAD_BYTES + steps_bytes(record);

	memcpy(to, record, begin);
	memcpy(to + begin, record->bytes, record->snap[0]);
	memcpy(to + begin + record->snap[0], record->bytes + snap, record->snap[1]);
}

static void unpack(struct cv_trace_record *record, const uint8_t *from, uint16_t snap)
{
	size_t begin;

	memcpy(record, from, HEAD_BYTES);
	begin = HEAD_BYTES + steps_bytes(record);
	memcpy(record->steps, from + HEAD_BYTES, steps_bytes(record));
	memcpy(record->bytes, from + begin, record->snap[0]);
	memcpy(record->bytes + snap, from + begin + record->snap[0], record->snap[1]);
}

const struct cv_trace_record *cv_trace_peek(struct cv_trace *trace)
{
	uint64_t at = trace->tail;
	uint64_t time;

	// Pairs with the worker's release store.
	if (__atomic_load_n(&trace->head, __ATOMIC_ACQUIRE) == at)
		return NULL;
	memcpy(&time, trace->ring + at % CV_TRACE_RING_BYTES, sizeof(time));
	if (time == NO_RECORD)
		at += up_to_the_end(at);
	unpack(trace->read, trace->ring + at % CV_TRACE_RING_BYTES, trace->config.snap);
	trace->next = at + packed_bytes(trace->read);
	return trace->read;
}

void cv_trace_release(struct cv_trace *trace)
{
	// Pairs with the worker's acquire load.
	__atomic_store_n(&trace->tail, trace->next, __ATOMIC_RELEASE);
}

uint64_t cv_trace_lost(const struct cv_trace *trace)
{
	return cv_counted(&trace->lost);
}

static void publish(struct cv_trace *trace, const struct cv_trace_record *record)
{
	const uint64_t none = NO_RECORD;
	const size_t bytes = packed_bytes(record), rest = up_to_the_end(trace->head);
	const uint64_t begin = trace->head + (bytes <= rest ? 0 : rest);

	// Pairs with the reader's release store.
	if (begin + bytes - __atomic_load_n(&trace->tail, __ATOMIC_ACQUIRE) > CV_TRACE_RING_BYTES) {
		cv_count(&trace->lost, 1);
		return;
	}
	if (begin != trace->head)
		memcpy(trace->ring + trace->head % CV_TRACE_RING_BYTES, &none, sizeof(none));
	pack(trace->ring + begin % CV_TRACE_RING_BYTES, record, trace->config.snap);
	// Pairs with the reader's acquire load.
	__atomic_store_n(&trace->head, begin + bytes, __ATOMIC_RELEASE);
}

void cv_trace_finish(
	struct cv_trace *trace, struct cv_track *track, enum cv_trace_end end, unsigned why)
{
	const bool dropped = end == CV_TRACE_DROPPED || end == CV_TRACE_FUNCTION_DROPPED;
	const struct cv_filter *filter = trace->config.filter;
	struct cv_trace_record *record = &track->record;

	trace->on -= track->state == CV_TRACK_ON;
	track->state = CV_TRACK_FREE;
	record->end = (uint8_t)end;
	record->why = (uint8_t)why;
	record->end_tsc = rte_rdtsc();
	// What the filter says of reasons is known to who reads.
	if (dropped ? cv_filter_may_take(filter, record->terms)
		    : !trace->config.drops && cv_filter_takes(filter, record->terms))
		publish(trace, record);
}
