// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TCP's windows as a middlebox sees them: which sequence and acknowledgement numbers either end can
// accept (Guido van Rooij, "Real stateful TCP packet filtering", 2001; Linux's conntrack does the
// same). A packet outside is none of the connection's, whoever sent it. A reset inside, but not at
// the number that its receiver expects, may not be believed (RFC 5961 section 3): it passes, and ends
// nothing here.
#ifndef CV_FLOW_WINDOW_H
#define CV_FLOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/parse.h"
#include "flow/tcp.h"

// One end. Numbers are TCP's, modulo 2^32.
struct cv_flow_window_end {
	uint32_t next; // behind the last byte that it has sent
	uint32_t limit; // behind the last byte that it may send, as the other end has said
	uint32_t acked; // its last acknowledgement
	uint16_t window; // the largest that it has announced, in units of 1 << scale, rounded up
	uint8_t scale; // once both ends have said theirs
	uint8_t flags;
};

// Of a flow, by direction. Zero at first.
struct cv_flow_window {
	struct cv_flow_window_end end[2];
};

_Static_assert(sizeof(struct cv_flow_window) == 32, "two of a cache line");

enum cv_flow_window_verdict {
	CV_FLOW_WINDOW_INSIDE,
	CV_FLOW_WINDOW_UNSURE, // passes, and changes nothing: its receiver may not believe it
	CV_FLOW_WINDOW_OUTSIDE,
};

// The verdict of a packet of a flow in this state, whose TCP header is at l4 of the view; the IP
// packet ends at end. Learns from packets inside.
enum cv_flow_window_verdict cv_flow_window_see(struct cv_flow_window *window, unsigned direction,
	enum cv_flow_tcp_state state, const struct cv_view *view, unsigned l4, unsigned end);

// The packet was inside, and a first fragment: its segment goes on in others, which nobody reads.
// What acknowledges up to the end of the window is inside, until a whole segment behind it was seen.
void cv_flow_window_fragmented(struct cv_flow_window *window, unsigned direction);

#endif
