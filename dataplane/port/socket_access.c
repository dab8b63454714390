// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/socket_access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_mode(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	struct cv_socket_access *access = member;
	const char *text = json_string_value(value);
	unsigned long mode;
	char *end;

	if (text == NULL)
		return cv_where_wrong(at, key, value, "must be a string");
	mode = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777)
		return cv_where_wrong(
			at, key, value, "is no file mode; write one in octal, like \"0660\"");
	access->has_mode = true;
	access->mode = (mode_t)mode;
	return 0;
}

static int read_group(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	struct cv_socket_access *access = member;
	const char *text = json_string_value(value);
	const struct group *group;
	unsigned long number;
	char *end;

	if (text == NULL)
		return cv_where_wrong(at, key, value, "must be a string");
	group = getgrnam(text);
	number = strtoul(text, &end, 10);
	if (group == NULL &&
		(text[0] < '0' || text[0] > '9' || *end != '\0' || number >= UINT32_MAX))
		return cv_where_wrong(
			at, key, value, "there is no such group; name one of `getent group`");
	access->has_group = true;
	access->group = group != NULL ? group->gr_gid : (gid_t)number;
	return 0;
}

const struct cv_param cv_socket_access_params[] = {
	{"socket_mode", CV_CUSTOM, .read = read_mode},
	{"socket_group", CV_CUSTOM, .read = read_group},
	{0},
};

mode_t cv_socket_access_begin(const struct cv_socket_access *access)
{
	return cv_socket_access_is_set(access) ? umask(0777) : 0;
}

int cv_socket_access_give(const struct cv_socket_access *access, const char *path, mode_t mode,
	struct cv_error *error)
{
	// By descriptor, so that a link put there meanwhile is not followed. A socket cannot be
	// opened but so, and fchmod() does not take what was opened so.
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char self[32];
	int rc = 0;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd < 0)
		rc = -errno;
	else if (access->has_group &&
		 fchownat(fd, "", (uid_t)-1, access->group, AT_EMPTY_PATH) != 0)
		rc = -errno;
	else if (chmod(self, mode) != 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc == -EPERM)
		cv_error_set(error,
			"socket_group: %s: this user may not give it to group %u; be a member",
			path, (unsigned)access->group);
	else if (rc != 0)
		cv_error_set(error, "socket_mode: %s: %s", path, strerror(-rc));
	return rc;
}

int cv_socket_access_finish(const struct cv_socket_access *access, mode_t begun, bool made,
	const char *path, struct cv_error *error)
{
	if (!cv_socket_access_is_set(access))
		return 0;
	umask(begun);
	if (!made)
		return 0;
	return cv_socket_access_give(
		access, path, access->has_mode ? access->mode : 0777 & ~begun, error);
}
