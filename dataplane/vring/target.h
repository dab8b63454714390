// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where packets go that are taken out of a ring, a guest's or a memif peer's: each into a buffer of
// its own, or one behind the other into shared ones, with their lengths, as a frame has them.
#ifndef CV_VRING_TARGET_H
#define CV_VRING_TARGET_H

#include "convoy/format.h"
#include "vring/vring.h"

struct cv_target {
	// Each into one of its own:
	uint8_t *const *to;
	uint16_t *lens;
	uint32_t room; // bytes of each, UINT16_MAX at most
	// Several into one:
	bool coalesces;
	uint16_t at; // the buffer being filled
	uint16_t buffers; // how many there are
	struct cv_view *views;
	struct cv_vring_buffer *buffer;

	uint16_t n; // packets that are there
};

static CV_INLINE void cv_target_open(struct cv_target *target)
{
	target->buffer[target->at].len = 0;
	target->buffer[target->at].packets = 0;
}

// Buffers with packets.
static CV_INLINE uint16_t cv_target_used(const struct cv_target *target)
{
	return (uint16_t)(target->at + (target->buffer[target->at].packets > 0));
}

// Whether a packet of len bytes, which the peer says and may be nearly 4 GiB, fits behind `used`.
static CV_INLINE bool cv_target_fits(uint32_t used, uint32_t len, uint32_t room)
{
	return (uint64_t)used + CV_CONVOY_PREFIX_LEN + len <= room;
}

// Where the next packet, of len bytes, goes. NULL: it is too long for any buffer (too_long), or all
// buffers are full.
static CV_INLINE uint8_t *cv_target_place(struct cv_target *target, uint32_t len, bool *too_long)
{
	struct cv_vring_buffer *buffer;

	*too_long = false;
	if (!target->coalesces) {
		*too_long = len > target->room;
		return *too_long ? NULL : target->to[target->n];
	}
	buffer = &target->buffer[target->at];
	if (CV_LIKELY(cv_target_fits(buffer->len, len, buffer->coalesced_max) &&
		      buffer->packets < CV_CONVOY_PACKETS_MAX))
		return buffer->data + buffer->len + CV_CONVOY_PREFIX_LEN;
	if (buffer->packets > 0) {
		if (target->at + 1 == target->buffers)
			return NULL;
		target->at++;
		cv_target_open(target);
		buffer++;
	}
	*too_long = !cv_target_fits(0, len, buffer->room);
	return *too_long ? NULL : buffer->data + CV_CONVOY_PREFIX_LEN;
}

// A packet is there, in a buffer: its length before it, a view of it. Returns its end.
static CV_INLINE uint8_t *cv_target_show(struct cv_view *view, uint8_t *data, uint32_t len)
{
	// As CV_COPIED(), for what cv_view_set() reads.
	__asm__ volatile("" : "+m"(*(uint8_t(*)[CV_ETHER_LEN + 2 * CV_VLAN_LEN]) data));
	cv_convoy_write_len(data - CV_CONVOY_PREFIX_LEN, len);
	cv_view_set(view, data, (uint16_t)len);
	return data + len;
}

// What a buffer holds now.
static CV_INLINE void cv_target_close(
	struct cv_vring_buffer *buffer, const uint8_t *end, uint32_t packets)
{
	buffer->len = (uint32_t)(end - buffer->data);
	buffer->packets = (uint16_t)packets;
}

// The next packet is at data, where cv_target_place() said.
static CV_INLINE void cv_target_placed(struct cv_target *target, uint8_t *data, uint32_t len)
{
	struct cv_vring_buffer *buffer;

	if (!target->coalesces) {
		target->lens[target->n++] = (uint16_t)len;
		return;
	}
	buffer = &target->buffer[target->at];
	cv_target_close(buffer, cv_target_show(&target->views[target->n++], data, len),
		buffer->packets + 1u);
}

#endif
