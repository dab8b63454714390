// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The meters of RFC 2697, 2698 and 4115. Tokens are added as DPDK's rte_meter adds them, so many
// once in a period of whole TSC cycles, and colours are equal to its colours; but periods are chosen
// for the smallest error of the rate (rte_meter's rates are up to 1 % too high), nothing is divided,
// and a meter takes 16 bytes: it fits into a flow's line.
//
// A token is a byte of an IP packet, or a packet.
#ifndef CV_METER_H
#define CV_METER_H

#include <stdint.h>

#include <rte_common.h>
#include <rte_meter.h>

#include "packet/compiler.h"

enum cv_meter_kind {
	CV_METER_SRTCM, // RFC 2697
	CV_METER_TRTCM, // RFC 2698
	CV_METER_TRTCM_4115, // RFC 4115
};

struct cv_meter_rates {
	double committed; // tokens per second
	double second; // of the other bucket; unused by CV_METER_SRTCM
	uint64_t committed_burst, second_burst; // tokens
};

// Tokens are added at each multiple of the period.
struct cv_meter_bucket_rate {
	uint64_t period; // TSC cycles
	uint64_t reciprocal; // of it: 2^64 / period, rounded down
	uint64_t tokens; // of each period
	uint64_t burst; // tokens that the bucket holds
};

struct cv_meter_profile {
	struct cv_meter_bucket_rate committed, second; // of srTCM the second has a burst alone
};

struct cv_meter {
	uint64_t time; // until when tokens were added, TSC
	uint32_t committed, second; // tokens that are there
};

#define CV_METER_BURST_MAX UINT32_MAX

// Makes what all meters of a rate share.
void cv_meter_profile_make(enum cv_meter_kind kind, const struct cv_meter_rates *rates,
	uint64_t tsc_hz, struct cv_meter_profile *profile);

// TSC cycles without a packet after which the buckets are full again, whatever they were.
uint64_t cv_meter_refill_cycles(enum cv_meter_kind kind, const struct cv_meter_profile *profile);

// Fills the buckets of a meter that is new.
void cv_meter_fill(const struct cv_meter_profile *profile, uint64_t now, struct cv_meter *meter);

// Periods until a time.
static CV_INLINE uint64_t cv_meter_periods(const struct cv_meter_bucket_rate *rate, uint64_t time)
{
	const uint64_t about = (uint64_t)((unsigned __int128)time * rate->reciprocal >> 64);

	// The reciprocal is rounded down: it is that many, or one more.
	return about + (time - about * rate->period >= rate->period);
}

static CV_INLINE uint64_t cv_meter_added(
	const struct cv_meter_bucket_rate *rate, const struct cv_meter *meter, uint64_t now)
{
	return (cv_meter_periods(rate, now) - cv_meter_periods(rate, meter->time)) * rate->tokens;
}

// The colour of a packet of so many tokens that has the colour in. A colour-blind meter is one to
// which all packets are green: so read the RFCs, and rte_meter's functions.
static CV_INLINE enum rte_color cv_meter_check(enum cv_meter_kind kind, struct cv_meter *meter,
	const struct cv_meter_profile *profile, uint64_t now, uint32_t tokens, enum rte_color in)
{
	uint64_t committed = meter->committed + cv_meter_added(&profile->committed, meter, now);
	uint64_t second = meter->second;
	enum rte_color colour = RTE_COLOR_RED;

	if (kind != CV_METER_SRTCM)
		second += cv_meter_added(&profile->second, meter, now);
	else if (committed > profile->committed.burst) // what does not fit into one
		second += committed - profile->committed.burst;
	committed = RTE_MIN(committed, profile->committed.burst);
	second = RTE_MIN(second, profile->second.burst);
	if (kind == CV_METER_TRTCM) { // a green packet takes of both
		if (in != RTE_COLOR_RED && second >= tokens) {
			second -= tokens;
			colour = RTE_COLOR_YELLOW;
			if (in == RTE_COLOR_GREEN && committed >= tokens) {
				committed -= tokens;
				colour = RTE_COLOR_GREEN;
			}
		}
	} else if (CV_LIKELY(in == RTE_COLOR_GREEN && committed >= tokens)) {
		committed -= tokens;
		colour = RTE_COLOR_GREEN;
	} else if (in != RTE_COLOR_RED && second >= tokens) {
		second -= tokens;
		colour = RTE_COLOR_YELLOW;
	}
	meter->time = now;
	// Apart: brought together for one store, they would take more than two.
	__atomic_store_n(&meter->committed, (uint32_t)committed, __ATOMIC_RELAXED);
	__atomic_store_n(&meter->second, (uint32_t)second, __ATOMIC_RELAXED);
	return colour;
}

#endif
