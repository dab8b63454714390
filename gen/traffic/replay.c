// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "gen/traffic/convoys.h"
#include "gen/traffic/stamp.h"

#define FRAMES_MAX (1u << 24)

struct layout {
	uint32_t payload; // where the headers end
	uint32_t end; // of the packet; padding follows
	uint32_t flow; // a hash of addresses, protocol and ports
};

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

// FNV-1a.
static uint32_t hash(uint32_t state, const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		state = (state ^ at[i]) * 16777619u;
	return state;
}

// Headers of the fourth layer; what is not known may be any long.
static uint32_t l4_bytes(uint32_t protocol, const uint8_t *l4, uint32_t left)
{
	switch (protocol) {
	case 6:
		return left > 12 ? (uint32_t)(l4[12] >> 4) * 4 : UINT16_MAX;
	case 17:
	case 1:
	case 58:
		return 8;
	default:
		return UINT16_MAX;
	}
}

// All lengths are checked: a capture is somebody else's data. Unknown: no payload.
static struct layout dissect(const uint8_t *frame, uint32_t bytes)
{
	struct layout layout = {.payload = bytes, .end = bytes};
	uint32_t at = 12, protocol, addresses, address_bytes;

	while (at + 4 <= bytes && (get16(frame + at) == 0x8100 || get16(frame + at) == 0x88a8))
		at += 4;
	if (at + 2 + 20 > bytes)
		return layout;
	const uint32_t type = get16(frame + at);
	const uint8_t *l3 = frame + at + 2;
	uint32_t l4 = at + 2;
	if (type == 0x0800 && l3[0] >> 4 == 4) {
		layout.end = at + 2 + get16(l3 + 2);
		l4 += (uint32_t)(l3[0] & 15) * 4;
		protocol = l3[9];
		addresses = at + 2 + 12;
		address_bytes = 8;
		// Of a non-first fragment there are no ports, and its payload begins at once.
		if ((get16(l3 + 6) & 0x1fff) != 0)
			protocol = 256;
	} else if (type == 0x86dd && at + 2 + 40 <= bytes) {
		layout.end = at + 2 + 40 + get16(l3 + 4);
		l4 += 40;
		protocol = l3[6];
		addresses = at + 2 + 8;
		address_bytes = 32;
	} else {
		return layout;
	}
	if (layout.end > bytes || l4 > layout.end) {
		layout.end = bytes;
		return layout;
	}
	layout.flow = hash(2166136261u + protocol, frame + addresses, address_bytes);
	if ((protocol == 6 || protocol == 17) && l4 + 4 <= bytes)
		layout.flow = hash(layout.flow, frame + l4, 4);
	layout.payload = l4 + (protocol == 256 ? 0 : l4_bytes(protocol, frame + l4, bytes - l4));
	return layout;
}

// The bytes that a frame has with its stamp: its own, or a trailer more.
static uint32_t stamped_bytes(const struct layout *layout, uint32_t bytes)
{
	if (bytes >= GEN_STAMP_BYTES) {
		const uint32_t stamp = gen_stamp_offset(bytes);

		if (stamp >= layout->end ||
			(stamp >= layout->payload && stamp + GEN_STAMP_BYTES <= layout->end))
			return bytes;
	}
	return bytes + bytes % 2 + GEN_STAMP_BYTES;
}

struct builder {
	struct gen_pool *pool;
	const struct gen_spec *spec;
	const struct gen_room *room;
	uint32_t size; // allocated
	struct cv_error *error;
};

static int grow(struct builder *builder)
{
	struct gen_pool *pool = builder->pool;
	const uint32_t size = builder->size == 0 ? 4096 : 2 * builder->size;

	void *frames = realloc(pool->frames, size * sizeof(*pool->frames));
	if (frames != NULL)
		pool->frames = frames;
	void *flows = realloc(pool->flow_of, size * sizeof(*pool->flow_of));
	if (flows != NULL)
		pool->flow_of = flows;
	void *gaps = realloc(pool->gaps_ns, size * sizeof(*pool->gaps_ns));
	if (gaps != NULL)
		pool->gaps_ns = gaps;
	if (frames == NULL || flows == NULL || gaps == NULL || size > FRAMES_MAX) {
		cv_error_set(builder->error,
			"spec: capture: file: %s: more packets than fit into memory",
			builder->spec->capture);
		return -ENOMEM;
	}
	builder->size = size;
	return 0;
}

// Adds a frame of `bytes` bytes and zeros up to `length`.
static int add(struct builder *builder, const uint8_t *data, uint32_t bytes, uint32_t length,
	uint32_t flow)
{
	struct gen_pool *pool = builder->pool;
	const size_t lines = (length + GEN_CACHE_LINE - 1) / GEN_CACHE_LINE;
	const size_t offset = pool->used_bytes + GEN_CACHE_LINE;

	if (pool->count == builder->size && grow(builder) < 0)
		return -EINVAL;
	if (length > builder->room->frame_max) {
		cv_error_set(builder->error,
			"spec: capture: file: %s: packet %u needs %u bytes with its stamp (without "
			"FCS); the port takes at most %u; use --port vhost-user:…,frame=BYTES, or "
			"leave it out",
			builder->spec->capture, pool->count + 1, length, builder->room->frame_max);
		return -EINVAL;
	}
	if (offset + lines * GEN_CACHE_LINE > builder->room->bytes || offset > UINT32_MAX) {
		cv_error_set(builder->error,
			"spec: capture: file: %s: packet %u does not fit into the port's %zu MiB "
			"any more; use a shorter capture, or more memory (--port …,mem=MIB)",
			builder->spec->capture, pool->count + 1, builder->room->bytes >> 20);
		return -EINVAL;
	}
	uint8_t *frame = pool->base + offset;
	memcpy(frame, data, bytes);
	memset(frame + bytes, 0, length - bytes);
	pool->frames[pool->count] = (struct gen_frame){
		.offset = (uint32_t)offset,
		.bytes = (uint16_t)length,
		.sum = gen_stamp_sum(frame + gen_stamp_offset(length)),
	};
	pool->flow_of[pool->count] = flow;
	pool->bytes += length;
	pool->used_bytes = offset + lines * GEN_CACHE_LINE;
	pool->count++;
	return 0;
}

// Reads the file; gaps_ns[i] is from packet i to the next, for the last one the mean.
static int read_file(struct builder *builder)
{
	struct gen_pool *pool = builder->pool;
	struct cv_error reason = {0};
	struct cv_capture *capture = cv_capture_open(builder->spec->capture, &reason);
	struct cv_capture_packet packet;
	uint64_t before = 0, total = 0;
	int result = capture == NULL ? -EINVAL : 0, more = 0;

	while (result == 0 && (more = cv_capture_next(capture, &packet, &reason)) > 0) {
		if (packet.captured < packet.wire) {
			cv_error_set(&reason,
				"%s: packet %u: only %u of its %u bytes were captured; capture "
				"whole packets (snap length 0)",
				builder->spec->capture, pool->count + 1, packet.captured,
				packet.wire);
			result = -EINVAL;
			break;
		}
		const struct layout layout = dissect(packet.data, packet.captured);
		result = add(builder, packet.data, packet.captured,
			stamped_bytes(&layout, packet.captured), layout.flow);
		if (result == 0 && pool->count > 1) {
			const uint64_t gap = packet.time_ns > before ? packet.time_ns - before : 0;
			pool->gaps_ns[pool->count - 2] = gap;
			total += gap;
		}
		before = packet.time_ns;
	}
	cv_capture_close(capture);
	if (more < 0)
		result = -EINVAL;
	if (reason.text[0] != '\0')
		cv_error_set(builder->error, "spec: capture: file: %.400s", reason.text);
	if (result < 0)
		return result;
	if (pool->count == 0) {
		cv_error_set(builder->error, "spec: capture: file: %s: no packets",
			builder->spec->capture);
		return -EINVAL;
	}
	if (builder->spec->capture_timing && total == 0) {
		cv_error_set(builder->error,
			"spec: capture: timing: %s: all packets have the same time; use \"rate\" "
			"and "
			"a rate_pps",
			builder->spec->capture);
		return -EINVAL;
	}
	pool->gaps_ns[pool->count - 1] = pool->count > 1 ? total / (pool->count - 1) : 0;
	return 0;
}

// How many packets make frames_min frames: of one pass, no fewer frames than its convoys. 0: out of
// memory.
static uint32_t packets_min(const struct builder *builder)
{
	const struct gen_pool *pool = builder->pool;
	const uint32_t frames_min = builder->room->frames_min;
	uint32_t *sizes;

	if (builder->spec->convoy_packets <= 1)
		return frames_min;
	sizes = calloc(pool->pass_count, sizeof(*sizes));
	if (sizes == NULL) {
		cv_error_set(builder->error, "out of memory for %u packets", pool->pass_count);
		return 0;
	}
	for (uint32_t i = 0; i < pool->pass_count; i++)
		sizes[i] = pool->frames[i].bytes + GEN_FCS_BYTES;
	const uint32_t frames = gen_convoys_least(sizes, pool->pass_count, builder->spec);
	free(sizes);
	return (frames_min + frames - 1) / frames * pool->pass_count;
}

int gen_replay_build(struct gen_pool *pool, const struct gen_spec *spec,
	const struct gen_room *room, struct cv_error *error)
{
	struct builder builder = {pool, spec, room, 0, error};

	*pool = (struct gen_pool){.base = room->memory};
	if (read_file(&builder) < 0)
		return -EINVAL;
	pool->pass_count = pool->count;
	const uint32_t least = packets_min(&builder);
	if (least == 0)
		return -ENOMEM;
	// A frame must not be sent again while it is still in the send queue: the pool holds whole
	// passes, enough of them.
	while (pool->count < least || pool->count % pool->pass_count != 0) {
		const uint32_t from = pool->count - pool->pass_count;
		const struct gen_frame again = pool->frames[from];

		if (add(&builder, pool->base + again.offset, again.bytes, again.bytes,
			    pool->flow_of[from]) < 0)
			return -EINVAL;
		pool->gaps_ns[pool->count - 1] = pool->gaps_ns[from];
	}
	return spec->convoy_packets > 1 ? gen_convoys_build(pool, spec, room, error) : 0;
}
