// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/message.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static_assert(sizeof(struct cv_shared_message) == CV_SHARED_MESSAGE_BYTES, "as it is sent");

// A peer's text is shown to people.
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

static int wrong(struct cv_error *error, const char *text)
{
	cv_error_set(error, "%s", text);
	return -EPROTO;
}

static int check_welcome(const struct cv_shared_message *message, struct cv_error *error)
{
	struct cv_shared_layout layout = {.buffers = message->welcome.buffers,
		.stride = message->welcome.stride,
		.first = message->welcome.first,
		.room = message->welcome.room};

	if (message->welcome.version != CV_SHARED_VERSION)
		return wrong(
			error, "WELCOME of another version; run the same Convoy on both sides");
	if (message->welcome.member >= CV_SHARED_MEMBERS || !cv_shared_layout_make(&layout))
		return wrong(error, "WELCOME with a memory that cannot be");
	return 0;
}

static int check_named(struct cv_shared_message *message, struct cv_error *error)
{
	clean(message->named.name, sizeof(message->named.name));
	if (message->named.name[0] == '\0' || message->named.side > 1)
		return wrong(error, "a link without a name, or a third end of one");
	return 0;
}

int cv_shared_message_check(
	struct cv_shared_message *message, int size, unsigned fds, struct cv_error *error)
{
	if (size != CV_SHARED_MESSAGE_BYTES) {
		cv_error_set(error, "a message of %d bytes; they have %d", size,
			CV_SHARED_MESSAGE_BYTES);
		return -EPROTO;
	}
	if (fds != (message->type == CV_SHARED_WELCOME)) {
		cv_error_set(error, "a message of type %u with %u descriptors", message->type, fds);
		return -EPROTO;
	}
	if (message->link >= CV_SHARED_LINKS)
		return wrong(error, "a link with a number that is too high");
	switch (message->type) {
	case CV_SHARED_HELLO:
		if (message->hello.version != CV_SHARED_VERSION)
			return wrong(error,
				"HELLO of another version; run the same Convoy on both sides");
		return 0;
	case CV_SHARED_WELCOME:
		return check_welcome(message, error);
	case CV_SHARED_JOIN:
	case CV_SHARED_UP:
		return check_named(message, error);
	case CV_SHARED_DOWN:
	case CV_SHARED_STOPPED:
		return 0;
	case CV_SHARED_REFUSED:
		clean(message->why, sizeof(message->why));
		return 0;
	default:
		cv_error_set(error, "a message of unknown type %u", message->type);
		return -EPROTO;
	}
}
