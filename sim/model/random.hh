// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// xoshiro256++ (Blackman and Vigna, public domain algorithm), seeded by SplitMix64: the same
// numbers on every machine, one generator per source and per node.
#pragma once

#include <cmath>
#include <cstdint>

namespace sim
{

inline uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

class Random
{
      public:
	// The same seed with another stream number is an independent sequence.
	Random(uint64_t seed, uint64_t stream)
	{
		uint64_t x = mix64(seed) ^ mix64(~stream);
		for (auto &word : state_)
			word = x = mix64(x);
	}

	uint64_t next()
	{
		uint64_t sum = state_[0] + state_[3];
		uint64_t result = rotl(sum, 23) + state_[0];
		uint64_t t = state_[1] << 17;
		state_[2] ^= state_[0];
		state_[3] ^= state_[1];
		state_[1] ^= state_[2];
		state_[0] ^= state_[3];
		state_[2] ^= t;
		state_[3] = rotl(state_[3], 45);
		return result;
	}

	// Uniform in [0, bound); bound >= 1. Bias below 2^-64 * bound: no rejection loop.
	uint64_t below(uint64_t bound)
	{
		return static_cast<uint64_t>(
			(static_cast<unsigned __int128>(next()) * bound) >> 64);
	}

	// Uniform in (0, 1]: never 0, so its logarithm exists.
	double unit()
	{
		return static_cast<double>((next() >> 11) + 1) * 0x1p-53;
	}

	// Exponential with the given mean, rounded to an integer.
	int64_t exponential(double mean)
	{
		return std::llround(-std::log(unit()) * mean);
	}

	// Pareto with the given mean and shape > 1, rounded to an integer.
	int64_t pareto(double mean, double shape)
	{
		double least = mean * (shape - 1) / shape;
		return std::llround(least / std::pow(unit(), 1 / shape));
	}

      private:
	static uint64_t rotl(uint64_t x, int k)
	{
		return (x << k) | (x >> (64 - k));
	}

	uint64_t state_[4];
};

} // namespace sim
