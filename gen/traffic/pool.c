// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/traffic/convoys.h"
#include "gen/traffic/random.h"
#include "gen/traffic/sizes.h"
#include "gen/traffic/stamp.h"
#include "gen/traffic/template.h"

// Enough to show a size distribution's rarer sizes.
#define MIXED_FRAMES_MIN 4800u

static uint32_t whole_rounds(uint32_t count, uint32_t flows)
{
	return (count + flows - 1) / flows * flows;
}

// Draws so many packets that their frames fill the send queue, and no more than it takes: a device
// gets what the tester's caches hold, with convoys as without. The sizes (to be freed) and their
// number, or NULL with a message.
static uint32_t *draw(const struct gen_spec *spec, uint32_t flows, uint32_t frames_min,
	uint32_t *count, struct cv_error *error)
{
	const bool mixed = spec->sizes != GEN_SIZE_FIXED;
	const uint32_t least =
		mixed && frames_min < MIXED_FRAMES_MIN ? MIXED_FRAMES_MIN : frames_min;

	*count = whole_rounds(least, flows);
	for (;;) {
		uint32_t *sizes = calloc(*count, sizeof(*sizes));

		if (sizes == NULL) {
			cv_error_set(error, "out of memory for %u frames", *count);
			return NULL;
		}
		if (gen_sizes_draw(sizes, *count, spec, error) < 0) {
			free(sizes);
			return NULL;
		}
		const uint64_t frames = gen_convoys_least(sizes, *count, spec);
		if (frames >= frames_min)
			return sizes;
		free(sizes);
		*count = whole_rounds(
			(uint32_t)(((uint64_t)*count * frames_min + frames - 1) / frames), flows);
	}
}

int gen_pool_build(struct gen_pool *pool, const struct gen_spec *spec, struct gen_part part,
	const struct gen_room *room, struct cv_error *error)
{
	const uint32_t flows = (spec->flows.count - part.part + part.parts - 1) / part.parts;
	const uint32_t written = spec->flows.written_sending ? 1 : flows;
	const uint32_t least = gen_template_min(&spec->flows);
	uint32_t *order, *sizes, count;
	int result = -EINVAL;

	*pool = (struct gen_pool){.base = room->memory, .flow_count = flows};
	sizes = draw(spec, written, room->frames_min, &count, error);
	if (sizes == NULL)
		return -EINVAL;
	order = calloc(written, sizeof(*order));
	pool->count = count;
	pool->frames = calloc(count, sizeof(*pool->frames));
	if (order == NULL || pool->frames == NULL) {
		cv_error_set(error, "out of memory for %u frames", count);
		goto out;
	}
	for (uint32_t i = 0; i < written; i++)
		order[i] = i * part.parts + part.part;
	if (spec->flows.shuffle)
		gen_shuffle(order, written, spec->seed);

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t bytes = sizes[i] - GEN_FCS_BYTES;
		const size_t lines = (bytes + GEN_CACHE_LINE - 1) / GEN_CACHE_LINE;
		const size_t offset = pool->used_bytes + GEN_CACHE_LINE;

		if (bytes < least || bytes > room->frame_max) {
			cv_error_set(error,
				"spec: size: %u: these headers and the port take frames of %u to "
				"%u bytes (with FCS)",
				sizes[i], least + GEN_FCS_BYTES, room->frame_max + GEN_FCS_BYTES);
			goto out;
		}
		if (offset + lines * GEN_CACHE_LINE > room->bytes || offset > UINT32_MAX) {
			cv_error_set(error,
				"spec: flows: count: %u: the frames need more than the port's %zu "
				"MiB; use fewer flows, or more memory (--port …,mem=MIB)",
				spec->flows.count, room->bytes >> 20);
			goto out;
		}
		uint8_t *frame = room->memory + offset;
		gen_template_write(frame, bytes, &spec->flows,
			order[(i + spec->flows.first / part.parts) % written]);
		pool->frames[i] = (struct gen_frame){
			.offset = (uint32_t)offset,
			.bytes = (uint16_t)bytes,
			.sum = gen_stamp_sum(frame + gen_stamp_offset(bytes)),
		};
		pool->bytes += bytes;
		pool->used_bytes = offset + lines * GEN_CACHE_LINE;
	}
	if (spec->flows.written_sending)
		pool->walk = gen_walk_begin(spec, flows, part.part, part.parts,
			room->memory + pool->frames[0].offset, pool->frames[0].bytes);
	result = spec->convoy_packets > 1 ? gen_convoys_build(pool, spec, room, error) : 0;
out:
	free(order);
	free(sizes);
	return result;
}

void gen_pool_free(struct gen_pool *pool)
{
	free(pool->frames);
	free(pool->convoys);
	free(pool->flow_of);
	free(pool->gaps_ns);
	*pool = (struct gen_pool){0};
}
