// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The meters of RFC 2697, 2698 and 4115: DPDK's rte_meter, with rates that need not be whole numbers
// of bytes. rte_meter adds tokens once in a period of whole TSC cycles, which it makes 100 cycles
// long or longer: a rate is up to 1 % too high. Here periods are chosen for the smallest error.
//
// A token is a byte of an IP packet, or a packet.
#ifndef CV_METER_H
#define CV_METER_H

#include <stdint.h>

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

union cv_meter_profile {
	struct rte_meter_srtcm_profile srtcm;
	struct rte_meter_trtcm_profile trtcm;
	struct rte_meter_trtcm_rfc4115_profile trtcm_4115;
};

union cv_meter {
	struct rte_meter_srtcm srtcm;
	struct rte_meter_trtcm trtcm;
	struct rte_meter_trtcm_rfc4115 trtcm_4115;
};

// Makes what all meters of a rate share.
void cv_meter_profile_make(enum cv_meter_kind kind, const struct cv_meter_rates *rates,
	uint64_t tsc_hz, union cv_meter_profile *profile);

// TSC cycles without a packet after which the buckets are full again, whatever they were.
uint64_t cv_meter_refill_cycles(enum cv_meter_kind kind, const union cv_meter_profile *profile);

// Fills the buckets of a meter that is new: its first packet finds them full, whatever the time.
void cv_meter_fill(
	enum cv_meter_kind kind, const union cv_meter_profile *profile, union cv_meter *meter);

// The colour of a packet of so many tokens that has the colour in. A colour-blind meter is one to
// which all packets are green: so read the RFCs, and rte_meter's functions.
static CV_INLINE enum rte_color cv_meter_check(enum cv_meter_kind kind, union cv_meter *meter,
	const union cv_meter_profile *profile, uint64_t now, uint32_t tokens, enum rte_color in)
{
	union cv_meter_profile *shared = (union cv_meter_profile *)(uintptr_t)profile;

	switch (kind) {
	case CV_METER_SRTCM:
		return rte_meter_srtcm_color_aware_check(
			&meter->srtcm, &shared->srtcm, now, tokens, in);
	case CV_METER_TRTCM:
		return rte_meter_trtcm_color_aware_check(
			&meter->trtcm, &shared->trtcm, now, tokens, in);
	default:
		return rte_meter_trtcm_rfc4115_color_aware_check(
			&meter->trtcm_4115, &shared->trtcm_4115, now, tokens, in);
	}
}

#endif
