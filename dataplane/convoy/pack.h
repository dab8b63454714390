// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// From packets to a frame: the packets are copied one behind the other into a buffer, which then
// gets the outer header of their next hop. Nothing here waits or decides when a frame is due: the
// sender finishes it as soon as there is nothing more to add.
//
//   cv_pack_begin(&pack, outer, buffer, room);
//   taken = cv_pack_add(&pack, views, n);        // as often as there are packets
//   frame = cv_pack_finish(&pack, &len);         // then begin the next with the rest
#ifndef CV_CONVOY_PACK_H
#define CV_CONVOY_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "packet/view.h"

#ifdef __cplusplus
extern "C" {
#endif

// A frame being packed. Owns nothing: buffer and outer must live until it is finished.
struct cv_pack {
	const struct cv_outer *outer;
	uint8_t *data; // the buffer; the frame begins here
	uint32_t len; // bytes of the frame so far, the outer header included
	uint32_t limit; // bytes that the frame may have, by MTU and buffer
	uint16_t first_len; // bytes of the first packet
	uint8_t count; // packets so far
	rte_be16_t sport; // by the first packet's flow
};

// Would the next hop take this packet for a convoy? Then it must not be sent as it is: one that
// fits is packed, in a convoy of one if need be, and one that does not is to be dropped.
bool cv_looks_like_convoy(const struct cv_outer *outer, const struct cv_view *packet);

// How many of n packets, from the first on, one frame takes. 0: the first does not fit at all, 1:
// it would be the only one. Either way it is sent as it is, and need not be copied, unless it looks
// like a convoy.
uint16_t cv_pack_fit(const struct cv_outer *outer, const struct cv_view *views, uint16_t n);

// Begins a frame in a buffer of room bytes, at least as many as outer->len.
void cv_pack_begin(
	struct cv_pack *pack, const struct cv_outer *outer, uint8_t *buffer, uint32_t room);

// Copies packets into the frame, from the first on, as long as they fit: whole, no larger than
// what the MTU and the buffer leave, and of an Ethernet header at least. Returns how many were
// taken; views[taken] is the first that did not fit. The packets must not lie in the buffer; they
// stay their owner's. What is packed is one reading of their bytes (the hash may be of another).
uint16_t cv_pack_add(struct cv_pack *pack, const struct cv_view *views, uint16_t n);

// Ends the frame. Returns its first byte, and its length in len. A single packet is
// returned as it came, without a header: it lies inside the buffer. One that looks like a convoy
// becomes a convoy of one. Nothing packed: NULL, len 0.
uint8_t *cv_pack_finish(struct cv_pack *pack, uint16_t *len);

#ifdef __cplusplus
}
#endif

#endif
