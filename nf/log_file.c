// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

static int regular(const struct stat *of)
{
	return S_ISREG(of->st_mode) ? 0 : S_ISDIR(of->st_mode) ? EISDIR : EINVAL;
}

int cv_log_file_check(const char *path)
{
	char folder[PATH_MAX];
	struct stat of;

	if (stat(path, &of) == 0 && regular(&of) != 0)
		return regular(&of);
	if (access(path, W_OK) == 0)
		return 0;
	if (errno != ENOENT)
		return errno;
	if (strlen(path) >= sizeof(folder))
		return ENAMETOOLONG;
	strcpy(folder, path);
	return access(dirname(folder), W_OK | X_OK) == 0 ? 0 : errno;
}

int cv_log_file_open(const char *path)
{
	const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	struct stat of;
	int rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, &of) != 0 ? errno : regular(&of);
	if (rc == 0)
		return fd;
	close(fd);
	return -rc;
}

uint64_t cv_log_file_time(uint64_t tsc, char *date, size_t size)
{
	const uint64_t ago = rte_get_tsc_cycles() - tsc, hz = rte_get_tsc_hz();
	const uint64_t ago_ns = hz == 0 ? 0 : (uint64_t)((double)ago / (double)hz * 1e9);
	struct timespec now;
	uint64_t then;
	time_t seconds;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	then = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	then -= then < ago_ns ? then : ago_ns;
	seconds = (time_t)(then / 1000000000);
	gmtime_r(&seconds, &tm);
	strftime(date, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return then / 1000;
}
