// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Whether all contents of a rule are where they must be. Exact: there is a place for each content so
// that all conditions hold, whichever of several places that is. The time is that of a search for each
// content, whatever the bytes are: no content is tried again for each place of another. It is counted
// in steps, of which there are so many and no more.
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

enum cv_ids_answer { CV_IDS_NO, CV_IDS_YES, CV_IDS_UNKNOWN };

// base: how many bytes came before data, which offsets count from there. *left: steps that may be taken,
// less those that were: one for each byte that is compared, or for 16 that are run over, and for each
// place of a content that is compared with another's. CV_IDS_UNKNOWN: they did not suffice, and *left
// is 0.
enum cv_ids_answer cv_ids_confirm(const struct cv_ids_rule *rule, const uint8_t *data, uint32_t len,
	uint64_t base, struct cv_ids_places *places, uint32_t *left);

#endif
