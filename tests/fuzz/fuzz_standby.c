// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An active node that has the key, and says anything to its standby. Its writes stay in files as long as the
// standby's own, a refusal says why, and no descriptor stays open.
//
//	first byte: whether a right greeting comes first; the rest: bytes as they come, in pieces
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/standby/session.h"

#define BYTES 8192u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cv_standby_own own[] = {
	{.kind = 1, .id = 1, .layout = 11, .bytes_max = BYTES, .name = "fw"},
	{.kind = 2, .id = 2, .layout = 22, .bytes_max = BYTES, .name = "nat"},
};

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static void feed(struct cv_standby_session *session, const uint8_t *data, size_t size)
{
	while (size > 0 && !session->failed) {
		const size_t room = sizeof(session->in) - session->in_used;
		const size_t some = size < room ? size : room;

		require(room > 0, "there is room for a message");
		memcpy(session->in + session->in_used, data, some);
		session->in_used += some;
		data += some;
		size -= some;
		cv_standby_session_run(session);
		require(!session->failed || session->note.text[0] != '\0', "a refusal says why");
		require(session->out_used <= sizeof(session->out), "answers are bounded");
		if ((some & 1) != 0) // they are sent, or not
			session->out_used = 0;
	}
}

static void greet(struct cv_standby_session *session)
{
	static struct cv_standby_hello hello = {.magic = CV_STANDBY_MAGIC,
		.protocol = CV_STANDBY_PROTOCOL,
		.count = 2,
		.files = {{.kind = 1, .id = 1, .layout = 11, .bytes = BYTES},
			{.kind = 2, .id = 2, .layout = 22, .bytes = BYTES}}};
	const struct cv_standby_header header = {
		.type = CV_STANDBY_HELLO, .bytes = CV_STANDBY_HELLO_BYTES(2)};

	feed(session, (const uint8_t *)&header, sizeof(header));
	feed(session, (const uint8_t *)&hello, CV_STANDBY_HELLO_BYTES(2));
	require(session->set != NULL && session->set->files[1].memory != NULL, "it is welcome");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cv_standby_session session;
	const int before = fcntl(0, F_DUPFD_CLOEXEC, 0);

	cv_standby_session_begin(&session, own, 2, "0");
	if (size > 0 && (data[0] & 1) != 0)
		greet(&session);
	if (size > 0)
		feed(&session, data + 1, size - 1);
	for (unsigned i = 0; session.set != NULL && i < session.set->count; i++)
		require(session.set->files[i].memory == NULL ||
				session.set->files[i].bytes <= BYTES,
			"no file is longer than ours");
	cv_standby_set_free(session.set);
	// The lowest that is free is the same as before: nothing stayed open.
	close(before);
	require(fcntl(0, F_DUPFD_CLOEXEC, before) == before, "no descriptor stays open");
	close(before);
	return 0;
}
