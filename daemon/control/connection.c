// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/control/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM_FIRST 4096u

static size_t request_max(const struct cv_connection *connection)
{
	return connection->may_change ? CV_CONTROL_REQUEST_MAX : CV_CONTROL_READING_MAX;
}

// False: the client is gone, or has not read for too long.
static bool send_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		const ssize_t n = send(fd, text, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		left -= (size_t)n;
	}
	return true;
}

// Sends a line, and frees it. No line is none to send.
static bool send_line(const struct cv_connection *connection, char *line)
{
	const bool sent = line == NULL || send_all(connection->fd, line);

	free(line);
	return sent;
}

static bool greet(const struct cv_connection *connection)
{
	char line[256];

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{\"protocol\":%d,"
		"\"version\":\"%s\",\"pid\":%d,\"may_change\":%s,\"request_max\":%zu}}\n",
		CV_CONTROL_PROTOCOL, connection->config->version, getpid(),
		connection->may_change ? "true" : "false", request_max(connection));
	return send_all(connection->fd, line);
}

static void drop_file(struct cv_connection *connection)
{
	if (connection->file >= 0)
		close(connection->file);
	connection->file = -1;
}

// Bytes beyond what every connection has.
static ssize_t reserved(size_t size)
{
	return size > CV_CONTROL_READING_MAX ? (ssize_t)size : 0;
}

static void forget_text(struct cv_connection *connection)
{
	connection->reserve(connection, -reserved(connection->size));
	free(connection->text);
	connection->text = NULL;
	connection->size = connection->used = connection->scanned = 0;
}

// Makes room for more. False: it is said why not, if there is something to say.
static bool grow(struct cv_connection *connection)
{
	const size_t size = connection->size == 0 ? ROOM_FIRST : 2 * connection->size;
	char *text;

	if (connection->size >= request_max(connection)) {
		char why[64];

		snprintf(why, sizeof(why), "a request has at most %zu bytes",
			request_max(connection));
		send_line(connection, cv_rpc_refuse(CV_RPC_NO_REQUEST, why));
		return false;
	}
	if (!connection->reserve(connection, reserved(size) - reserved(connection->size))) {
		send_line(connection,
			cv_rpc_refuse(CV_RPC_BUSY, "other requests take all memory for them; try "
						   "again when they are done"));
		return false;
	}
	text = realloc(connection->text, size);
	if (text == NULL) {
		connection->reserve(connection, reserved(connection->size) - reserved(size));
		return false;
	}
	connection->text = text;
	connection->size = size;
	return true;
}

// Takes the descriptor that came with bytes: the last one, and none where the node is only read.
static void take_file(struct cv_connection *connection, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
		header = CMSG_NXTHDR(message, header)) {
		const size_t bytes = header->cmsg_len - CMSG_LEN(0);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			drop_file(connection);
			memcpy(&connection->file, CMSG_DATA(header) + at, sizeof(int));
			connection->file_at = connection->used; // what is read ends with it
		}
	}
	if (!connection->may_change)
		drop_file(connection);
}

// Waits for bytes and appends them. False: there are no more.
static bool receive(struct cv_connection *connection)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec to = {
		connection->text + connection->used, connection->size - connection->used};
	struct msghdr message = {.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	do
		n = recvmsg(connection->fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	connection->used += (size_t)n;
	take_file(connection, &message);
	return true;
}

// The length of the first line, once it is there. False: it never will be.
static bool await_line(struct cv_connection *connection, size_t *length)
{
	while (true) {
		// Until something has come there is no text.
		const char *end = connection->used == connection->scanned
					  ? NULL
					  : memchr(connection->text + connection->scanned, '\n',
						    connection->used - connection->scanned);

		if (end != NULL) {
			*length = (size_t)(end - connection->text);
			return true;
		}
		connection->scanned = connection->used;
		if ((connection->used == connection->size && !grow(connection)) ||
			!receive(connection))
			return false;
	}
}

static void drop_line(struct cv_connection *connection, size_t length)
{
	connection->used -= length + 1;
	connection->file_at -= connection->file_at > length ? length + 1 : connection->file_at;
	connection->scanned = 0;
	if (connection->used == 0 && connection->size > ROOM_FIRST)
		forget_text(connection);
	else
		memmove(connection->text, connection->text + length + 1, connection->used);
}

void cv_connection_serve(struct cv_connection *connection)
{
	bool goes_on = greet(connection);
	size_t length;

	connection->file = -1;
	while (goes_on && await_line(connection, &length)) {
		// Those before it in what was read at once have none.
		const bool has_file = length + 1 >= connection->file_at;
		char *answer;

		if (!connection->begin(connection))
			break;
		answer = cv_rpc_answer(&connection->config->rpc, connection->may_change,
			connection->text, length, has_file ? connection->file : -1);
		if (has_file)
			drop_file(connection);
		drop_line(connection, length);
		connection->end(connection);
		goes_on = send_line(connection, answer);
	}
	drop_file(connection);
	forget_text(connection);
}
