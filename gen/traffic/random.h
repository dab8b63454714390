// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Reproducible choices: the same seed gives the same traffic everywhere.
#ifndef GEN_TRAFFIC_RANDOM_H
#define GEN_TRAFFIC_RANDOM_H

#include <stdint.h>

// splitmix64 (Steele, Lea, Flood 2014).
static inline uint64_t gen_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

// Fisher-Yates.
static inline void gen_shuffle(uint32_t *values, uint32_t count, uint64_t seed)
{
	for (uint32_t i = count; i > 1; i--) {
		const uint32_t other = (uint32_t)(gen_random(&seed) % i);
		const uint32_t value = values[i - 1];

		values[i - 1] = values[other];
		values[other] = value;
	}
}

#endif
