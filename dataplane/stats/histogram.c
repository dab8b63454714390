// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "stats/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cv_histogram *cv_histogram_create(uint32_t digits, uint64_t highest)
{
	struct cv_histogram layout = {.digits = digits, .min = UINT64_MAX};
	uint64_t linear = 2;

	if (digits < 1 || digits > 4 || highest < 2) {
		errno = EINVAL;
		return NULL;
	}
	for (uint32_t i = 0; i < digits; i++)
		linear *= 10;
	while ((2ull << layout.half_bits) < linear)
		layout.half_bits++;

	layout.highest = highest;
	layout.buckets = cv_histogram_bucket(&layout, highest) + 1;
	struct cv_histogram *h = calloc(1, sizeof(*h) + layout.buckets * sizeof(h->counts[0]));
	if (h == NULL)
		return NULL;
	*h = layout;
	return h;
}

void cv_histogram_clear(struct cv_histogram *h)
{
	memset(h->counts, 0, h->buckets * sizeof(h->counts[0]));
	h->count = h->sum = h->max = h->clipped = 0;
	h->min = UINT64_MAX;
}

int cv_histogram_merge(struct cv_histogram *h, const struct cv_histogram *from)
{
	if (h->digits != from->digits || h->highest != from->highest)
		return -EINVAL;
	for (size_t i = 0; i < h->buckets; i++)
		h->counts[i] += from->counts[i];
	h->count += from->count;
	h->sum += from->sum;
	h->clipped += from->clipped;
	h->min = from->min < h->min ? from->min : h->min;
	h->max = from->max > h->max ? from->max : h->max;
	return 0;
}

uint64_t cv_histogram_lowest(const struct cv_histogram *h, size_t bucket)
{
	const size_t half = (size_t)1 << h->half_bits;

	if (bucket < 2 * half)
		return bucket;
	const size_t shift = bucket / half - 1;
	return (uint64_t)(bucket - shift * half) << shift;
}

uint64_t cv_histogram_highest(const struct cv_histogram *h, size_t bucket)
{
	return cv_histogram_lowest(h, bucket + 1) - 1;
}

uint64_t cv_histogram_percentile(const struct cv_histogram *h, double percentile)
{
	uint64_t wanted = (uint64_t)(percentile * (double)h->count / 100.0 + 0.5);
	uint64_t seen = 0;

	if (h->count == 0)
		return 0;
	if (wanted < 1)
		wanted = 1;
	for (size_t i = 0; i < h->buckets; i++) {
		seen += h->counts[i];
		if (seen >= wanted) {
			const uint64_t value = cv_histogram_highest(h, i);
			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}
