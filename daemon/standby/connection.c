// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/standby/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int cv_standby_connection_open(struct cv_standby_connection *connection,
	const struct cv_peer_target *to, struct cv_peer_tls_context *context, int wake,
	struct cv_error *error)
{
	connection->to = to;
	connection->context = context;
	connection->wake = wake;
	connection->tls = NULL;
	connection->fd = cv_peer_target_open(to, NULL, error);
	return connection->fd < 0 ? connection->fd : 0;
}

void cv_standby_connection_close(struct cv_standby_connection *connection)
{
	cv_peer_tls_close(connection->tls);
	connection->tls = NULL;
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

static bool broken(struct cv_standby_connection *connection, const char *why)
{
	snprintf(connection->why, sizeof(connection->why), "%s", why);
	return false;
}

// After a call of TLS returned -1, or 0 at the other's end.
static bool lost(struct cv_standby_connection *connection, ssize_t rc)
{
	const char *why = rc == 0           ? "it has disconnected"
			  : errno == EPROTO ? cv_peer_tls_why(connection->tls)
					    : strerror(errno);

	return broken(connection, why);
}

// Waits for the socket. False: it took too long, or the node ends.
static bool await(struct cv_standby_connection *connection, short events, int64_t until_ms)
{
	struct pollfd fds[] = {{.fd = connection->fd, .events = events},
		{.fd = connection->wake, .events = POLLIN}};
	const int64_t left = until_ms - now_ms();

	return poll(fds, 2, left > 0 ? (int)left : 0) > 0 && fds[1].revents == 0;
}

bool cv_standby_connect(struct cv_standby_connection *connection)
{
	int rc = cv_peer_target_connect(connection->to, connection->fd);
	socklen_t length = sizeof(rc);

	connection->out_used = connection->in_used = 0;
	if (rc == -EINPROGRESS) {
		if (!await(connection, POLLOUT, now_ms() + CV_STANDBY_PATIENCE_MS))
			return broken(connection, "it does not answer");
		getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &rc, &length);
		rc = -rc;
	}
	if (rc != 0)
		return broken(connection, strerror(-rc));
	connection->tls = cv_peer_tls_open(connection->context, connection->fd, false);
	return connection->tls != NULL || broken(connection, "no memory");
}

void cv_standby_disconnect(struct cv_standby_connection *connection)
{
	cv_peer_tls_close(connection->tls);
	connection->tls = NULL;
	connection->fd = cv_peer_target_again(connection->to, connection->fd);
}

bool cv_standby_flush(struct cv_standby_connection *connection)
{
	const int64_t until_ms = now_ms() + CV_STANDBY_PATIENCE_MS;
	size_t from = 0;

	while (from < connection->out_used) {
		const ssize_t sent = cv_peer_tls_send(
			connection->tls, connection->out + from, connection->out_used - from);

		if (sent > 0)
			from += (size_t)sent;
		else if (sent == 0 || (errno != EAGAIN && errno != EINTR))
			return lost(connection, sent);
		// A handshake may have to read before it can write.
		else if (!await(connection,
				 cv_peer_tls_wants_room(connection->tls) ? POLLOUT : POLLIN,
				 until_ms))
			return broken(connection, "it reads nothing");
	}
	connection->out_used = 0;
	return true;
}

bool cv_standby_say(struct cv_standby_connection *connection,
	const struct cv_standby_header *header, const void *body)
{
	const size_t bytes = sizeof(*header) + header->bytes;

	if (connection->out_used + bytes > sizeof(connection->out) && !cv_standby_flush(connection))
		return false;
	memcpy(connection->out + connection->out_used, header, sizeof(*header));
	if (header->bytes > 0)
		memcpy(connection->out + connection->out_used + sizeof(*header), body,
			header->bytes);
	connection->out_used += bytes;
	return true;
}

// Whether a whole answer has come; it is taken out.
static enum cv_standby_heard take(
	struct cv_standby_connection *connection, struct cv_standby_header *header, uint8_t *body)
{
	size_t bytes;

	if (connection->in_used < sizeof(*header))
		return CV_STANDBY_NOTHING;
	memcpy(header, connection->in, sizeof(*header));
	if (header->bytes > CV_STANDBY_ANSWER_MAX) {
		broken(connection, "it says nonsense");
		return CV_STANDBY_BROKEN;
	}
	bytes = sizeof(*header) + header->bytes;
	if (connection->in_used < bytes)
		return CV_STANDBY_NOTHING;
	memcpy(body, connection->in + sizeof(*header), header->bytes);
	connection->in_used -= bytes;
	memmove(connection->in, connection->in + bytes, connection->in_used);
	return CV_STANDBY_HEARD;
}

enum cv_standby_heard cv_standby_hear(struct cv_standby_connection *connection,
	struct cv_standby_header *header, uint8_t *body, int ms)
{
	const int64_t until_ms = now_ms() + ms;
	enum cv_standby_heard heard;

	_Static_assert(sizeof(connection->in) >= sizeof(*header) + CV_STANDBY_ANSWER_MAX,
		"an answer fits");
	while ((heard = take(connection, header, body)) == CV_STANDBY_NOTHING) {
		const ssize_t got =
			cv_peer_tls_receive(connection->tls, connection->in + connection->in_used,
				sizeof(connection->in) - connection->in_used);

		if (got > 0) {
			connection->in_used += (size_t)got;
		} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			lost(connection, got);
			return CV_STANDBY_BROKEN;
		} else if (!await(connection, POLLIN, until_ms)) {
			return CV_STANDBY_NOTHING;
		}
	}
	return heard;
}
