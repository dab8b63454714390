// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/handover_message.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define BODY offsetof(struct cv_handover_message, hello)

// What each type looks like.
static const struct rule {
	const char *name;
	uint32_t least, most; // bytes behind the header
	unsigned fds_most;
} rules[CV_HANDOVER_TYPES] = {
	[CV_HANDOVER_HELLO] = {"HELLO", sizeof(struct cv_handover_hello),
		sizeof(struct cv_handover_hello), 0},
	[CV_HANDOVER_PORT] = {"PORT", sizeof(struct cv_handover_port), CV_HANDOVER_BYTES_MAX,
		CV_SOCKET_FDS_MAX},
	[CV_HANDOVER_PREPARED] = {"PREPARED", 0, 0, 0},
	[CV_HANDOVER_READY] = {"READY", 0, 0, 0},
	[CV_HANDOVER_FROZEN] = {"FROZEN", CV_HANDOVER_FROZEN_LEAST,
		sizeof(struct cv_handover_frozen), 0},
	[CV_HANDOVER_COMMIT] = {"COMMIT", 0, 0, 0},
	[CV_HANDOVER_STARTED] = {"STARTED", 0, 0, 0},
	[CV_HANDOVER_CARRIED] = {"CARRIED", sizeof(struct cv_handover_carried),
		sizeof(struct cv_handover_carried), 5},
	[CV_HANDOVER_REFUSED] = {"REFUSED", 2, sizeof(((struct cv_error *)NULL)->text), 0},
	[CV_HANDOVER_FLOWS] = {"FLOWS", sizeof(struct cv_handover_flows),
		sizeof(struct cv_handover_flows), 1},
	[CV_HANDOVER_KEPT] = {"KEPT", sizeof(struct cv_handover_kept),
		sizeof(struct cv_handover_kept), 1},
};

static const char *name_of(uint32_t type)
{
	return type < CV_HANDOVER_TYPES && rules[type].name != NULL ? rules[type].name
								    : "no message";
}

static bool ends(const char *text, size_t bytes)
{
	return memchr(text, '\0', bytes) != NULL;
}

static bool is_right(const struct cv_handover_message *message)
{
	switch (message->header.type) {
	case CV_HANDOVER_HELLO:
		return ends(message->hello.version, sizeof(message->hello.version)) &&
		       message->hello.pid > 0;
	case CV_HANDOVER_PORT:
		return message->port.zero == 0;
	case CV_HANDOVER_FROZEN:
		return message->header.bytes == CV_HANDOVER_FROZEN_LEAST ||
		       message->header.bytes == sizeof(message->frozen);
	case CV_HANDOVER_CARRIED:
		return message->carried.zero == 0 && message->carried.has_state <= 1 &&
		       message->fds.count == 3 + 2 * message->carried.has_state &&
		       message->carried.json_bytes <= CV_HANDOVER_JSON_MAX;
	case CV_HANDOVER_FLOWS:
		return message->flows.may_lose <= 1 && message->flows.zero == 0 &&
		       message->fds.count == 1;
	case CV_HANDOVER_KEPT:
		return message->fds.count == 1;
	case CV_HANDOVER_REFUSED:
		return ends(message->text, message->header.bytes);
	default:
		return true;
	}
}

int cv_handover_check(const struct cv_handover_message *message, size_t got, struct cv_error *error)
{
	const struct rule *rule;

	if (got < BODY || message->header.type >= CV_HANDOVER_TYPES ||
		rules[message->header.type].name == NULL) {
		cv_error_set(error, "the other node says what is no message of a handover");
		return -EPROTO;
	}
	rule = &rules[message->header.type];
	if (message->header.bytes == got - BODY && message->header.bytes >= rule->least &&
		message->header.bytes <= rule->most && message->fds.count <= rule->fds_most &&
		is_right(message))
		return 0;
	cv_error_set(error, "%s: has %u bytes and %u descriptors, or values that it must not have",
		rule->name, message->header.bytes, message->fds.count);
	return -EPROTO;
}

int cv_handover_send(
	int fd, struct cv_handover_message *message, enum cv_handover_type type, size_t bytes)
{
	message->header = (struct cv_handover_header){type, (uint32_t)bytes};
	return cv_socket_send_fds(fd, message, BODY + bytes, &message->fds);
}

int cv_handover_say(int fd, enum cv_handover_type type)
{
	const struct cv_handover_header header = {.type = type};

	return cv_socket_send(fd, &header, sizeof(header));
}

void cv_handover_refuse(int fd, const struct cv_error *why)
{
	struct cv_handover_message message = {.fds = {.count = 0}};

	snprintf(message.text, sizeof(message.text), "%s", why->text);
	cv_handover_send(fd, &message, CV_HANDOVER_REFUSED, strlen(message.text) + 1);
}

static int wait_for(int fd, int ms, struct cv_error *error)
{
	struct pollfd other = {.fd = fd, .events = POLLIN};
	int rc;

	do {
		rc = poll(&other, 1, ms);
	} while (rc < 0 && errno == EINTR);
	if (rc > 0)
		return 0;
	cv_error_set(error, "the other node says nothing for %d ms", ms);
	return -ETIMEDOUT;
}

int cv_handover_receive(int fd, struct cv_handover_message *message, int ms, struct cv_error *error)
{
	int got = wait_for(fd, ms, error);

	message->fds.count = 0;
	if (got != 0)
		return got;
	got = cv_socket_receive(
		fd, message, offsetof(struct cv_handover_message, fds), &message->fds);
	if (got == -ECONNRESET) // it ended with something unread; what it said last is still there
		got = cv_socket_receive(
			fd, message, offsetof(struct cv_handover_message, fds), &message->fds);
	if (got <= 0) {
		cv_error_set(error, "the other node has ended");
		return -EPIPE;
	}
	return cv_handover_check(message, (size_t)got, error);
}

int cv_handover_await(int fd, struct cv_handover_message *message, enum cv_handover_type type,
	int ms, struct cv_error *error)
{
	const int rc = cv_handover_receive(fd, message, ms, error);

	if (rc != 0 || message->header.type == type)
		return rc;
	if (message->header.type == CV_HANDOVER_REFUSED)
		cv_error_set(error, "%s", message->text);
	else
		cv_error_set(error, "%s: does not come now; %s does", name_of(message->header.type),
			name_of(type));
	return -EPROTO;
}
