// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The path of a UNIX socket that two processes meet at.
#ifndef CV_SOCKET_PATH_H
#define CV_SOCKET_PATH_H

#include <stdbool.h>

#include "port/socket_access.h"

// What kinds of port with a socket are told of it.
struct cv_socket_config {
	const char *path;
	struct cv_socket_access access;
};

// The keys path, socket_mode and socket_group.
extern const struct cv_param cv_socket_params[];

// Checks them without any effect: the path fits into a socket address (107 bytes), lies in a
// directory that exists (and that this user may write, for the side that listens), is no file of
// another type; only the side that listens says who may connect. 0, or -EINVAL with error set.
int cv_socket_check(const struct cv_socket_config *config, bool listens, struct cv_error *error);

// True if a living process has a socket at path. That process notices nothing.
bool cv_socket_is_alive(const char *path);

// For the side that listens, just before it does: removes the socket that a dead process left.
// Returns 0, -EADDRINUSE with error set where somebody listens there, or another -errno.
int cv_socket_claim(const char *path, struct cv_error *error);

#endif
