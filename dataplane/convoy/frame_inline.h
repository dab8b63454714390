// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One packet into a frame, and the end of a frame, to be inlined where a call is too much.
#ifndef CV_CONVOY_FRAME_INLINE_H
#define CV_CONVOY_FRAME_INLINE_H

#include "convoy/flow.h"
#include "convoy/frame.h"

// Where room bytes are left, does a packet fit, with its length before it?
static CV_INLINE bool cv_frame_room_for(uint32_t len, uint32_t room)
{
	return len >= CV_CONVOY_PACKET_MIN && len + CV_CONVOY_PREFIX_LEN <= room;
}

// The first packet's length, which is not needed as long as it is alone.
static CV_INLINE void cv_frame_write_first_len(struct cv_frame *frame)
{
	cv_convoy_write_len(frame->begin, cv_view_packet_len(&frame->first));
}

// The first packet is about to be copied to the end.
static CV_INLINE void cv_frame_set_first(struct cv_frame *frame, const struct cv_view *view)
{
	frame->first = *view;
	frame->first.data = frame->end + CV_CONVOY_PREFIX_LEN + view->before;
}

// cv_frame_add() of one packet, with what is before its view.
static CV_INLINE bool cv_frame_append(struct cv_frame *frame, const struct cv_view *view)
{
	const uint32_t len = cv_view_packet_len(view);
	uint8_t *packet = frame->end + CV_CONVOY_PREFIX_LEN;

	if (CV_UNLIKELY(
		    !cv_frame_room_for(len, frame->room) || frame->count == CV_CONVOY_PACKETS_MAX))
		return false;
	if (CV_UNLIKELY(frame->count == 0))
		cv_frame_set_first(frame, view);
	else if (frame->count == 1)
		cv_frame_write_first_len(frame);
	cv_convoy_write_len(frame->end, len);
	memcpy(packet, cv_view_packet(view), len);
	frame->end = packet + len;
	frame->room -= CV_CONVOY_PREFIX_LEN + len;
	frame->count++;
	return true;
}

uint8_t *cv_frame_make_single(const struct cv_outer *outer, uint8_t *begin, const uint8_t *end,
	const struct cv_view *first);

// What lies from begin to end, as cv_frame_adopt() has it, becomes a frame at once. Returns its first
// byte; it ends where it did. A single packet is returned as it came, without a header. One that
// looks like a convoy, or whose next hop encapsulates, becomes a convoy of one. NULL: such a packet
// is too long for that.
static CV_INLINE uint8_t *cv_frame_make(const struct cv_outer *outer, uint8_t *begin,
	const uint8_t *end, uint8_t count, const struct cv_view *first)
{
	if (CV_UNLIKELY(count == 1))
		return cv_frame_make_single(outer, begin, end, first);
	return cv_outer_write(
		outer, begin - outer->len, count, (uint32_t)(end - begin), cv_flow_sport(first));
}

#endif
