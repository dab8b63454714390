// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The tester's clock: the invariant TSC, read without a system call.
#ifndef GEN_MACHINE_CLOCK_H
#define GEN_MACHINE_CLOCK_H

#include <stdint.h>

#include <x86intrin.h>

struct gen_clock {
	uint64_t hz;
	uint64_t ns_per_tick_32; // nanoseconds per tick, 32 fractional bits
	double ticks_per_ns;
};

// Measures the TSC against CLOCK_MONOTONIC_RAW for 100 ms: good to about 1 ppm.
struct gen_clock gen_clock_measure(void);

// CLOCK_MONOTONIC in nanoseconds: for deadlines, not for what is measured.
uint64_t gen_now_ns(void);

static inline uint64_t gen_ticks(void)
{
	return __rdtsc();
}

// Exact to 1 ns up to a day at 5 GHz.
static inline uint64_t gen_ticks_to_ns(const struct gen_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock->ns_per_tick_32) >> 32);
}

static inline uint64_t gen_ns_to_ticks(const struct gen_clock *clock, double ns)
{
	return (uint64_t)(ns * clock->ticks_per_ns + 0.5);
}

#endif
