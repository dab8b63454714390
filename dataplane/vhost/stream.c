// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/stream.h"

#include <errno.h>
#include <stdbool.h>

#include "vhost/message.h"

#define HEADER ((uint32_t)CV_VHOST_HEADER_BYTES)

// How many bytes there are to be, by what is known.
static uint32_t wanted(const struct cv_vhost_stream *stream)
{
	return stream->have < HEADER ? HEADER : HEADER + stream->message.bytes;
}

// One piece: of the header, or of what follows it.
static int receive_piece(
	struct cv_vhost_stream *stream, int fd, uint64_t protocol, struct cv_error *error)
{
	const bool in_header = stream->have < HEADER;
	// Descriptors come with a message's first bytes.
	const int got = cv_socket_receive(fd, (char *)&stream->message + stream->have,
		wanted(stream) - stream->have, in_header ? &stream->fds : NULL);

	if (got == -EAGAIN)
		return 0;
	if (got <= 0) {
		if (got == -EMFILE)
			cv_error_set(error, "more descriptors than a message may have");
		return got < 0 ? got : -EPIPE;
	}
	stream->have += (uint32_t)got;
	if (in_header && stream->have == HEADER)
		return cv_vhost_header_check(&stream->message, protocol, error);
	return 0;
}

int cv_vhost_stream_receive(
	struct cv_vhost_stream *stream, int fd, uint64_t protocol, struct cv_error *error)
{
	int rc = receive_piece(stream, fd, protocol, error);

	if (rc == 0 && stream->have >= HEADER && stream->have < wanted(stream))
		rc = receive_piece(stream, fd, protocol, error);
	if (rc != 0 || stream->have < HEADER || stream->have < wanted(stream))
		return rc;
	rc = cv_vhost_message_check(&stream->message, stream->fds.count, error);
	return rc != 0 ? rc : 1;
}

void cv_vhost_stream_next(struct cv_vhost_stream *stream)
{
	cv_socket_fds_close(&stream->fds);
	stream->have = 0;
}
