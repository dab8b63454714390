// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// "USER" or "USER:GROUP", by name or number.
#ifndef CV_USER_H
#define CV_USER_H

#include <sys/types.h>

#include "packet/error.h"

#define CV_USER_GROUPS_MAX 256

struct cv_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[CV_USER_GROUPS_MAX]; // the user's others
	int groups_count;
};

// 0, or -EINVAL with error set.
int cv_user_find(const char *text, struct cv_user *user, struct cv_error *error);

// Becomes that user, in all threads. Takes root. 0, or -errno.
int cv_user_become(const struct cv_user *user);

#endif
