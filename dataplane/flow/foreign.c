// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/foreign.h"

#include <stdlib.h>

#include "flow/zone.h"

struct cv_flow_foreign *cv_flow_foreign_create(
	const uint8_t *workers, unsigned count, struct cv_ring *const *to)
{
	const size_t bytes = sizeof(struct cv_flow_foreign) + count * sizeof(struct cv_flow_peer);
	struct cv_flow_foreign *foreign =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(bytes, RTE_CACHE_LINE_SIZE));

	if (foreign == NULL)
		return NULL;
	memset(foreign, 0, bytes);
	foreign->peers_count = count;
	for (unsigned i = 0; i < count; i++) {
		foreign->peer[workers[i]] = (uint8_t)i;
		foreign->peers[i].ring = to[workers[i]];
	}
	return foreign;
}

void cv_flow_foreign_destroy(struct cv_flow_foreign *foreign)
{
	free(foreign);
}

void cv_flow_foreign_read(
	struct cv_flow_foreign *foreign, unsigned worker, const struct cv_flow_zone *zone)
{
	struct cv_flow_peer *peer = &foreign->peers[foreign->peer[worker]];

	peer->table.buckets = NULL;
	if (zone == NULL || peer->ring == NULL || zone->table[0].versions == NULL)
		return;
	peer->secret = zone->secret;
	peer->table.flows = zone->table[0].flows;
	peer->table.versions = zone->table[0].versions;
	peer->table.buckets_count = zone->table[0].buckets_count;
	peer->table.buckets = zone->table[0].buckets;
	peer->epoch = &zone->published_epoch;
	peer->shift = zone->shift;
}
