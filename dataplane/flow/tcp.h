// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TCP's states as a middlebox sees them: RFC 6146 section 3.5.2, RFC 7857 section 2. A connection
// whose beginning was not seen is opening until it is answered.
#ifndef CV_FLOW_TCP_H
#define CV_FLOW_TCP_H

#include <stdint.h>

#include "flow/flow.h"
#include "flow/limits.h"

#define CV_TCP_FIN 1
#define CV_TCP_SYN 2
#define CV_TCP_RST 4
#define CV_TCP_ACK 16

enum cv_flow_tcp_state {
	CV_FLOW_TCP_NONE, // not TCP
	CV_FLOW_TCP_OPEN, // not answered
	CV_FLOW_TCP_ANSWERED, // SYN both ways
	CV_FLOW_TCP_DONE, // established
	CV_FLOW_TCP_FIN_FORWARD, // closed by one end
	CV_FLOW_TCP_FIN_REPLY,
	CV_FLOW_TCP_CLOSED, // by both
	CV_FLOW_TCP_RESET,
	CV_FLOW_TCP_STATES,
};

// The state after a packet with these flags. replied: it is a reply, or one was seen before.
static inline enum cv_flow_tcp_state cv_flow_tcp_next(
	enum cv_flow_tcp_state state, unsigned direction, uint8_t flags, bool replied)
{
	const bool over = state == CV_FLOW_TCP_CLOSED || state == CV_FLOW_TCP_RESET;

	if (flags & CV_TCP_RST)
		return state == CV_FLOW_TCP_CLOSED ? state : CV_FLOW_TCP_RESET;
	if (flags & CV_TCP_SYN) {
		if (over) // a new connection between the same ports
			return direction == CV_FLOW_FORWARD ? CV_FLOW_TCP_OPEN : state;
		return state == CV_FLOW_TCP_OPEN && direction == CV_FLOW_REPLY
			       ? CV_FLOW_TCP_ANSWERED
			       : state;
	}
	if (flags & CV_TCP_FIN) {
		if (over)
			return state;
		if (direction == CV_FLOW_FORWARD)
			return state == CV_FLOW_TCP_FIN_REPLY ? CV_FLOW_TCP_CLOSED
							      : CV_FLOW_TCP_FIN_FORWARD;
		return state == CV_FLOW_TCP_FIN_FORWARD ? CV_FLOW_TCP_CLOSED
							: CV_FLOW_TCP_FIN_REPLY;
	}
	if (state == CV_FLOW_TCP_RESET) // it lives: the reset was not for it
		return replied ? CV_FLOW_TCP_DONE : CV_FLOW_TCP_OPEN;
	if ((state == CV_FLOW_TCP_OPEN && direction == CV_FLOW_REPLY) ||
		(state == CV_FLOW_TCP_ANSWERED && direction == CV_FLOW_FORWARD))
		return CV_FLOW_TCP_DONE;
	return state;
}

// What one end says alone, also that it closes, establishes nothing.
static inline enum cv_flow_timeout cv_flow_tcp_timeout(enum cv_flow_tcp_state state, bool replied)
{
	switch (state) {
	case CV_FLOW_TCP_DONE:
	case CV_FLOW_TCP_FIN_FORWARD:
	case CV_FLOW_TCP_FIN_REPLY:
		return replied ? CV_FLOW_TCP_ESTABLISHED : CV_FLOW_TCP_OPENING;
	case CV_FLOW_TCP_CLOSED:
	case CV_FLOW_TCP_RESET:
		return CV_FLOW_TCP_CLOSING;
	default:
		return CV_FLOW_TCP_OPENING;
	}
}

#endif
