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
#define SLEEP_NS (NS_PER_S / 1000)
#define MEASURED_NS (NS_PER_S / 100) // at least: 10 ppm where both clocks are read within 100 ns
#define READS 20
#define HZ_ROUND 100000 // so that all processes of a machine get the same, mostly

struct instant {
	uint64_t tsc, ns;
};

static struct instant loaded;
static uint64_t tsc_hz; // 0: nobody asked yet
static __thread bool starts;

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
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

__attribute__((constructor)) static void note_load(void)
{
	loaded = read_clocks();
}

static uint64_t measure(void)
{
	struct instant now;
	double hz;

	do
		now = read_clocks();
	while (now.ns - loaded.ns < MEASURED_NS);
	hz = (double)(now.tsc - loaded.tsc) / (double)(now.ns - loaded.ns) * NS_PER_S;
	return (uint64_t)(hz / HZ_ROUND + 0.5) * HZ_ROUND;
}

// Stands before DPDK's, for its libraries too. All get what the first one measured.
uint64_t rte_get_tsc_hz(void)
{
	uint64_t known = __atomic_load_n(&tsc_hz, __ATOMIC_RELAXED);

	if (known == 0) {
		const uint64_t measured = measure();

		if (__atomic_compare_exchange_n(
			    &tsc_hz, &known, measured, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			known = measured;
	}
	return known;
}

// Stands before the C library's, for DPDK's libraries too.
int nanosleep(const struct timespec *time, struct timespec *left)
{
	const struct timespec less = {.tv_nsec = SLEEP_NS};
	const bool eal = starts && time->tv_sec == 0 && time->tv_nsec == EAL_SLEEP_NS;
	const int rc = clock_nanosleep(CLOCK_REALTIME, 0, eal ? &less : time, left);

	if (rc == 0)
		return 0;
	errno = rc;
	return -1;
}

int cv_eal_init(int argc, char **argv)
{
	int rc;

	starts = true;
	rc = rte_eal_init(argc, argv);
	starts = false;
	rte_get_tsc_hz(); // asked while there is time
	return rc;
}
