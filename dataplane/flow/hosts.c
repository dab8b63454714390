// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/hosts.h"

// A bucket has four hosts in the mean when every flow has a host of its own, and a host two buckets.
#define HOSTS_PER_BUCKET 4

static uint32_t buckets_for(uint32_t flows)
{
	return flows / HOSTS_PER_BUCKET + 2;
}

size_t cv_flow_hosts_bytes(uint32_t flows, uint32_t limit)
{
	return limit == 0 ? 0 : (size_t)buckets_for(flows) * sizeof(struct cv_flow_hosts_bucket);
}

void cv_flow_hosts_init(struct cv_flow_hosts *hosts, void *memory, uint32_t flows, uint32_t limit)
{
	*hosts = (struct cv_flow_hosts){
		.buckets = memory,
		.buckets_count = buckets_for(flows),
		.limit = limit,
	};
}

// A host's first bucket, or its second.
static struct cv_flow_hosts_bucket *bucket_of(
	const struct cv_flow_hosts *hosts, uint64_t hash, unsigned which)
{
	uint32_t spread = (uint32_t)hash;

	if (which == 1) // of other bits than the tag alone
		spread = (uint32_t)(hash >> 16) * 0x9e3779b1u;
	return &hosts->buckets[(uint64_t)spread * hosts->buckets_count >> 32];
}

static uint32_t *find(const struct cv_flow_hosts *hosts, uint64_t hash)
{
	const uint32_t tag = (uint32_t)(hash >> 32);

	for (unsigned which = 0; which < 2; which++) {
		struct cv_flow_hosts_bucket *bucket = bucket_of(hosts, hash, which);

		for (unsigned i = 0; i < CV_FLOW_HOSTS; i++)
			if (bucket->count[i] > 0 && bucket->tag[i] == tag)
				return &bucket->count[i];
	}
	return NULL;
}

static bool add_new(struct cv_flow_hosts *hosts, uint64_t hash)
{
	struct cv_flow_hosts_bucket *to = NULL;
	unsigned most = 0;

	for (unsigned which = 0; which < 2; which++) {
		struct cv_flow_hosts_bucket *bucket = bucket_of(hosts, hash, which);
		unsigned empty = 0;

		for (unsigned i = 0; i < CV_FLOW_HOSTS; i++)
			empty += bucket->count[i] == 0;
		if (empty > most) {
			most = empty;
			to = bucket;
		}
	}
	if (to == NULL)
		return false;
	for (unsigned i = 0; i < CV_FLOW_HOSTS; i++) {
		if (to->count[i] != 0)
			continue;
		to->tag[i] = (uint32_t)(hash >> 32);
		to->count[i] = 1;
		break;
	}
	return true;
}

bool cv_flow_hosts_add(struct cv_flow_hosts *hosts, uint64_t hash)
{
	uint32_t *count;

	if (hosts->limit == 0)
		return true;
	count = find(hosts, hash);
	if (count == NULL)
		return add_new(hosts, hash);
	if (*count >= hosts->limit)
		return false;
	(*count)++;
	return true;
}

void cv_flow_hosts_remove(struct cv_flow_hosts *hosts, uint64_t hash)
{
	uint32_t *count = hosts->limit == 0 ? NULL : find(hosts, hash);

	if (count != NULL)
		(*count)--;
}
