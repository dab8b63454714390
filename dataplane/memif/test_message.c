// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "memif/message.h"

static const struct {
	uint16_t type;
	int size;
	unsigned fds;
	const char *refusal; // NULL: it is taken
} messages[] = {
	{CV_MEMIF_ACK, 128, 0, NULL},
	{CV_MEMIF_HELLO, 128, 0, NULL},
	{CV_MEMIF_INIT, 128, 0, NULL},
	{CV_MEMIF_ADD_REGION, 128, 1, NULL},
	{CV_MEMIF_ADD_RING, 128, 1, NULL},
	{CV_MEMIF_CONNECT, 128, 0, NULL},
	{CV_MEMIF_CONNECTED, 128, 0, NULL},
	{CV_MEMIF_DISCONNECT, 128, 0, NULL},
	{0, 128, 0, "unknown type 0"},
	{9, 128, 0, "unknown type 9"},
	{65535, 128, 0, "unknown type 65535"},
	{CV_MEMIF_ACK, 127, 0, "127 bytes"},
	{CV_MEMIF_ACK, 129, 0, "129 bytes"},
	{CV_MEMIF_ACK, 1, 0, "1 bytes"},
	{CV_MEMIF_ACK, 128, 1, "1 descriptors; 0"},
	{CV_MEMIF_INIT, 128, 8, "8 descriptors; 0"},
	{CV_MEMIF_ADD_REGION, 128, 0, "0 descriptors; 1"},
	{CV_MEMIF_ADD_REGION, 128, 2, "2 descriptors; 1"},
	{CV_MEMIF_ADD_RING, 128, 0, "0 descriptors; 1"},
	{CV_MEMIF_DISCONNECT, 128, 1, "1 descriptors; 0"},
};

static void messages_have_their_size_type_and_descriptors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct cv_memif_message message = {.type = messages[i].type};
		struct cv_error error = {""};
		const int rc =
			cv_memif_message_check(&message, messages[i].size, messages[i].fds, &error);

		assert_int_equal(rc, messages[i].refusal == NULL ? 0 : -EPROTO);
		if (messages[i].refusal != NULL)
			assert_non_null(strstr(error.text, messages[i].refusal));
	}
}

static void texts_of_a_peer_end_and_can_be_shown(void **state)
{
	struct cv_memif_message message;
	struct cv_error error = {""};

	(void)state;
	memset(&message, 'x', sizeof(message));
	message.type = CV_MEMIF_DISCONNECT;
	memcpy(message.disconnect.reason, "\033[2J\n\xff", 6);
	assert_int_equal(cv_memif_message_check(&message, 128, 0, &error), 0);
	assert_memory_equal(message.disconnect.reason, "?[2J??xxx", 9);
	assert_int_equal(strlen(message.disconnect.reason), CV_MEMIF_REASON_BYTES - 1);

	memset(&message, 'x', sizeof(message));
	message.type = CV_MEMIF_INIT;
	assert_int_equal(cv_memif_message_check(&message, 128, 0, &error), 0);
	assert_int_equal(strlen(message.init.name), CV_MEMIF_NAME_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_have_their_size_type_and_descriptors),
		cmocka_unit_test(texts_of_a_peer_end_and_can_be_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
