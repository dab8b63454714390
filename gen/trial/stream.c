// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/traffic/replay.h"

#define STREAMS_MAX (GEN_MAX_PATHS * GEN_MAX_QUEUES)

static int build_pool(const struct gen_spec *spec, const struct gen_clock *clock,
	struct gen_part part, const struct gen_room *room, struct gen_stream *stream,
	struct cv_error *error)
{
	struct gen_pool *pool = &stream->pool;

	if (spec->capture == NULL)
		return gen_pool_build(pool, spec, part, room, error);
	if (gen_replay_build(pool, spec, room, error) < 0)
		return -EINVAL;
	pool->flow_count = 1;
	if (spec->capture_loops > 0 &&
		(uint64_t)pool->pass_count * spec->capture_loops < stream->limit)
		stream->limit = pool->pass_count * spec->capture_loops;
	if (!spec->capture_timing)
		return 0;
	stream->gaps = calloc(pool->count, sizeof(*stream->gaps));
	if (stream->gaps == NULL) {
		cv_error_set(error, "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < pool->count; i++)
		stream->gaps[i] = (uint64_t)((double)pool->gaps_ns[i] / spec->capture_speed *
					     clock->ticks_per_ns * 65536.0);
	stream->pace = gen_pace_gaps(stream->gaps, pool->count);
	return 0;
}

// As many packets as fill convoys, of most at most.
static uint32_t whole_convoys(const struct gen_pool *pool, uint32_t most)
{
	uint32_t pass = 0, whole;

	for (uint32_t i = 0; i < pool->convoy_count; i++)
		pass += pool->convoys[i].packets;
	whole = most / pass * pass;
	for (uint32_t i = 0; pool->convoys[i].packets <= most - whole; i++)
		whole += pool->convoys[i].packets;
	return whole;
}

int gen_streams_build(const struct gen_spec *spec, const struct gen_clock *clock,
	struct gen_port *const *ports, struct gen_stream **streams, uint32_t *count,
	struct cv_error *error)
{
	size_t used[GEN_MAX_PORTS] = {0};
	const double hz = (double)clock->hz;

	*count = 0;
	*streams = calloc(STREAMS_MAX, sizeof(**streams));
	if (*streams == NULL) {
		cv_error_set(error, "out of memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < spec->path_count; i++) {
		const struct gen_path *path = &spec->paths[i];
		struct gen_port *port = ports[path->from];
		const uint32_t flows = spec->capture != NULL ? 1 : spec->flows.count;
		const uint32_t parts = port->wire_count < flows ? port->wire_count : flows;

		for (uint32_t part = 0; part < parts; part++) {
			struct gen_stream *stream = &(*streams)[(*count)++];
			const struct gen_room room = {
				.memory = port->memory + used[path->from],
				.bytes = port->memory_bytes - used[path->from],
				.frame_max = port->frame_bytes_max,
				.frames_min = port->queue_frames,
			};

			stream->from = path->from;
			stream->to = spec->answers ? path->from : path->to;
			stream->answered_at = spec->answers ? path->to : UINT32_MAX;
			stream->queue = part;
			stream->wire = &port->wires[part];
			stream->limit = spec->packets == 0 ? UINT32_MAX - 1
							   : spec->packets / parts +
								     (part < spec->packets % parts);
			if (build_pool(spec, clock, (struct gen_part){part, parts}, &room, stream,
				    error) < 0)
				return -EINVAL;
			if (stream->pool.convoys != NULL)
				stream->limit = whole_convoys(&stream->pool, stream->limit);
			used[path->from] += stream->pool.used_bytes;
			stream->account = gen_account_create(stream->pool.flow_of,
				stream->pool.flow_of != NULL ? stream->pool.count
							     : stream->pool.flow_count);
			stream->refused_bursts = cv_histogram_create(3, UINT32_MAX);
			if (stream->account == NULL || stream->refused_bursts == NULL) {
				cv_error_set(error, "out of memory");
				return -ENOMEM;
			}
			if (spec->rate_pps > 0 && stream->gaps == NULL)
				stream->pace = gen_pace_rate(hz,
					spec->rate_pps * stream->pool.flow_count / flows,
					spec->burst, spec->on_us * 1e3, spec->off_us * 1e3);
			stream->arrivals = stream->pace;
		}
	}
	return 0;
}

void gen_streams_free(struct gen_stream *streams, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		gen_pool_free(&streams[i].pool);
		gen_account_destroy(streams[i].account);
		free(streams[i].gaps);
		free(streams[i].refused_bursts);
	}
	free(streams);
}
