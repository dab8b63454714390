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

#include "port/keys.h"

static int read_mode(const char *text, struct cv_socket_access *access, struct cv_error *error)
{
	char *end;
	const unsigned long mode = strtoul(text, &end, 8);

	if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777) {
		cv_error_set(error,
			"socket_mode: \"%.64s\": is no file mode; write one in octal, like "
			"\"0660\"",
			text);
		return -EINVAL;
	}
	access->has_mode = true;
	access->mode = (mode_t)mode;
	return 0;
}

static int read_group(const char *text, struct cv_socket_access *access, struct cv_error *error)
{
	const struct group *group = getgrnam(text);
	char *end;
	const unsigned long number = strtoul(text, &end, 10);

	if (group == NULL &&
		(text[0] < '0' || text[0] > '9' || *end != '\0' || number >= UINT32_MAX)) {
		cv_error_set(error,
			"socket_group: \"%.64s\": there is no such group; name one of `getent "
			"group`",
			text);
		return -EINVAL;
	}
	access->has_group = true;
	access->group = group != NULL ? group->gr_gid : (gid_t)number;
	return 0;
}

int cv_socket_access_read(
	const json_t *config, struct cv_socket_access *access, struct cv_error *error)
{
	const char *mode = cv_key_string(config, "socket_mode", "", error);
	const char *group = cv_key_string(config, "socket_group", "", error);

	*access = (struct cv_socket_access){0};
	if (mode == NULL || group == NULL)
		return -EINVAL;
	if (mode[0] != '\0' && read_mode(mode, access, error) != 0)
		return -EINVAL;
	return group[0] != '\0' ? read_group(group, access, error) : 0;
}

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
