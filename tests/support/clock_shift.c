// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Preloaded by tests: a wall clock that somebody sets. It is ahead of the machine's by what the file
// CLOCK_SHIFT has in its first eight bytes, in nanoseconds. Other clocks are as they are, and so is
// the one that the kernel goes by: what waits until a time of the wall clock waits as much too long.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static const int64_t *shift;

__attribute__((constructor)) static void map_shift(void)
{
	const char *path = getenv("CLOCK_SHIFT");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped;

	if (fd < 0)
		return;
	mapped = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		shift = mapped;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);
	int64_t ns;

	if (rc != 0 || shift == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return rc;
	ns = now->tv_sec * (int64_t)NS_PER_S + now->tv_nsec +
	     __atomic_load_n(shift, __ATOMIC_RELAXED);
	*now = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
	return 0;
}

time_t time(time_t *seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (seconds != NULL)
		*seconds = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict unused)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	*now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
	return 0;
}
