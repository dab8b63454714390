// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <math.h>
#include <stddef.h>

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

void cv_meter_profile_make(enum cv_meter_kind kind, const struct cv_meter_rates *rates,
	uint64_t tsc_hz, union cv_meter_profile *profile)
{
	uint64_t cycles[2], tokens[2];

	choose_period(
		rates->committed, rates->committed_burst, (double)tsc_hz, &cycles[0], &tokens[0]);
	choose_period(rates->second, rates->second_burst, (double)tsc_hz, &cycles[1], &tokens[1]);
	switch (kind) {
	case CV_METER_SRTCM:
		profile->srtcm = (struct rte_meter_srtcm_profile){
			.cbs = rates->committed_burst,
			.ebs = rates->second_burst,
			.cir_period = cycles[0],
			.cir_bytes_per_period = tokens[0],
		};
		break;
	case CV_METER_TRTCM:
		profile->trtcm = (struct rte_meter_trtcm_profile){
			.cbs = rates->committed_burst,
			.pbs = rates->second_burst,
			.cir_period = cycles[0],
			.cir_bytes_per_period = tokens[0],
			.pir_period = cycles[1],
			.pir_bytes_per_period = tokens[1],
		};
		break;
	case CV_METER_TRTCM_4115:
		profile->trtcm_4115 = (struct rte_meter_trtcm_rfc4115_profile){
			.cbs = rates->committed_burst,
			.ebs = rates->second_burst,
			.cir_period = cycles[0],
			.cir_bytes_per_period = tokens[0],
			.eir_period = cycles[1],
			.eir_bytes_per_period = tokens[1],
		};
		break;
	}
}

// TSC cycles until so many tokens were added, wherever in a period that begins.
static uint64_t cycles_of(uint64_t tokens, uint64_t period, uint64_t per_period)
{
	if (per_period == 0 || tokens == 0)
		return 0;
	return (uint64_t)fmin(((double)tokens / (double)per_period + 2) * (double)period, 9e18);
}

uint64_t cv_meter_refill_cycles(enum cv_meter_kind kind, const union cv_meter_profile *profile)
{
	const struct rte_meter_trtcm_profile *two = &profile->trtcm;

	if (kind == CV_METER_SRTCM) // one bucket after the other
		return cycles_of(profile->srtcm.cbs + profile->srtcm.ebs, profile->srtcm.cir_period,
			profile->srtcm.cir_bytes_per_period);
	_Static_assert(offsetof(struct rte_meter_trtcm_profile, pir_period) ==
			       offsetof(struct rte_meter_trtcm_rfc4115_profile, eir_period),
		"both kinds of two rates have the same members");
	return RTE_MAX(cycles_of(two->cbs, two->cir_period, two->cir_bytes_per_period),
		cycles_of(two->pbs, two->pir_period, two->pir_bytes_per_period));
}

void cv_meter_fill(
	enum cv_meter_kind kind, const union cv_meter_profile *profile, union cv_meter *meter)
{
	switch (kind) {
	case CV_METER_SRTCM:
		meter->srtcm = (struct rte_meter_srtcm){
			.tc = profile->srtcm.cbs, .te = profile->srtcm.ebs};
		break;
	case CV_METER_TRTCM:
		meter->trtcm = (struct rte_meter_trtcm){
			.tc = profile->trtcm.cbs, .tp = profile->trtcm.pbs};
		break;
	case CV_METER_TRTCM_4115:
		meter->trtcm_4115 = (struct rte_meter_trtcm_rfc4115){
			.tc = profile->trtcm_4115.cbs, .te = profile->trtcm_4115.ebs};
		break;
	}
}
