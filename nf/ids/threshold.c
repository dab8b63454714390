// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/threshold.h"

#include <string.h>

static struct cv_ids_threshold *find(struct cv_ids_thresholds *thresholds, uint64_t hash)
{
	struct cv_ids_threshold *set = thresholds->set[hash % CV_IDS_THRESHOLD_SETS];
	struct cv_ids_threshold *oldest = set;

	for (unsigned i = 0; i < CV_IDS_THRESHOLD_WAYS; i++) {
		if (set[i].hash == hash)
			return &set[i];
		if (set[i].since < oldest->since)
			oldest = &set[i];
	}
	*oldest = (struct cv_ids_threshold){.hash = hash};
	return oldest;
}

bool cv_ids_threshold_tells(struct cv_ids_thresholds *thresholds, const struct cv_ids_rule *rule,
	const uint8_t *address, unsigned bytes, uint64_t now, uint64_t hz)
{
	uint8_t key[40] = {0};
	struct cv_ids_threshold *of;

	memcpy(key, &rule->gid, 4);
	memcpy(key + 4, &rule->sid, 4);
	if (rule->threshold.track != CV_IDS_BY_RULE)
		memcpy(key + 8, address, bytes);
	key[24] = (uint8_t)bytes;
	of = find(thresholds, cv_flow_hash(&thresholds->secret, key, sizeof(key)) | 1);
	if (of->count == 0 || now - of->since > rule->threshold.seconds * hz) {
		of->since = now;
		of->count = 0;
	}
	of->count++;
	switch (rule->threshold.type) {
	case CV_IDS_LIMIT:
		return of->count <= rule->threshold.count;
	case CV_IDS_THRESHOLD:
		if (of->count < rule->threshold.count)
			return false;
		of->count = 0; // a period begins with the next
		return true;
	default:
		return of->count == rule->threshold.count;
	}
}
