// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One client of a control socket, served by the thread that calls. It blocks as long as the client
// is silent; shutdown() of its socket ends that.
#ifndef CV_CONTROL_CONNECTION_H
#define CV_CONTROL_CONNECTION_H

#include "daemon/control/server.h"

struct cv_connection {
	// Set before it is served.
	int fd;
	bool may_change;
	const struct cv_control_config *config;
	// Asked before a request is carried out, and told after; false: the connection is to end.
	bool (*begin)(struct cv_connection *connection);
	void (*end)(struct cv_connection *connection);
	// Whether there are so many bytes for the request; less than 0 gives them back.
	bool (*reserve)(struct cv_connection *connection, ssize_t bytes);

	// The thread's own.
	char *text; // received, and not yet carried out
	size_t used, size, scanned; // scanned: has no end of a line
	int file; // that came with it; -1
	size_t file_at; // of the bytes received, those up to here came no later than the file
};

// Greets, and answers until the client goes. Closes nothing but what came with requests.
void cv_connection_serve(struct cv_connection *connection);

#endif
