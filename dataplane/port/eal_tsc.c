// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/eal_tsc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#define NS_PER_S 1000000000
#define EAL_SLEEP_NS (NS_PER_S / 10) // of the EAL's get_tsc_freq()
#define SLEEP_NS (NS_PER_S / 100)
#define SLEPT_NS NS_PER_S // at most, however busy the machine is
#define LATE_SHARE 50 // so many times as long as we were kept from waking: 2 % of error
#define READS 5

struct instant {
	uint64_t tsc, ns;
};

static __thread bool starts;
static double error;

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

// The EAL reads two clocks before, and after: what keeps us from waking may also come between those.
static int sleep_enough(struct timespec *left)
{
	const struct timespec time = {.tv_nsec = SLEEP_NS};
	const uint64_t begin = clock_ns();
	uint64_t now = begin, late = 0;
	int rc;

	do {
		const uint64_t due = now + SLEEP_NS;

		rc = clock_nanosleep(CLOCK_REALTIME, 0, &time, left);
		now = clock_ns();
		if (now > due && now - due > late)
			late = now - due;
	} while (rc == 0 && now - begin < LATE_SHARE * late && now - begin < SLEPT_NS);
	return rc;
}

// Stands before the C library's, for DPDK's libraries too.
int nanosleep(const struct timespec *time, struct timespec *left)
{
	const bool eal = starts && time->tv_sec == 0 && time->tv_nsec == EAL_SLEEP_NS;
	const int rc = eal ? sleep_enough(left) : clock_nanosleep(CLOCK_REALTIME, 0, time, left);

	if (rc == 0)
		return 0;
	errno = rc;
	return -1;
}

// Both at once, as far as that goes: of several reads, that with the least time between.
static struct instant read_clocks(void)
{
	struct instant best = {0, 0};
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < READS; i++) {
		const uint64_t before = rte_rdtsc(), ns = clock_ns(), took = rte_rdtsc() - before;

		if (took >= least)
			continue;
		least = took;
		best = (struct instant){.tsc = before + took / 2, .ns = ns};
	}
	return best;
}

int cv_eal_init(int argc, char **argv)
{
	const struct instant from = read_clocks();
	struct instant to;
	double hz;
	int rc;

	starts = true;
	rc = rte_eal_init(argc, argv);
	starts = false;
	if (rc < 0)
		return rc;
	to = read_clocks();
	hz = (double)(to.tsc - from.tsc) / (double)(to.ns - from.ns) * NS_PER_S;
	error = (double)rte_get_tsc_hz() / hz - 1;
	return rc;
}

double cv_eal_tsc_error(void)
{
	return error < 0 ? -error : error;
}
