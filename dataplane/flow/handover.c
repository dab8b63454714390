// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/handover.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <rte_common.h>

#include "flow/carried.h"
#include "flow/home.h"
#include "flow/replica.h"
#include "flow/zone.h"

#define LAYOUT_VERSION 4 // grows when what is in the memory means something else

static uint64_t mixed(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

static uint64_t with_place(
	uint64_t hash, const struct cv_flow_zone *zone, const struct cv_flow_place *place)
{
	// Without members of a kind both are 0.
	const size_t at =
		place->first == NULL ? 0 : (size_t)(place->first - (uint8_t *)zone->memory.start);

	return mixed(mixed(hash, at), place->stride);
}

uint64_t cv_flow_zone_replica_layout(const struct cv_flow_zone *zone)
{
	const struct cv_flow_table *table = zone->table;
	uint64_t hash = mixed(LAYOUT_VERSION, zone->memory.bytes);

	hash = mixed(mixed(hash, sizeof(struct cv_flow_ipv4)), sizeof(struct cv_flow_ipv6));
	hash = mixed(mixed(hash, sizeof(struct cv_flow_bucket)), sizeof(struct cv_flow_carried));
	hash = mixed(mixed(hash, zone->windows), zone->hosts.limit);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		hash = mixed(mixed(hash, table[v6].max), table[v6].buckets_count);
		hash = mixed(mixed(hash, table[v6].beside_bytes), zone->hosts.buckets_count);
		hash = with_place(hash, zone, &zone->window[v6]);
	}
	for (unsigned i = 0; i < zone->members_count; i++) {
		hash = mixed(hash, zone->members[i].flow->slot_bytes);
		hash = with_place(hash, zone, &zone->members[i].slots[0]);
		hash = with_place(hash, zone, &zone->members[i].slots[1]);
	}
	return hash;
}

// What a replica has nothing of: times and hashes.
uint64_t cv_flow_zone_layout(const struct cv_flow_zone *zone)
{
	const uint64_t hash = cv_flow_zone_replica_layout(zone);

	return mixed(mixed(hash, zone->shift), zone->secret.aes);
}

void cv_flow_zone_mark(struct cv_flow_zone *zone)
{
	struct cv_flow_carried *carried = zone->carried;

	carried->layout = cv_flow_zone_layout(zone);
	if (zone->homes != NULL)
		carried->homes = zone->homes->secret;
	else
		memset(&carried->homes, 0, sizeof(carried->homes));
}

bool cv_flow_zone_keeps(const struct cv_flow_zone *zone)
{
	for (unsigned i = 0; i < zone->members_count; i++)
		if (zone->members[i].flow->kept != NULL)
			return true;
	return false;
}

static bool goes_along(const struct cv_flow_zone_member *member)
{
	const struct cv_flow_kept *kept = member->flow->kept;

	return kept == NULL ? member->flow->in_slots : kept->give(member->instance) >= 0;
}

const char *cv_flow_zone_stays(const struct cv_flow_zone *zone)
{
	for (unsigned i = 0; i < zone->members_count; i++)
		if (!goes_along(&zone->members[i]))
			return "do not go along";
	if (zone->memory.fd < 0)
		return "do not go along: this kernel makes no large pages of files";
	return NULL;
}

int cv_flow_zone_give(struct cv_flow_zone *zone)
{
	cv_flow_zone_mark(zone);
	zone->carried->is_whole = 0;
	return zone->memory.fd;
}

void cv_flow_zone_freeze(struct cv_flow_zone *zone)
{
	struct cv_flow_carried *carried = zone->carried;

	for (unsigned v6 = 0; v6 < 2; v6++)
		carried->family[v6] = (struct cv_flow_carried_family){
			.used = zone->table[v6].used,
			.high = zone->table[v6].high,
			.free = zone->table[v6].free,
			.cursor = zone->table[v6].cursor,
			.denied = zone->denied[v6],
			.due = zone->due[v6],
		};
	carried->now = zone->now;
	carried->aged = zone->aged;
	carried->epoch = zone->epoch;
	carried->secret = zone->secret;
	carried->counters = zone->counters;
	carried->fragments = zone->fragments;
	carried->has_ways = zone->ways.free_count < CV_FLOW_WAYS_MAX - 1;
	if (carried->has_ways)
		carried->ways = zone->ways;
	carried->groups_count = zone->groups_count;
	for (unsigned i = 0; i < zone->groups_count; i++)
		memcpy(carried->order[i], zone->groups[i]->order, sizeof(carried->order[i]));
	carried->is_whole = 1;
}

// Whether no place of a table leads out of it.
static bool leads_inside(const struct cv_flow_table *table)
{
	for (uint32_t i = 0; i < table->buckets_count; i++)
		for (unsigned j = 0; j < CV_FLOW_BUCKET; j++)
			if (table->buckets[i].signature[j] != 0 &&
				(table->buckets[i].slot[j] & ~CV_FLOW_SECOND) >> 1 >= table->max)
				return false;
	return true;
}

// Whether a slot leads to nothing outside of what its function knows. It may be about to change: then
// it does a moment later.
static bool slot_leads_inside(const struct cv_flow_zone_member *member, const void *slot)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		if (member->flow->kept->leads_inside(member->instance, slot))
			return true;
		sched_yield();
	}
	return false;
}

static bool slots_lead_inside(const struct cv_flow_zone *zone)
{
	for (unsigned m = 0; m < zone->members_count; m++) {
		const struct cv_flow_zone_member *member = &zone->members[m];

		if (member->flow->kept == NULL || member->flow->kept->leads_inside == NULL)
			continue;
		for (unsigned v6 = 0; v6 < 2; v6++)
			for (uint32_t i = 0; i < zone->table[v6].max; i++)
				if (!slot_leads_inside(member, cv_flow_slot(zone, v6 == 1, i, m)))
					return false;
	}
	return true;
}

uint64_t cv_flow_zone_layout_in(int fd, const struct cv_flow_zone *zone)
{
	const size_t at = RTE_PTR_DIFF(zone->carried, zone->memory.start);
	uint64_t layout = 0;

	return pread(fd, &layout, sizeof(layout),
		       (off_t)(at + offsetof(struct cv_flow_carried, layout))) ==
			       (ssize_t)sizeof(layout)
		       ? layout
		       : 0;
}

int cv_flow_zone_take(struct cv_flow_zone *zone, int fd, struct cv_error *error)
{
	int rc;

	if (cv_flow_zone_layout_in(fd, zone) != cv_flow_zone_layout(zone)) {
		cv_error_set(error, "its flows are kept in another layout by the new version; add "
				    "--forget-flows, or restart the node");
		close(fd);
		return -ESTALE;
	}
	rc = cv_flow_memory_replace(&zone->memory, fd, error);
	if (rc != 0)
		return rc;
	if (leads_inside(&zone->table[0]) && leads_inside(&zone->table[1]) &&
		slots_lead_inside(zone))
		return 0;
	cv_error_set(error, "its flows lead out of their table");
	return -EPROTO;
}

static bool is_inside(const struct cv_flow_table *table, const struct cv_flow_carried_family *of)
{
	return of->high <= table->max && of->used <= of->high && of->cursor % 16 == 0 &&
	       (of->free == CV_FLOW_NONE || of->free < of->high) && of->denied <= of->used &&
	       of->cursor <= RTE_ALIGN_CEIL(table->max, 16u) &&
	       of->due <= RTE_ALIGN_CEIL(table->max, 16u);
}

// Whether what is remembered of fragments leads to no flow outside of the tables.
static bool fragments_lead_inside(
	const struct cv_flow_zone *zone, const struct cv_flow_fragments *fragments)
{
	for (unsigned i = 0; i < CV_FLOW_FRAGMENTS; i++) {
		const struct cv_flow_fragment *fragment =
			&fragments->set[i / CV_FLOW_FRAGMENTS_WAYS][i % CV_FLOW_FRAGMENTS_WAYS];

		if (fragment->deadline != 0 &&
			(fragment->key.v6 > 1 ||
				fragment->slot >> 1 >= zone->table[fragment->key.v6].max))
			return false;
	}
	return true;
}

bool cv_flow_zone_is_order(const struct cv_flow_zone *zone, const uint8_t *order)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < zone->members_count; i++)
		seen |= order[i] < zone->members_count ? 1u << order[i] : 0;
	return seen == (1u << zone->members_count) - 1;
}

// A group that only flows know: what is counted of it is the functions'.
static struct cv_flow_group *make_group(struct cv_flow_zone *zone, const uint8_t *order)
{
	struct cv_nf_counters *counters[CV_FLOW_MEMBERS_MAX];
	const struct cv_flow_group *any = zone->groups[0];

	for (unsigned i = 0; i < zone->members_count; i++)
		counters[i] = any->counters[any->position[order[i]]];
	return cv_flow_group_create(zone, order, counters);
}

// Groups get the numbers that flows have them by.
static int number_groups(struct cv_flow_zone *zone, const struct cv_flow_carried *carried)
{
	for (unsigned i = 0; i < carried->groups_count; i++) {
		unsigned at = i;
		struct cv_flow_group *group;

		while (at < zone->groups_count && memcmp(zone->groups[at]->order, carried->order[i],
							  zone->members_count) != 0)
			at++;
		if (at == zone->groups_count && make_group(zone, carried->order[i]) == NULL)
			return -ENOMEM;
		group = zone->groups[at];
		zone->groups[at] = zone->groups[i];
		zone->groups[at]->index = (uint8_t)at;
		zone->groups[i] = group;
		group->index = (uint8_t)i;
	}
	return 0;
}

int cv_flow_zone_taken(struct cv_flow_zone *zone, struct cv_error *error)
{
	const struct cv_flow_carried *carried = zone->carried;
	bool is_right = carried->is_whole == 1 && zone->groups_count > 0 &&
			cv_flow_secret_is_alike(&zone->secret, &carried->secret) &&
			carried->groups_count <= CV_FLOW_GROUPS_MAX &&
			(zone->homes == NULL ||
				cv_flow_secret_is_alike(&zone->homes->secret, &carried->homes));

	for (unsigned v6 = 0; is_right && v6 < 2; v6++)
		is_right = is_inside(&zone->table[v6], &carried->family[v6]);
	for (unsigned i = 0; is_right && i < carried->groups_count; i++)
		is_right = cv_flow_zone_is_order(zone, carried->order[i]);
	if (!is_right || !fragments_lead_inside(zone, &carried->fragments) ||
		(carried->has_ways && !cv_flow_ways_lead_inside(&carried->ways))) {
		cv_error_set(error, "its flows did not come whole");
		return -EPROTO;
	}
	if (number_groups(zone, carried) == 0)
		return 0;
	cv_error_set(error, "no memory for the orders that its flows were decided in");
	return -ENOMEM;
}

const struct cv_flow_secret *cv_flow_zone_taken_homes(const struct cv_flow_zone *zone)
{
	return zone->homes == NULL ? NULL : &zone->carried->homes;
}

void cv_flow_zone_adopt(struct cv_flow_zone *zone)
{
	const struct cv_flow_carried *carried = zone->carried;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct cv_flow_carried_family *of = &carried->family[v6];

		zone->table[v6].used = of->used;
		zone->table[v6].high = of->high;
		zone->table[v6].free = of->free;
		zone->table[v6].cursor = of->cursor;
		zone->denied[v6] = of->denied;
		zone->due[v6] = of->due;
	}
	zone->now = carried->now;
	zone->aged = carried->aged;
	zone->epoch = carried->epoch;
	zone->secret = carried->secret;
	zone->counters = carried->counters;
	zone->fragments = carried->fragments;
	if (carried->has_ways)
		zone->ways = carried->ways;
	for (unsigned i = 0; i < zone->members_count; i++)
		zone->members[i].changed = ++zone->epoch;
	zone->published_epoch = zone->epoch;
}
