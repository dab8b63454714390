// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "convoy/frame.h"

#include "convoy/frame_inline.h"
#include "convoy/may_be.h"

bool cv_looks_like_convoy(const struct cv_outer *outer, const struct cv_view *packet)
{
	return cv_may_be_convoy(packet, outer->udp_port);
}

uint16_t cv_frame_fit(const struct cv_outer *outer, const struct cv_view *views, uint16_t n)
{
	uint32_t room = outer->frame_max - outer->len;
	uint16_t i;

	for (i = 0; i < n && i < CV_CONVOY_PACKETS_MAX && cv_frame_room_for(views[i].len, room);
		i++)
		room -= CV_CONVOY_PREFIX_LEN + views[i].len;
	return i;
}

// Short packets are copied by two or four loads and stores of which the last overlaps the one
// before: no loop, no call, and not a byte outside of either packet. len >= 8.
static CV_INLINE void copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (CV_LIKELY(len > 32 && len <= 64)) {
		memcpy(to, from, 32);
		memcpy(to + len - 32, from + len - 32, 32);
	} else if (len > 64 && len <= 128) {
		memcpy(to, from, 64);
		memcpy(to + len - 64, from + len - 64, 64);
	} else if (len > 128) {
		memcpy(to, from, len);
	} else if (len > 16) {
		memcpy(to, from, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	}
}

CV_HOT uint16_t cv_frame_add(struct cv_frame *frame, const struct cv_view *views, uint16_t n)
{
	uint32_t room = frame->room;
	uint8_t *at = frame->end;
	uint16_t most = CV_CONVOY_PACKETS_MAX - frame->count;
	uint16_t i;

	if (n < most)
		most = n;
	if (frame->count == 0 && n > 0)
		cv_frame_set_first(frame, &views[0]);
	else if (frame->count == 1)
		cv_frame_write_first_len(frame);
	for (i = 0; i < most && cv_frame_room_for(views[i].len, room); i++) {
		const uint32_t len = views[i].len;

		cv_convoy_write_len(at, len);
		copy(at + CV_CONVOY_PREFIX_LEN, views[i].data, len);
		at += CV_CONVOY_PREFIX_LEN + len;
		room -= CV_CONVOY_PREFIX_LEN + len;
	}
	frame->count += i;
	frame->end = at;
	frame->room = room;
	return i;
}

bool cv_frame_add_run(struct cv_frame *frame, const uint8_t *run, uint32_t bytes, unsigned count)
{
	if (CV_UNLIKELY(bytes > frame->room || frame->count + count > CV_CONVOY_PACKETS_MAX))
		return false;
	if (frame->count == 1)
		cv_frame_write_first_len(frame);
	memcpy(frame->end, run, bytes);
	frame->end += bytes;
	frame->room -= bytes;
	frame->count += (uint8_t)count;
	return true;
}

// A single packet. Not inlined: what it needs is not paid for where there are more.
uint8_t *cv_frame_make_single(const struct cv_outer *outer, uint8_t *begin, const uint8_t *end,
	const struct cv_view *first)
{
	const uint32_t bytes = (uint32_t)(end - begin);
	struct cv_view packet;

	// By the bytes here: what the view was made of may be somebody's who changed it since.
	cv_view_set(
		&packet, begin + CV_CONVOY_PREFIX_LEN, (uint16_t)(bytes - CV_CONVOY_PREFIX_LEN));
	if (CV_LIKELY(!outer->encapsulate && !cv_looks_like_convoy(outer, &packet)))
		return packet.data;
	if (outer->len + bytes > outer->frame_max)
		return NULL;
	cv_convoy_write_len(begin, packet.len);
	return cv_outer_write(outer, begin - outer->len, 1, bytes, cv_flow_sport(first));
}

uint8_t *cv_frame_close(struct cv_frame *frame, uint16_t *len)
{
	uint8_t *data = CV_LIKELY(frame->count > 0)
				? cv_frame_make(frame->outer, frame->begin, frame->end,
					  frame->count, &frame->first)
				: NULL;

	*len = data != NULL ? (uint16_t)(frame->end - data) : 0;
	return data;
}
