// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/convoys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "convoy/frame.h"

uint32_t gen_convoys_least(const uint32_t *sizes, uint32_t count, const struct gen_spec *spec)
{
	struct cv_outer outer;
	uint64_t bytes = 0;

	if (spec->convoy_packets <= 1 || cv_outer_set(&outer, &spec->convoy_outer, NULL) < 0)
		return count; // a wrong header is refused when they are packed
	const uint32_t room = outer.frame_max - outer.len;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t wanted = sizes[i] - GEN_FCS_BYTES + CV_CONVOY_PREFIX_LEN;

		bytes += wanted < room ? wanted : room;
	}
	// No frame holds more packets than these, nor more bytes.
	const uint32_t by_count = (count + spec->convoy_packets - 1) / spec->convoy_packets;
	const uint32_t by_bytes = (uint32_t)((bytes + room - 1) / room);
	return by_count > by_bytes ? by_count : by_bytes;
}

// The packets first to first + n - 1 in one frame at offset; returns how many it took.
static uint32_t pack(struct gen_pool *pool, const struct cv_outer *outer, uint32_t first,
	uint32_t n, uint32_t offset, struct gen_convoy *convoy, uint8_t *from)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_frame frame;
	uint16_t bytes;

	for (uint32_t i = 0; i < n; i++)
		cv_view_set(&views[i], from + pool->frames[first + i].offset,
			pool->frames[first + i].bytes);
	const uint16_t fit = cv_frame_fit(outer, views, (uint16_t)n);
	if (fit == 0 || (fit == 1 && !cv_looks_like_convoy(outer, &views[0]))) {
		memcpy(pool->base + offset, views[0].data, views[0].len);
		*convoy = (struct gen_convoy){{offset, views[0].len, 0}, first, 1, views[0].len};
		pool->frames[first].offset = offset;
		return 1;
	}
	cv_frame_begin(&frame, outer, pool->base + offset, outer->frame_max);
	cv_frame_add(&frame, views, fit);
	cv_frame_close(&frame, &bytes);
	*convoy = (struct gen_convoy){{offset, bytes, 0}, first, fit, 0};
	offset += outer->len;
	for (uint32_t i = 0; i < fit; i++) {
		pool->frames[first + i].offset = offset + CV_CONVOY_PREFIX_LEN;
		offset += CV_CONVOY_PREFIX_LEN + views[i].len;
		convoy->bytes += views[i].len;
	}
	return fit;
}

int gen_convoys_build(struct gen_pool *pool, const struct gen_spec *spec,
	const struct gen_room *room, struct cv_error *error)
{
	struct cv_error why = {0};
	struct cv_outer outer;
	uint8_t *from;
	size_t at = 0;

	if (cv_outer_set(&outer, &spec->convoy_outer, &why) < 0) {
		cv_error_set(error, "spec: convoys: %.400s", why.text);
		return -EINVAL;
	}
	if (outer.frame_max > room->frame_max) {
		cv_error_set(error,
			"spec: convoys: mtu: %u: the port takes frames of at most %u bytes (with "
			"FCS); make it smaller, or the port's frame= larger",
			outer.frame_max - outer.l3, room->frame_max + GEN_FCS_BYTES);
		return -EINVAL;
	}
	// The packets are packed where they lie, so they are read from a copy.
	from = malloc(pool->used_bytes);
	pool->convoys = calloc(pool->count, sizeof(*pool->convoys));
	if (from == NULL || pool->convoys == NULL) {
		cv_error_set(error, "out of memory for convoys of %u packets", pool->count);
		free(from);
		return -ENOMEM;
	}
	memcpy(from, pool->base, pool->used_bytes);
	for (uint32_t first = 0; first < pool->count;) {
		const uint32_t left = pool->count - first;
		const uint32_t most = left < spec->convoy_packets ? left : spec->convoy_packets;
		const size_t offset = at + GEN_CACHE_LINE;

		if (offset + outer.frame_max > room->bytes || offset > UINT32_MAX) {
			cv_error_set(error,
				"spec: convoys: packets: %u: the frames need more than the port's "
				"%zu "
				"MiB; use fewer flows, or more memory (--port …,mem=MIB)",
				spec->convoy_packets, room->bytes >> 20);
			free(from);
			return -EINVAL;
		}
		struct gen_convoy *convoy = &pool->convoys[pool->convoy_count++];
		first += pack(pool, &outer, first, most, (uint32_t)offset, convoy, from);
		at = offset +
		     (convoy->frame.bytes + GEN_CACHE_LINE - 1) / GEN_CACHE_LINE * GEN_CACHE_LINE;
	}
	pool->used_bytes = at;
	free(from);
	return 0;
}
