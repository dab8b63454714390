// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/fragments.h"

#include "flow/table.h"

#define SETS (CV_FLOW_FRAGMENTS / CV_FLOW_FRAGMENTS_WAYS)

static bool is_over(const struct cv_flow_fragment *fragment, uint32_t now)
{
	return fragment->deadline == 0 || (int32_t)(now - fragment->deadline) >= 0;
}

void cv_flow_fragments_put(struct cv_flow_fragments *fragments, uint64_t hash,
	const struct cv_flow_fragment_key *key, uint32_t slot, uint32_t now, uint32_t deadline)
{
	struct cv_flow_fragment *set = fragments->set[hash % SETS];
	struct cv_flow_fragment *to = &set[0];

	for (unsigned i = 0; i < CV_FLOW_FRAGMENTS_WAYS; i++) {
		if (is_over(&set[i], now) || memcmp(&set[i].key, key, sizeof(*key)) == 0) {
			to = &set[i];
			break;
		}
		if ((int32_t)(to->deadline - set[i].deadline) > 0)
			to = &set[i];
	}
	*to = (struct cv_flow_fragment){.key = *key, .slot = slot, .deadline = deadline};
}

uint32_t cv_flow_fragments_find(const struct cv_flow_fragments *fragments, uint64_t hash,
	const struct cv_flow_fragment_key *key, uint32_t now)
{
	const struct cv_flow_fragment *set = fragments->set[hash % SETS];

	for (unsigned i = 0; i < CV_FLOW_FRAGMENTS_WAYS; i++)
		if (!is_over(&set[i], now) && memcmp(&set[i].key, key, sizeof(*key)) == 0)
			return set[i].slot;
	return CV_FLOW_NONE;
}
