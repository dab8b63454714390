// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/kind.h"
#include "port/socket_access.h"

#define PATH_BYTES (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

const struct cv_param cv_socket_params[] = {
	{"path", CV_CUSTOM, CV_AT(struct cv_socket_config, path), .required = true,
		.read = cv_read_plain},
	{NULL, CV_PARAMS, CV_AT(struct cv_socket_config, access),
		.params = cv_socket_access_params},
	{0},
};

static int check_access(const struct cv_socket_access *access, bool listens, struct cv_error *error)
{
	if (listens || !cv_socket_access_is_set(access))
		return 0;
	cv_error_set(error,
		"%s: the peer makes the socket, and says who may connect; remove it here",
		access->has_mode ? "socket_mode" : "socket_group");
	return -EINVAL;
}

int cv_socket_check(const struct cv_socket_config *config, bool listens, struct cv_error *error)
{
	const char *path = config->path;
	char parent[PATH_BYTES + 1];
	const char *directory;
	struct stat st;

	if (strlen(path) > PATH_BYTES) {
		cv_error_set(error, "path: \"%.128s\": has %zu bytes; at most %zu are possible",
			path, strlen(path), PATH_BYTES);
		return -EINVAL;
	}
	if (check_access(&config->access, listens, error) != 0)
		return -EINVAL;
	snprintf(parent, sizeof(parent), "%s", path);
	directory = dirname(parent);
	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		cv_error_set(error, "path: %s: is there and is no socket; name another", path);
		return -EINVAL;
	}
	if (!listens)
		return 0;
	if (stat(directory, &st) != 0) {
		cv_error_set(error, "path: %s: its directory: %s; make it: mkdir -p %s", path,
			strerror(errno), directory);
		return -EINVAL;
	}
	if (access(directory, W_OK | X_OK) != 0) {
		cv_error_set(error, "path: %s: its directory: %s; let this user write it", path,
			strerror(errno));
		return -EINVAL;
	}
	return 0;
}

// 0 if a living process has a socket at path, else -errno.
static int probe(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	// A datagram socket: where a stream or sequenced one listens, the answer is EPROTOTYPE,
	// and the other side is not disturbed.
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EPROTOTYPE)
		rc = -errno;
	close(fd);
	return rc;
}

bool cv_socket_is_alive(const char *path)
{
	return probe(path) == 0;
}

int cv_socket_claim(const char *path, struct cv_error *error)
{
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	rc = probe(path);
	if (rc == 0) {
		cv_error_set(error,
			"path: %s: another process listens there; stop it, or name another path",
			path);
		return -EADDRINUSE;
	}
	if (rc == -ECONNREFUSED && unlink(path) == 0)
		return 0;
	rc = rc == -ECONNREFUSED ? -errno : rc;
	cv_error_set(error, "path: %s: is there and cannot be taken over: %s; remove it", path,
		strerror(-rc));
	return rc;
}
