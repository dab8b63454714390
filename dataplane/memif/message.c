// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "memif/message.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static_assert(sizeof(struct cv_memif_message) == CV_MEMIF_MESSAGE_BYTES, "as memif has it");
static_assert(offsetof(struct cv_memif_message, hello.max_log2_ring_size) == 44, "as memif has it");
static_assert(offsetof(struct cv_memif_message, init.name) == 33, "as memif has it");
static_assert(
	offsetof(struct cv_memif_message, add_ring.private_header_bytes) == 13, "as memif has it");

// A peer's text is shown to people.
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

int cv_memif_message_check(
	struct cv_memif_message *message, int size, unsigned fds, struct cv_error *error)
{
	unsigned wanted = 0;

	if (size != CV_MEMIF_MESSAGE_BYTES) {
		cv_error_set(error, "a message of %d bytes; memif's have 128", size);
		return -EPROTO;
	}
	switch (message->type) {
	case CV_MEMIF_ACK:
		break;
	case CV_MEMIF_HELLO:
		clean(message->hello.name, sizeof(message->hello.name));
		break;
	case CV_MEMIF_INIT:
		clean(message->init.name, sizeof(message->init.name));
		break;
	case CV_MEMIF_ADD_REGION:
	case CV_MEMIF_ADD_RING:
		wanted = 1;
		break;
	case CV_MEMIF_CONNECT:
	case CV_MEMIF_CONNECTED:
		clean(message->connect.interface, sizeof(message->connect.interface));
		break;
	case CV_MEMIF_DISCONNECT:
		clean(message->disconnect.reason, sizeof(message->disconnect.reason));
		break;
	default:
		cv_error_set(error, "a message of unknown type %u", message->type);
		return -EPROTO;
	}
	if (fds != wanted) {
		cv_error_set(error, "a message of type %u with %u descriptors; %u belong to it",
			message->type, fds, wanted);
		return -EPROTO;
	}
	return 0;
}
