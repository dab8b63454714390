// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/eal_stale.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// A process id, if that is how the folder of a program is named, else 0.
static pid_t owner_of(const char *name, const char *program)
{
	const size_t length = strlen(program);
	char *end;
	long pid;

	if (strncmp(name, program, length) != 0 || name[length] != '-' ||
		!isdigit((unsigned char)name[length + 1]))
		return 0;
	pid = strtol(name + length + 1, &end, 10);
	return *end == '\0' && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

// DPDK's first process of a folder locks a part of this file for as long as it lives.
static bool is_locked(int folder)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(folder, "config", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool locked;

	if (fd < 0)
		return errno != ENOENT;
	locked = fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
	close(fd);
	return locked;
}

// Nobody is behind a socket that was made there.
static bool refuses(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool refused;
	int fd;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", path) >=
		(int)sizeof(address.sun_path))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
		  errno == ECONNREFUSED;
	close(fd);
	return refused;
}

static void remove_if_stale(const char *base, const char *name)
{
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	DIR *folder;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", base, name) >= (int)sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || st.st_uid != getuid() || is_locked(fd) || !refuses(path) ||
		(folder = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while ((entry = readdir(folder)) != NULL)
		unlinkat(fd, entry->d_name, 0);
	closedir(folder);
	rmdir(path);
}

void cv_eal_remove_stale(const char *base, const char *program)
{
	DIR *directory = opendir(base);
	struct dirent *entry;
	pid_t pid;

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL) {
		pid = owner_of(entry->d_name, program);
		if (pid != 0 && kill(pid, 0) != 0 && errno == ESRCH)
			remove_if_stale(base, entry->d_name);
	}
	closedir(directory);
}
