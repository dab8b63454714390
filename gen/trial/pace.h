// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// When the next packet is due. Times are TSC ticks since the trial began, with 16 fractional
// bits, so that rates do not drift (at 25 M packets/s the error is below 0.2 ppm).
#ifndef GEN_TRIAL_PACE_H
#define GEN_TRIAL_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/compiler.h"

struct gen_pace {
	uint64_t at; // of the next packet
	uint64_t step; // from one burst to the next
	uint64_t on_end; // end of this sending period; UINT64_MAX: no pauses
	uint64_t off; // pause
	uint64_t period; // sending period and pause together
	uint32_t burst; // packets that share a time
	uint32_t left; // of this burst
	const uint64_t *gaps; // replay: gap after packet i in 48.16 ticks; NULL otherwise
	uint32_t gap_count, gap_at;
};

// Average rate_pps in bursts of `burst`; with off_ns > 0 only during on_ns of each on_ns + off_ns,
// and so much faster then. Rounded to the slow side: never a packet more than rate * time.
static inline struct gen_pace gen_pace_rate(
	double ticks_per_s, double rate_pps, uint32_t burst, double on_ns, double off_ns)
{
	const double share = off_ns > 0 ? on_ns / (on_ns + off_ns) : 1.0;
	const double tick16_per_ns = ticks_per_s * 65536.0 / 1e9;
	struct gen_pace pace = {
		.step = (uint64_t)(ticks_per_s * 65536.0 * burst / rate_pps * share) + 1,
		.on_end = UINT64_MAX,
		.burst = burst,
		.left = burst,
	};

	if (off_ns > 0) {
		pace.on_end = (uint64_t)(on_ns * tick16_per_ns);
		pace.off = (uint64_t)(off_ns * tick16_per_ns);
		pace.period = pace.on_end + pace.off;
	}
	return pace;
}

// Packet i + 1 is due gaps[i] (48.16 ticks) after packet i, round and round. `gaps` is borrowed.
static inline struct gen_pace gen_pace_gaps(const uint64_t *gaps, uint32_t count)
{
	return (struct gen_pace){.gaps = gaps, .gap_count = count, .burst = 1, .left = 1};
}

// Ticks at which the next packet is due.
static inline uint64_t gen_pace_due(const struct gen_pace *pace)
{
	return pace->at >> 16;
}

static inline void gen_pace_advance(struct gen_pace *pace)
{
	if (CV_UNLIKELY(pace->gaps != NULL)) {
		pace->at += pace->gaps[pace->gap_at];
		pace->gap_at = pace->gap_at + 1 == pace->gap_count ? 0 : pace->gap_at + 1;
		return;
	}
	if (--pace->left > 0)
		return;
	pace->left = pace->burst;
	pace->at += pace->step;
	if (CV_UNLIKELY(pace->at >= pace->on_end)) {
		// A burst longer than a period skips periods until it is inside one again.
		while (pace->at >= pace->on_end) {
			pace->at += pace->off;
			pace->on_end += pace->period;
		}
	}
}

// Whether packets are due one by one, at equal distances without end.
static inline bool gen_pace_is_even(const struct gen_pace *pace)
{
	return pace->gaps == NULL && pace->burst == 1 && pace->on_end == UINT64_MAX;
}

static inline void gen_pace_skip(struct gen_pace *pace, uint64_t packets)
{
	if (CV_LIKELY(gen_pace_is_even(pace))) {
		pace->at += packets * pace->step;
		return;
	}
	while (packets-- > 0)
		gen_pace_advance(pace);
}

// Passes by all packets that are due at `now` ticks and before `end`. Returns how many.
static inline uint64_t gen_pace_pass(struct gen_pace *pace, uint64_t now, uint64_t end)
{
	const uint64_t before = (now < end ? now + 1 : end) << 16;
	uint64_t packets = 0;

	if (CV_LIKELY(gen_pace_is_even(pace))) {
		if (pace->at < before)
			packets = (before - pace->at + pace->step - 1) / pace->step;
		pace->at += packets * pace->step;
		return packets;
	}
	for (; pace->at < before; packets++)
		gen_pace_advance(pace);
	return packets;
}

#endif
