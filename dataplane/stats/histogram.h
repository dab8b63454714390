// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A log-linear histogram with HdrHistogram's bucket layout (unit magnitude 0): linear buckets of
// width 1 up to 2 * 10^digits rounded up to a power of two, then every doubling of the value
// doubles the width. A recorded value is found again with a relative error below 10^-digits.
// Pairs [lowest value of a bucket, count] can be given to any HdrHistogram of the same digits
// (Python: record_value(value, count)), which then answers the same percentiles.
//
// Owned by the one thread that records; no allocation after cv_histogram_create.
#ifndef CV_HISTOGRAM_H
#define CV_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/compiler.h"

struct cv_histogram {
	uint64_t count; // values recorded
	uint64_t sum; // of the exact values; wraps after 2^64
	uint64_t min; // exact; UINT64_MAX while empty
	uint64_t max; // exact; 0 while empty
	uint64_t clipped; // values above `highest`, counted in the last bucket
	uint64_t highest; // largest value that has a bucket of its own
	uint32_t digits;
	uint32_t half_bits; // log2 of half the buckets of the first doubling
	size_t buckets;
	uint64_t counts[];
};

// digits: significant decimal digits, 1 to 4. highest: largest value to tell apart (>= 2).
// Returns NULL with errno EINVAL or ENOMEM. Free with free().
struct cv_histogram *cv_histogram_create(uint32_t digits, uint64_t highest);

// Back to empty.
void cv_histogram_clear(struct cv_histogram *h);

// Adds what `from` holds. -EINVAL if the layouts differ, then nothing is added.
int cv_histogram_merge(struct cv_histogram *h, const struct cv_histogram *from);

// Largest value that shares a bucket with the value at `percentile` (0 to 100), never above max;
// the rule of HdrHistogram's valueAtPercentile. 0 while empty.
uint64_t cv_histogram_percentile(const struct cv_histogram *h, double percentile);

// Smallest and largest value of a bucket.
uint64_t cv_histogram_lowest(const struct cv_histogram *h, size_t bucket);
uint64_t cv_histogram_highest(const struct cv_histogram *h, size_t bucket);

// The bucket of a value: shifts only, no division.
static inline size_t cv_histogram_bucket(const struct cv_histogram *h, uint64_t value)
{
	const uint32_t half = h->half_bits;
	const uint32_t top = 63 - (uint32_t)__builtin_clzll(value | ((2ull << half) - 1));
	const uint32_t shift = top - half;

	return ((size_t)shift << half) + (size_t)(value >> shift);
}

static inline void cv_histogram_record_n(struct cv_histogram *h, uint64_t value, uint64_t n)
{
	h->count += n;
	h->sum += value * n;
	h->min = value < h->min ? value : h->min;
	h->max = value > h->max ? value : h->max;
	if (CV_UNLIKELY(value > h->highest)) {
		h->clipped += n;
		value = h->highest;
	}
	h->counts[cv_histogram_bucket(h, value)] += n;
}

static inline void cv_histogram_record(struct cv_histogram *h, uint64_t value)
{
	cv_histogram_record_n(h, value, 1);
}

#endif
