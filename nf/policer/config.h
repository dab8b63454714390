// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What policer.c is told: meter, rates, and what is done to the packets of each colour.
#ifndef CV_POLICER_CONFIG_H
#define CV_POLICER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "nf/policer/meter.h"

enum cv_policer_per { CV_PER_ALL, CV_PER_HOST, CV_PER_FLOW };
enum cv_policer_host { CV_HOST_SRC, CV_HOST_DST };
enum cv_policer_non_ip { CV_NON_IP_PASS, CV_NON_IP_DROP };
enum cv_policer_what {
	CV_POLICER_DEFAULT,
	CV_POLICER_PASS,
	CV_POLICER_DROP,
	CV_POLICER_MARK,
	CV_POLICER_OUTPUT,
};

struct cv_policer_action {
	enum cv_policer_what what;
	uint8_t dscp; // MARK
	const char *output; // OUTPUT; read only
};

struct cv_policer_config {
	enum cv_meter_kind meter;
	enum cv_policer_per per;
	enum cv_policer_host host;
	enum cv_policer_non_ip non_ip;
	uint64_t cir_bps, pir_bps, eir_bps; // 0: not given
	uint64_t cbs_bytes, pbs_bytes, ebs_bytes;
	uint64_t cir_pps, pir_pps, eir_pps;
	uint64_t cbs_packets, pbs_packets, ebs_packets;
	struct cv_policer_action action[RTE_COLORS];
	uint32_t entries;
	uint8_t ipv4_prefix, ipv6_prefix;
	bool colour_aware;
};

extern const struct cv_param cv_policer_params[];
extern const char *const cv_policer_colours[RTE_COLORS];

// The rates and bursts, in tokens: packets, or bytes. Returns 0, or -EINVAL with error set. name: the
// instance's.
int cv_policer_rates_read(const struct cv_policer_config *config, const char *name,
	struct cv_meter_rates *rates, bool *in_packets, struct cv_error *error);

#endif
