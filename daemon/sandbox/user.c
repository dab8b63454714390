// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool number_of(const char *text, unsigned long *number)
{
	char *end;

	*number = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *number < UINT32_MAX;
}

static int find_group(const char *text, struct cv_user *user, struct cv_error *error)
{
	const struct group *group = getgrnam(text);
	unsigned long number;

	if (group == NULL && !number_of(text, &number)) {
		cv_error_set(error,
			"run_as: \"%.64s\": there is no such group; name one of `getent group`",
			text);
		return -EINVAL;
	}
	user->gid = group != NULL ? group->gr_gid : (gid_t)number;
	user->groups[0] = user->gid;
	user->groups_count = 1;
	return 0;
}

int cv_user_find(const char *text, struct cv_user *user, struct cv_error *error)
{
	const char *colon = strchrnul(text, ':');
	const struct passwd *entry;
	unsigned long number;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	entry = getpwnam(name);
	if (entry == NULL && number_of(name, &number))
		entry = getpwuid((uid_t)number);
	if (entry == NULL) {
		cv_error_set(error,
			"run_as: \"%s\": there is no such user; name one of `getent passwd`", name);
		return -EINVAL;
	}
	user->uid = entry->pw_uid;
	user->gid = entry->pw_gid;
	if (*colon == ':')
		return find_group(colon + 1, user, error);
	user->groups_count = CV_USER_GROUPS_MAX;
	if (getgrouplist(entry->pw_name, entry->pw_gid, user->groups, &user->groups_count) < 0) {
		cv_error_set(error, "run_as: \"%s\": is in more than %d groups", name,
			CV_USER_GROUPS_MAX);
		return -EINVAL;
	}
	return 0;
}

int cv_user_become(const struct cv_user *user)
{
	int ends_with_parent = 0;

	// Linux forgets it when the user changes.
	prctl(PR_GET_PDEATHSIG, &ends_with_parent, 0, 0, 0);
	if (setgroups((size_t)user->groups_count, user->groups) != 0 ||
		setresgid(user->gid, user->gid, user->gid) != 0 ||
		setresuid(user->uid, user->uid, user->uid) != 0)
		return -errno;
	if (ends_with_parent != 0)
		prctl(PR_SET_PDEATHSIG, ends_with_parent, 0, 0, 0);
	return 0;
}
