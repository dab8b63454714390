// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A limit to how often something is done: so many times a second, and a tenth of that, at least 10,
// at once. Of one worker.
#ifndef CV_TOKEN_BUCKET_H
#define CV_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct cv_token_bucket {
	uint64_t interval; // TSC ticks per token; 0: there never is one
	uint64_t burst; // TSC ticks: the most that is saved
	uint64_t saved; // TSC ticks
	uint64_t last; // when it was asked last
};

static inline struct cv_token_bucket cv_token_bucket(uint32_t per_second, uint64_t hz)
{
	uint64_t interval = per_second == 0 ? 0 : hz / per_second;
	uint64_t burst = interval * (per_second < 100 ? 10 : per_second / 10);

	return (struct cv_token_bucket){.interval = interval, .burst = burst, .saved = burst};
}

// Takes a token, if there is one.
static inline bool cv_token_bucket_take(struct cv_token_bucket *bucket, uint64_t now)
{
	uint64_t passed = now - bucket->last;

	bucket->last = now;
	bucket->saved =
		passed > bucket->burst - bucket->saved ? bucket->burst : bucket->saved + passed;
	if (bucket->interval == 0 || bucket->saved < bucket->interval)
		return false;
	bucket->saved -= bucket->interval;
	return true;
}

#endif
