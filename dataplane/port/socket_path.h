// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The path of a UNIX socket that two processes meet at.
#ifndef CV_SOCKET_PATH_H
#define CV_SOCKET_PATH_H

#include <stdbool.h>

#include <jansson.h>

#include "packet/error.h"

// Checks the key "path" without any effect: fits into a socket address (107 bytes), in a directory
// that exists (and that this user may write, for the side that listens), no file of another type.
// socket_mode and socket_group (socket_access.h), if the kind has them, are right.
// Returns the path (it lives as long as config), or NULL with error set.
const char *cv_socket_path(const json_t *config, bool listens, struct cv_error *error);

// True if a living process has a socket at path. That process notices nothing.
bool cv_socket_is_alive(const char *path);

// For the side that listens, just before it does: removes the socket that a dead process left.
// Returns 0, -EADDRINUSE with error set where somebody listens there, or another -errno.
int cv_socket_claim(const char *path, struct cv_error *error);

#endif
