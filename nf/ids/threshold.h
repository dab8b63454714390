// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How often a rule that has a threshold has matched, by source, by destination or in all. Each worker
// counts for itself, in a table of a fixed size: of four that fall together the oldest is forgotten.
#ifndef CV_IDS_THRESHOLD_H
#define CV_IDS_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/hash.h"
#include "nf/ids/rule.h"

#define CV_IDS_THRESHOLD_SETS 1024
#define CV_IDS_THRESHOLD_WAYS 4

struct cv_ids_threshold {
	uint64_t hash; // of rule and address; 0: nothing is here
	uint64_t since; // TSC, when its period began
	uint32_t count;
};

struct cv_ids_thresholds {
	struct cv_flow_secret secret;
	struct cv_ids_threshold set[CV_IDS_THRESHOLD_SETS][CV_IDS_THRESHOLD_WAYS];
};

// Whether a match of a rule with a threshold is to be told. The address is of 4 or 16 bytes.
bool cv_ids_threshold_tells(struct cv_ids_thresholds *thresholds, const struct cv_ids_rule *rule,
	const uint8_t *address, unsigned bytes, uint64_t now, uint64_t hz);

#endif
