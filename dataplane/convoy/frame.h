// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// From packets to a frame: packets lie one behind the other in a buffer, each with its length before
// it, and get the outer header of their next hop. They are copied there, or lie there already.
// Nothing here waits or decides when a frame is due: the sender closes it as soon as there is
// nothing more to add.
//
//   cv_frame_begin(&frame, outer, buffer, room);
//   taken = cv_frame_add(&frame, views, n);      // as often as there are packets
//   data = cv_frame_close(&frame, &len);         // then begin the next with the rest
#ifndef CV_CONVOY_FRAME_H
#define CV_CONVOY_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "packet/view.h"

#ifdef __cplusplus
extern "C" {
#endif

// A frame being built. Owns nothing: buffer and outer must live until it is closed.
struct cv_frame {
	const struct cv_outer *outer;
	uint8_t *begin; // the first packet's length; outer->len bytes before it are the header's
	uint8_t *end; // behind the last packet
	uint32_t room; // bytes that may be added, by MTU and buffer
	uint8_t count; // packets
	struct cv_view first; // packet, here; its length is not yet written before count 2
};

// How many of n packets, from the first on, one frame takes. 0: the first does not fit at all, 1:
// it would be the only one. Either way it is sent as it is, and need not be copied, unless it looks
// like a convoy.
uint16_t cv_frame_fit(const struct cv_outer *outer, const struct cv_view *views, uint16_t n);

// Would the next hop take this packet for a convoy? Then it must not be sent as it is: one that
// fits is sent in a convoy, of one if need be, and one that does not is to be dropped.
bool cv_looks_like_convoy(const struct cv_outer *outer, const struct cv_view *packet);

// Begins a frame in a buffer of room bytes, at least as many as outer->len.
static CV_INLINE void cv_frame_begin(
	struct cv_frame *frame, const struct cv_outer *outer, uint8_t *buffer, uint32_t room)
{
	const uint32_t most = room < outer->frame_max ? room : outer->frame_max;

	frame->outer = outer;
	frame->begin = frame->end = buffer + outer->len;
	frame->room = most - outer->len;
	frame->count = 0;
}

// Begins a frame with count >= 1 packets that lie from begin to end, the first of which a view
// shows, there or elsewhere. Each has its length before it; a single one needs to have the room only.
// outer->len bytes before begin, and room bytes behind end, may be written. A single packet may be
// too long for a convoy: then nothing can be added.
static CV_INLINE void cv_frame_adopt(struct cv_frame *frame, const struct cv_outer *outer,
	uint8_t *begin, uint8_t *end, uint32_t room, uint8_t count, const struct cv_view *first)
{
	const uint32_t used = outer->len + (uint32_t)(end - begin);
	const uint32_t left = used < outer->frame_max ? outer->frame_max - used : 0;

	frame->outer = outer;
	frame->begin = begin;
	frame->end = end;
	frame->room = left < room ? left : room;
	frame->count = count;
	frame->first = *first;
	frame->first.data = begin + CV_CONVOY_PREFIX_LEN + first->before;
}

// Copies packets into the frame, from the first on, as long as they fit: whole, no larger than
// what the MTU and the buffer leave, and of an Ethernet header at least. Returns how many were
// taken; views[taken] is the first that did not fit. The packets must not lie in the buffer; they
// stay their owner's. Nothing is before the views. What is in the frame is one reading of their bytes.
uint16_t cv_frame_add(struct cv_frame *frame, const struct cv_view *views, uint16_t n);

// The same of count packets that lie one behind the other, in all bytes with their lengths before
// them, to a frame with one at least. False, with nothing done, unless all of them fit.
bool cv_frame_add_run(struct cv_frame *frame, const uint8_t *run, uint32_t bytes, unsigned count);

// Ends the frame. Returns its first byte, and its length in len. A single packet is
// returned as it came, without a header: it lies inside the buffer. One that looks like a convoy, or
// whose next hop encapsulates, becomes a convoy of one. NULL, len 0: there is nothing, or only such a packet too long for that.
uint8_t *cv_frame_close(struct cv_frame *frame, uint16_t *len);

#ifdef __cplusplus
}
#endif

#endif
