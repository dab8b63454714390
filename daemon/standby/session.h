// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An active node's connection at its standby, without its socket: bytes in, bytes out, both bounded. The
// other end has the key, and may say anything all the same: what it writes goes into files of memory that are
// as long as this node's, and nowhere else. What is in them is not looked at here.
#ifndef CV_STANDBY_SESSION_H
#define CV_STANDBY_SESSION_H

#include <stdbool.h>

#include "daemon/standby/message.h"
#include "packet/error.h"

// A file that this node would take.
struct cv_standby_own {
	uint32_t kind;
	uint64_t id, layout;
	size_t bytes; // that it has
	size_t bytes_max; // that it takes at most
	const char *name; // of the function
};

// Files that an active node has written.
struct cv_standby_set {
	unsigned count;
	struct cv_standby_file {
		uint8_t *memory; // NULL: it is not taken
		size_t bytes;
		int fd; // a file of memory, which stays so long
		uint32_t kind;
		uint64_t id, layout;
	} files[CV_STANDBY_FILES_MAX];
	uint64_t passes; // that are whole; 0: not all flows are there
	uint64_t flows; // of the last one
};

void cv_standby_set_free(struct cv_standby_set *set); // NULL is allowed

struct cv_standby_session {
	const struct cv_standby_own *own;
	unsigned own_count;
	const char *version; // of Convoy here
	struct cv_standby_set *set; // NULL: it has not greeted, or was refused
	bool failed; // it is to be disconnected once its answer is sent
	uint8_t in[32768];
	size_t in_used;
	uint8_t out[1024]; // answers
	size_t out_used;
	uint64_t acked; // of the set's passes
	uint64_t writes, bytes;
	struct cv_error note; // what is to be said of it; ""
};

void cv_standby_session_begin(struct cv_standby_session *session, const struct cv_standby_own *own,
	unsigned own_count, const char *version);

// Takes what has come (in, in_used). Where failed is set afterwards, note has words.
void cv_standby_session_run(struct cv_standby_session *session);

#endif
