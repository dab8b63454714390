// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Preloaded by tests: a machine whose faults somebody chooses, in the file MACHINE_FAULTS.
//
// The wall clock is ahead by so much. Other clocks are as they are, and so is the one that the kernel
// goes by: what waits until a time of the wall clock waits as much too long. And no packet buffer is
// free, in any pool; threads keep none for themselves.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <rte_mempool.h>

#define NS_PER_S 1000000000

static const struct {
	int64_t clock_ns;
	int64_t no_buffers;
} * faults;

static rte_mempool_dequeue_t take[RTE_MEMPOOL_MAX_OPS_IDX]; // of each kind of pool

__attribute__((constructor)) static void map_faults(void)
{
	const char *path = getenv("MACHINE_FAULTS");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped;

	if (fd < 0)
		return;
	mapped = mmap(NULL, sizeof(*faults), PROT_READ, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		faults = mapped;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);
	int64_t ns;

	if (rc != 0 || faults == NULL ||
		(clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return rc;
	ns = now->tv_sec * (int64_t)NS_PER_S + now->tv_nsec +
	     __atomic_load_n(&faults->clock_ns, __ATOMIC_RELAXED);
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

struct rte_mempool *rte_mempool_create_empty(const char *name, unsigned n, unsigned bytes,
	unsigned cache, unsigned private, int socket, unsigned flags)
{
	struct rte_mempool *(*create)(const char *, unsigned, unsigned, unsigned, unsigned, int,
		unsigned) = (struct rte_mempool * (*)(const char *, unsigned, unsigned, unsigned,
							  unsigned, int, unsigned))
		dlsym(RTLD_NEXT, "rte_mempool_create_empty");

	return create(name, n, bytes, 0, private, socket, flags);
}

static int take_or_fail(struct rte_mempool *pool, void **buffers, unsigned n)
{
	if (faults != NULL && __atomic_load_n(&faults->no_buffers, __ATOMIC_RELAXED) != 0)
		return -ENOBUFS;
	return take[pool->ops_index](pool, buffers, n);
}

// All pools of packets are made with it.
int rte_mempool_set_ops_byname(struct rte_mempool *pool, const char *name, void *config)
{
	int (*set)(struct rte_mempool *, const char *, void *) = (int (*)(struct rte_mempool *,
		const char *, void *))dlsym(RTLD_NEXT, "rte_mempool_set_ops_byname");
	int rc = set(pool, name, config);
	rte_mempool_dequeue_t *dequeue;

	if (rc != 0)
		return rc;
	dequeue = &rte_mempool_ops_table.ops[pool->ops_index].dequeue;
	if (*dequeue != take_or_fail) {
		take[pool->ops_index] = *dequeue;
		*dequeue = take_or_fail;
	}
	return 0;
}
