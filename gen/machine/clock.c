// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/machine/clock.h"

#include <time.h>

static uint64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A pair of readings that were taken close together: the tightest of a few tries.
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
	uint64_t tightest = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		const uint64_t before = gen_ticks();
		const uint64_t now = raw_ns();
		const uint64_t after = gen_ticks();

		if (after - before < tightest) {
			tightest = after - before;
			*ticks = before + (after - before) / 2;
			*ns = now;
		}
	}
}

struct gen_clock gen_clock_measure(void)
{
	const struct timespec wait = {.tv_nsec = 100 * 1000 * 1000};
	uint64_t ticks[2] = {0}, ns[2] = {0};
	struct gen_clock clock;

	read_pair(&ticks[0], &ns[0]);
	nanosleep(&wait, NULL);
	read_pair(&ticks[1], &ns[1]);
	clock.ticks_per_ns = (double)(ticks[1] - ticks[0]) / (double)(ns[1] - ns[0]);
	clock.hz = (uint64_t)(clock.ticks_per_ns * 1e9 + 0.5);
	clock.ns_per_tick_32 = (uint64_t)(4294967296.0 / clock.ticks_per_ns + 0.5);
	return clock;
}

uint64_t gen_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
