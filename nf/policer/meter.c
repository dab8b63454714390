// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <math.h>

#include <rte_common.h>

#include "nf/policer/meter.h"

#define PERIOD_ENOUGH 16384 // cycles: a longer period is not tried for exactness
#define TOKENS_TRIED 16 // nor more tokens, where one takes longer than that
#define ERROR_ENOUGH 1e-6
#define BURST_PART 64 // tokens of a period are this part of a burst at most

// Tokens that are added once in so many cycles: the two whole numbers that come nearest to the rate.
// Few of a burst's tokens at once, for what does not fit is lost.
static void choose_period(
	double rate, uint64_t burst, double tsc_hz, uint64_t *cycles, uint64_t *tokens)
{
	const double per_token = tsc_hz / rate;
	double least = INFINITY;

	*cycles = PERIOD_ENOUGH;
	*tokens = 0;
	if (rate <= 0)
		return;
	for (uint64_t n = 1; least > ERROR_ENOUGH &&
			     (n <= TOKENS_TRIED || (double)n * per_token <= PERIOD_ENOUGH);
		n++) {
		const double exact = (double)n * per_token;
		const double period = fmax(1, round(exact));
		const double error = fabs(exact - period) / period;

		if (n > 1 && (error >= least || n > burst / BURST_PART))
			continue;
		least = error;
		*cycles = (uint64_t)period;
		*tokens = n;
	}
}

static struct cv_meter_bucket_rate bucket_rate(double rate, uint64_t burst, uint64_t tsc_hz)
{
	struct cv_meter_bucket_rate bucket = {.burst = burst};

	choose_period(rate, burst, (double)tsc_hz, &bucket.period, &bucket.tokens);
	bucket.reciprocal = UINT64_MAX / bucket.period;
	return bucket;
}

void cv_meter_profile_make(enum cv_meter_kind kind, const struct cv_meter_rates *rates,
	uint64_t tsc_hz, struct cv_meter_profile *profile)
{
	profile->committed = bucket_rate(rates->committed, rates->committed_burst, tsc_hz);
	profile->second = bucket_rate(
		kind == CV_METER_SRTCM ? 0 : rates->second, rates->second_burst, tsc_hz);
}

// TSC cycles until so many tokens were added, wherever in a period that begins.
static uint64_t cycles_of(uint64_t tokens, const struct cv_meter_bucket_rate *rate)
{
	if (rate->tokens == 0 || tokens == 0)
		return 0;
	return (uint64_t)fmin(
		((double)tokens / (double)rate->tokens + 2) * (double)rate->period, 9e18);
}

uint64_t cv_meter_refill_cycles(enum cv_meter_kind kind, const struct cv_meter_profile *profile)
{
	const struct cv_meter_bucket_rate *committed = &profile->committed;
	const struct cv_meter_bucket_rate *second = &profile->second;

	if (kind == CV_METER_SRTCM) // one bucket after the other
		return cycles_of(committed->burst + second->burst, committed);
	return RTE_MAX(cycles_of(committed->burst, committed), cycles_of(second->burst, second));
}

void cv_meter_fill(const struct cv_meter_profile *profile, uint64_t now, struct cv_meter *meter)
{
	*meter = (struct cv_meter){
		.time = now,
		.committed = (uint32_t)profile->committed.burst,
		.second = (uint32_t)profile->second.burst,
	};
}
