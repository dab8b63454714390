// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which messages a front end may send, and what each looks like: one table, no input or output, no
// state. What is not in the table, or not exactly as the table has it, is refused, whatever it may
// mean to others.
#ifndef CV_VHOST_MESSAGE_H
#define CV_VHOST_MESSAGE_H

#include <stdbool.h>

#include "packet/error.h"
#include "vhost/protocol.h"

// Protocol features whose messages are known here.
#define CV_VHOST_PROTOCOL_FEATURES                                                            \
	(1ull << CV_VHOST_PROTOCOL_F_MQ | 1ull << CV_VHOST_PROTOCOL_F_LOG_SHMFD |             \
		1ull << CV_VHOST_PROTOCOL_F_REPLY_ACK | 1ull << CV_VHOST_PROTOCOL_F_NET_MTU | \
		1ull << CV_VHOST_PROTOCOL_F_STATUS)

// Checks a header alone. protocol: the protocol features that were negotiated. 0: bytes is right
// for the request, and at most a struct cv_vhost_message's. -EPROTO with error set: close the
// connection.
int cv_vhost_header_check(
	const struct cv_vhost_message *message, uint64_t protocol, struct cv_error *error);

// Checks a whole message whose header passed, and the number of descriptors that came with it:
// afterwards a memory table has 1 to 8 regions and as many descriptors, flags and switches have no
// unknown bits. 0 or -EPROTO with error set.
int cv_vhost_message_check(
	const struct cv_vhost_message *message, unsigned fds, struct cv_error *error);

// Whether the request is a query: nothing changes.
bool cv_vhost_request_is_query(uint32_t request);

// For messages; "unknown message" where it has no name.
const char *cv_vhost_request_name(uint32_t request);

// Sets error to the message's name and why it is refused. Returns -EPROTO.
__attribute__((format(printf, 3, 4))) int cv_vhost_refuse(
	const struct cv_vhost_message *message, struct cv_error *error, const char *format, ...);

#endif
