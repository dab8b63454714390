// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Who may connect to a socket of ours: the keys socket_mode ("0660") and socket_group ("kvm", or a
// number). Without them the process's umask and group say so.
#ifndef CV_SOCKET_ACCESS_H
#define CV_SOCKET_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/params.h"

struct cv_socket_access {
	bool has_mode, has_group;
	mode_t mode;
	gid_t group;
};

// The two keys, read into a struct cv_socket_access that is zero.
extern const struct cv_param cv_socket_access_params[];

static inline bool cv_socket_access_is_set(const struct cv_socket_access *access)
{
	return access->has_mode || access->has_group;
}

// Sockets are made between the two calls: nobody may connect to them (but root) until finish() has
// given the one at path its mode and group. No other thread may make files meanwhile, for the umask
// is the process's. Returns what finish() is to be given.
mode_t cv_socket_access_begin(const struct cv_socket_access *access);

// made: a socket is at path. 0, or a negative errno with error set.
int cv_socket_access_finish(const struct cv_socket_access *access, mode_t begun, bool made,
	const char *path, struct cv_error *error);

// Gives the file or directory at path, which is no link, a mode and, if there is one, the group.
int cv_socket_access_give(const struct cv_socket_access *access, const char *path, mode_t mode,
	struct cv_error *error);

#endif
