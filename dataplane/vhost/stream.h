// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Messages out of a front end's socket, in whatever pieces they come.
#ifndef CV_VHOST_STREAM_H
#define CV_VHOST_STREAM_H

#include "packet/error.h"
#include "socket/receive.h"
#include "vhost/protocol.h"

// Zeroed at first.
struct cv_vhost_stream {
	uint32_t have; // bytes of message
	struct cv_vhost_message message;
	struct cv_socket_fds fds; // that came with it
};

// Receives what there is of one message, and no more; never waits. protocol: the protocol features
// that were negotiated. 1: a whole one is there, and checked (message.h); 0: not yet; -errno: the
// connection is to be closed, with error set unless the peer went by itself.
int cv_vhost_stream_receive(
	struct cv_vhost_stream *stream, int fd, uint64_t protocol, struct cv_error *error);

// Forgets the message, or the part of one, and closes its descriptors.
void cv_vhost_stream_next(struct cv_vhost_stream *stream);

#endif
