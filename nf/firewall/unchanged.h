// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Rules that are in two configurations: their counters go on.
#ifndef CV_FIREWALL_UNCHANGED_H
#define CV_FIREWALL_UNCHANGED_H

#include <stdint.h>

#include "nf/firewall/rules.h"
#include "nf/row_counters.h"

// Counters of rules, row 0 for what none matched and row i + 1 for rule i, go on from those of other
// rules, as far as the same rule, with the same name, is among these. Of several that are alike the
// first goes on from the first.
void cv_firewall_inherit_counters(struct cv_row_counters *counters,
	const struct cv_firewall_rules *rules, const struct cv_row_counters *before,
	const struct cv_firewall_rules *others);

#endif
