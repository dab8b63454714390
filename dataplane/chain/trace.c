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
	trace->ring_slots = (uint32_t)(CV_TRACE_RING_BYTES / trace->record_bytes);
	trace->tracks = calloc(CV_TRACE_TRACKS_MAX, trace->track_bytes);
	trace->ring = malloc(trace->ring_slots * trace->record_bytes);
	if (trace->tracks != NULL && trace->ring != NULL)
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
	free(trace);
}

void cv_trace_set(struct cv_trace *trace)
{
	cv_trace_here = trace;
}

static struct cv_trace_record *slot(const struct cv_trace *trace, uint64_t at)
{
	return (struct cv_trace_record *)(trace->ring +
					  at % trace->ring_slots * trace->record_bytes);
}

const struct cv_trace_record *cv_trace_peek(struct cv_trace *trace)
{
	// Pairs with the worker's release store.
	if (__atomic_load_n(&trace->head, __ATOMIC_ACQUIRE) == trace->tail)
		return NULL;
	return slot(trace, trace->tail);
}

void cv_trace_release(struct cv_trace *trace)
{
	// Pairs with the worker's acquire load.
	__atomic_store_n(&trace->tail, trace->tail + 1, __ATOMIC_RELEASE);
}

uint64_t cv_trace_lost(const struct cv_trace *trace)
{
	return cv_counted(&trace->lost);
}

static void publish(struct cv_trace *trace, const struct cv_trace_record *record)
{
	// Pairs with the reader's release store.
	const uint64_t tail = __atomic_load_n(&trace->tail, __ATOMIC_ACQUIRE);

	if (trace->head - tail == trace->ring_slots) {
		cv_count(&trace->lost, 1);
		return;
	}
	memcpy(slot(trace, trace->head), record, trace->record_bytes);
	// Pairs with the reader's acquire load.
	__atomic_store_n(&trace->head, trace->head + 1, __ATOMIC_RELEASE);
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
