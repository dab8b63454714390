// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_malloc.h>

#include "nf/policer/table.h"
#include "stats/counter.h"

#define IDLE_UNITS 64 // about so many units of "seen" are the idle time

int cv_meter_table_init(
	struct cv_meter_table *table, uint32_t hosts, uint64_t idle_cycles, int socket)
{
	const uint32_t buckets = rte_align32pow2(RTE_MAX(hosts / CV_METER_WAYS, 1u));

	memset(table, 0, sizeof(*table));
	table->mask = buckets - 1;
	while (idle_cycles >> table->shift >= IDLE_UNITS)
		table->shift++;
	cv_meter_table_set_idle(table, idle_cycles);
	table->buckets = rte_zmalloc_socket(
		"policer", buckets * sizeof(*table->buckets), RTE_CACHE_LINE_SIZE, socket);
	table->hosts = rte_zmalloc_socket("policer",
		(size_t)buckets * CV_METER_WAYS * sizeof(*table->hosts), RTE_CACHE_LINE_SIZE,
		socket);
	if (table->buckets == NULL || table->hosts == NULL) {
		cv_meter_table_free(table);
		return -ENOMEM;
	}
	return cv_flow_secret_make(&table->secret);
}

void cv_meter_table_set_idle(struct cv_meter_table *table, uint64_t idle_cycles)
{
	const uint64_t units = (idle_cycles >> table->shift) + 2; // both ends are rounded down

	table->idle = (uint32_t)RTE_MIN(units, (uint64_t)INT32_MAX);
}

void cv_meter_table_free(struct cv_meter_table *table)
{
	rte_free(table->buckets);
	rte_free(table->hosts);
	table->buckets = NULL;
	table->hosts = NULL;
}

static struct cv_meter_host *find(
	struct cv_meter_table *table, uint32_t bucket, uint32_t tag, const struct cv_meter_key *key)
{
	for (unsigned way = 0; way < CV_METER_WAYS; way++) {
		struct cv_meter_host *host = &table->hosts[bucket * CV_METER_WAYS + way];

		if (table->buckets[bucket].tag[way] == tag &&
			memcmp(&host->key, key, sizeof(*key)) == 0)
			return host;
	}
	return NULL;
}

// How many hosts of a bucket are in use, and a place for another: an empty one, or that of a host
// that is idle. -1: there is none.
static unsigned in_use(
	const struct cv_meter_table *table, uint32_t bucket, uint32_t now, int *place)
{
	const struct cv_meter_bucket *at = &table->buckets[bucket];
	unsigned used = 0;

	*place = -1;
	for (int way = 0; way < CV_METER_WAYS; way++) {
		if (at->tag[way] != 0 && now - at->seen[way] < table->idle)
			used++;
		else
			*place = way;
	}
	return used;
}

// A place in the emptier of the two buckets. Returns its number, or -1.
static int64_t claim(struct cv_meter_table *table, const uint32_t bucket[2], uint32_t now)
{
	int place[2];
	const unsigned first = in_use(table, bucket[0], now, &place[0]);
	const unsigned second = in_use(table, bucket[1], now, &place[1]);
	const unsigned chosen = second < first;

	return place[chosen] < 0 ? -1 : (int64_t)bucket[chosen] * CV_METER_WAYS + place[chosen];
}

struct cv_meter *cv_meter_table_get(
	struct cv_meter_table *table, const struct cv_meter_key *key, uint64_t now, bool *is_new)
{
	const uint64_t hash = cv_flow_hash(&table->secret, key, sizeof(*key));
	const uint32_t bucket[2] = {
		(uint32_t)hash & table->mask, (uint32_t)(hash >> 24) & table->mask};
	const uint32_t tag = (uint32_t)(hash >> 32) | 1, unit = (uint32_t)(now >> table->shift);
	struct cv_meter_host *host = find(table, bucket[0], tag, key);
	int64_t place;

	if (host == NULL)
		host = find(table, bucket[1], tag, key);
	*is_new = host == NULL;
	if (host == NULL) {
		place = claim(table, bucket, unit);
		if (place < 0)
			return NULL;
		host = &table->hosts[place];
		host->key = *key;
		cv_count(&table->taken,
			table->buckets[place / CV_METER_WAYS].tag[place % CV_METER_WAYS] == 0);
		table->buckets[place / CV_METER_WAYS].tag[place % CV_METER_WAYS] = tag;
	}
	place = host - table->hosts;
	table->buckets[place / CV_METER_WAYS].seen[place % CV_METER_WAYS] = unit;
	return &host->meter;
}
