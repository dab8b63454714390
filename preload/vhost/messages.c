// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/messages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// rte_vhost's vhu_msg_context, the same in DPDK 22.11 and 24.11 (both refuse payloads of more than
// 632 bytes): as it hands a message to external handlers, which is why it stays as it is.
struct context {
	union {
		struct cv_vhost_message message;
		uint8_t bytes[12 + 632]; // the largest payload is a crypto session's
	};
	int files[8];
	int file_count;
} __attribute__((packed));

static void close_files(struct context *context)
{
	for (int i = 0; i < context->file_count; i++) {
		if (context->files[i] >= 0)
			close(context->files[i]);
		context->files[i] = -1;
	}
}

static uint64_t bytes_of(int file)
{
	struct stat status;

	// Asked first: only files of memory have seals, and asking never calls a file system that a
	// guest's side runs itself.
	if (fcntl(file, F_GET_SEALS) < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
		status.st_size < 0)
		return CV_FILTER_NO_MEMORY;
	return (uint64_t)status.st_size;
}

enum rte_vhost_msg_result cv_messages_before(
	struct cv_messages *messages, void *data, struct cv_error *error)
{
	struct context *context = data;
	struct cv_vhost_message *message = &context->message;
	uint64_t bytes[8] = {0};

	for (int i = 0; i < context->file_count; i++)
		bytes[i] = bytes_of(context->files[i]);
	messages->acknowledge =
		(message->flags & CV_VHOST_NEED_REPLY) != 0 &&
		(messages->filter.protocol >> CV_VHOST_PROTOCOL_F_REPLY_ACK & 1) != 0;
	error->text[0] = '\0';
	if (cv_filter_validate(
		    &messages->filter, message, bytes, (unsigned)context->file_count, error) != 0) {
		close_files(context);
		message->flags &= ~CV_VHOST_NEED_REPLY; // with it the connection would stay
		return RTE_VHOST_MSG_RESULT_ERR;
	}
	// A message that fails then ends the connection, too.
	message->flags &= ~CV_VHOST_NEED_REPLY;
	if (message->request != CV_VHOST_GET_PROTOCOL_FEATURES)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	message->u64 = cv_filter_protocol(&messages->filter);
	message->bytes = sizeof(message->u64);
	return RTE_VHOST_MSG_RESULT_REPLY;
}

void cv_messages_after(struct cv_messages *messages, void *data)
{
	struct cv_vhost_message *message = &((struct context *)data)->message;

	// Unless it had an answer of its own.
	if (messages->acknowledge && (message->flags & CV_VHOST_REPLY) == 0)
		message->flags |= CV_VHOST_NEED_REPLY;
}
