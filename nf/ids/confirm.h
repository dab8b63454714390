// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Whether all contents of a rule are where they must be. Exact: there is a place for each content so
// that all conditions hold, whichever of several places that is. The time is that of a search for each
// content, whatever the bytes are: no content is tried again for each place of another.
#ifndef CV_IDS_CONFIRM_H
#define CV_IDS_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/ids/rule.h"

#define CV_IDS_SPAN_MAX 65535 // bytes that are looked at

// Where contents end, and where the next one begins: a worker's own.
struct cv_ids_places {
	int32_t end[CV_IDS_SPAN_MAX + 1];
	int32_t begin[CV_IDS_SPAN_MAX + 1];
};

// base: how many bytes came before data, which offsets count from there.
bool cv_ids_confirm(const struct cv_ids_rule *rule, const uint8_t *data, uint32_t len,
	uint64_t base, struct cv_ids_places *places);

#endif
