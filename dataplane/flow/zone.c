// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Zones and groups: making them, and what is common to all that happens to their flows.
#include "flow/zone.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "flow/carried.h"

#define LINE 64
#define DENIED_SHARE 8 // of all flows, one in so many may be a denied one

const char *const cv_flow_drop_names[CV_FLOW_DROPS] = {
	[CV_FLOW_TABLE_FULL] = "flow_table_full",
	[CV_FLOW_HOST_LIMIT] = "flow_host_limit",
	[CV_FLOW_CONFLICT] = "flow_conflict",
	[CV_FLOW_NOT_REWRITABLE] = "flow_not_rewritable",
	[CV_FLOW_NO_FIRST_FRAGMENT] = "no_first_fragment",
	[CV_FLOW_OUT_OF_WINDOW] = "tcp_out_of_window",
	[CV_FLOW_RESTORING] = "flow_restoring",
};

bool cv_flow_is_stateful(const struct cv_nf *nf, const void *instance)
{
	return nf->flow != NULL &&
	       (nf->flow->is_stateful == NULL || nf->flow->is_stateful(instance));
}

enum cv_flow_windows cv_flow_windows_of(const struct cv_nf *nf, const void *instance)
{
	return nf->flow->windows == NULL ? CV_FLOW_WINDOWS_NONE : nf->flow->windows(instance);
}

// Whether a slot is aligned to 8 bytes, rather than 4.
static bool is_wide(const struct cv_nf *nf)
{
	return nf->flow->slot_bytes % 8 == 0;
}

static unsigned slot_bytes(const struct cv_nf *nf)
{
	return RTE_ALIGN_CEIL(nf->flow->slot_bytes, is_wide(nf) ? 8u : 4u);
}

unsigned cv_flow_slots_bytes(const struct cv_flow_member *members, unsigned count)
{
	unsigned bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += slot_bytes(members[i].nf);
	return RTE_ALIGN_CEIL(bytes, 8u);
}

// Where a member's slot is: in the entry, or beside it.
struct slot_offset {
	bool beside;
	unsigned at;
};

// Offsets of all members' slots. In the entry, whose line a packet reads anyway, are those of the
// functions that follow flows, then what else fits; wide ones first, so that there are no gaps.
// Returns the bytes beside it.
static unsigned lay_out(
	const struct cv_flow_member *members, unsigned count, bool v6, struct slot_offset *offsets)
{
	unsigned bytes[2] = {0, 0};

	for (unsigned round = 0; round < 4; round++)
		for (unsigned i = 0; i < count; i++) {
			const struct cv_nf *nf = members[i].nf;
			const unsigned align = is_wide(nf) ? 8 : 4;
			struct slot_offset *to = &offsets[i];

			if ((nf->flow->follow == NULL) != (round >= 2) ||
				is_wide(nf) != (round % 2 == 0))
				continue;
			to->beside = RTE_ALIGN_CEIL(bytes[0], align) + slot_bytes(nf) >
				     CV_FLOW_SLOTS_INSIDE(v6);
			to->at = RTE_ALIGN_CEIL(bytes[to->beside], align);
			bytes[to->beside] = to->at + slot_bytes(nf);
		}
	return RTE_ALIGN_CEIL(bytes[1], 8u);
}

static enum cv_flow_windows windows_of(const struct cv_flow_member *members, unsigned count)
{
	enum cv_flow_windows most = CV_FLOW_WINDOWS_NONE;

	for (unsigned i = 0; i < count; i++)
		most = RTE_MAX(most, cv_flow_windows_of(members[i].nf, members[i].instance));
	return most;
}

// Where the parts of a zone's memory are, one behind the other, and how much it is.
struct parts {
	size_t table[2], hosts, window[2], carried, end;
};

static struct parts parts(
	const struct cv_flow_member *members, unsigned count, const struct cv_flow_limits *limits)
{
	const size_t window = windows_of(members, count) == CV_FLOW_WINDOWS_NONE
				      ? 0
				      : sizeof(struct cv_flow_window);
	const uint64_t flows = (uint64_t)limits->max + limits->max_ipv6;
	struct slot_offset unused[CV_FLOW_MEMBERS_MAX];

	struct parts parts = {.table = {0}};

	parts.table[1] =
		cv_flow_table_bytes(limits->max, lay_out(members, count, false, unused), false);
	parts.hosts = parts.table[1] + cv_flow_table_bytes(limits->max_ipv6,
					       lay_out(members, count, true, unused), true);
	parts.window[0] = parts.hosts +
			  RTE_ALIGN_CEIL(cv_flow_hosts_bytes((uint32_t)RTE_MIN(flows, UINT32_MAX),
						 limits->per_host),
				  LINE);
	parts.window[1] = parts.window[0] + limits->max * window;
	parts.carried = RTE_ALIGN_CEIL(parts.window[1] + limits->max_ipv6 * window, LINE);
	parts.end = parts.carried + sizeof(struct cv_flow_carried);
	return parts;
}

size_t cv_flow_zone_bytes(
	const struct cv_flow_member *members, unsigned count, const struct cv_flow_limits *limits)
{
	return RTE_ALIGN_CEIL(parts(members, count, limits).end, CV_FLOW_HUGE_PAGE) +
	       RTE_ALIGN_CEIL(sizeof(struct cv_flow_zone), LINE);
}

static unsigned shift_for(uint64_t tsc_hz)
{
	unsigned shift = 0;

	while (tsc_hz >> (shift + 1) >= CV_FLOW_TICKS_PER_S)
		shift++;
	return shift;
}

static void set_members(
	struct cv_flow_zone *zone, const struct cv_flow_member *members, unsigned count)
{
	zone->members_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct cv_flow_zone_member *member = &zone->members[i];

		member->flow = members[i].nf->flow;
		member->tick = members[i].nf->tick;
		member->instance = member->next = members[i].instance;
		if (member->flow->generation == NULL)
			continue;
		member->generation = member->flow->generation(member->instance);
		// Pairs with the release store of whoever changes the instance.
		member->known = __atomic_load_n(member->generation, __ATOMIC_ACQUIRE);
	}
}

static void set_places(struct cv_flow_zone *zone, bool v6, const struct slot_offset *offsets)
{
	const struct cv_flow_table *table = &zone->table[v6];
	const size_t slots =
		v6 ? offsetof(struct cv_flow_ipv6, slots) : offsetof(struct cv_flow_ipv4, slots);

	for (unsigned i = 0; i < zone->members_count; i++) {
		struct cv_flow_place *place = &zone->members[i].slots[v6];

		if (offsets[i].beside)
			*place = (struct cv_flow_place){
				table->beside + offsets[i].at, table->beside_bytes};
		else
			*place = (struct cv_flow_place){table->flows + slots + offsets[i].at,
				v6 ? sizeof(struct cv_flow_ipv6) : sizeof(struct cv_flow_ipv4)};
	}
}

struct cv_flow_zone *cv_flow_zone_create(const struct cv_flow_member *members, unsigned count,
	const struct cv_flow_limits *limits, uint64_t tsc_hz, struct cv_error *error)
{
	const unsigned slots_bytes = cv_flow_slots_bytes(members, count);
	const uint32_t max[2] = {limits->max, limits->max_ipv6};
	const struct parts part = parts(members, count, limits);
	struct cv_flow_zone *zone;
	int rc;

	if (count > CV_FLOW_MEMBERS_MAX || slots_bytes > CV_FLOW_SLOTS_MAX) {
		cv_error_set(error,
			"%u stateful functions in a row keep %u bytes of each flow; %u functions "
			"and %u bytes are possible: put another function between them",
			count, slots_bytes, CV_FLOW_MEMBERS_MAX, CV_FLOW_SLOTS_MAX);
		return NULL;
	}
	zone = aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*zone), LINE));
	if (zone == NULL)
		return NULL;
	memset(zone, 0, sizeof(*zone));
	rc = cv_flow_memory_make(&zone->memory, RTE_ALIGN_CEIL(part.end, CV_FLOW_HUGE_PAGE));
	if (rc == 0)
		rc = cv_flow_secret_make(&zone->secret);
	if (rc != 0) {
		cv_error_set(error,
			"no memory for %u IPv4 and %u IPv6 flows, %zu MiB: %s; lower flows.max",
			max[0], max[1], RTE_ALIGN_CEIL(part.end, CV_FLOW_HUGE_PAGE) >> 20,
			strerror(-rc));
		cv_flow_zone_destroy(zone);
		return NULL;
	}
	set_members(zone, members, count);
	for (unsigned i = 0; i < 2; i++) {
		struct slot_offset offsets[CV_FLOW_MEMBERS_MAX];
		const unsigned beside = lay_out(members, count, i == 1, offsets);

		cv_flow_table_init(&zone->table[i], RTE_PTR_ADD(zone->memory.start, part.table[i]),
			max[i], beside, i == 1, &zone->secret);
		set_places(zone, i == 1, offsets);
		zone->window[i] =
			(struct cv_flow_place){RTE_PTR_ADD(zone->memory.start, part.window[i]),
				sizeof(struct cv_flow_window)};
		zone->denied_max[i] = max[i] / DENIED_SHARE;
	}
	zone->carried = RTE_PTR_ADD(zone->memory.start, part.carried);
	cv_flow_hosts_init(&zone->hosts, RTE_PTR_ADD(zone->memory.start, part.hosts),
		(uint32_t)RTE_MIN((uint64_t)max[0] + max[1], UINT32_MAX), limits->per_host);
	zone->shift = shift_for(tsc_hz);
	zone->stale = 1;
	for (unsigned i = 0; i < CV_FLOW_TIMEOUTS; i++)
		zone->timeouts[i] = (uint32_t)((limits->timeouts_s[i] * tsc_hz >> zone->shift) + 1);
	zone->windows = windows_of(members, count);
	zone->epoch = 1;
	cv_flow_ways_init(&zone->ways);
	return zone;
}

void cv_flow_zone_destroy(struct cv_flow_zone *zone)
{
	if (zone == NULL)
		return;
	for (unsigned i = 0; i < zone->groups_count; i++)
		free(zone->groups[i]);
	cv_flow_restoring_free(zone->restored);
	cv_flow_memory_free(&zone->memory);
	free(zone);
}

static void add_follower(struct cv_flow_group *group, unsigned index, unsigned position)
{
	const struct cv_flow_zone_member *member = &group->zone->members[index];

	if (member->flow->follow != NULL)
		group->followers[group->followers_count++] = (struct cv_flow_follower){
			.follow = member->flow->follow,
			.instance = member->instance,
			.slots = {member->slots[0], member->slots[1]},
			.bit = (uint8_t)(1u << index),
			.position = (uint8_t)position,
		};
}

struct cv_flow_group *cv_flow_group_create(
	struct cv_flow_zone *zone, const uint8_t *order, struct cv_nf_counters *const *counters)
{
	struct cv_flow_group *group;

	if (zone->groups_count == CV_FLOW_GROUPS_MAX)
		return NULL;
	group = aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*group), LINE));
	if (group == NULL)
		return NULL;
	memset(group, 0, sizeof(*group));
	group->zone = zone;
	group->index = (uint8_t)zone->groups_count;
	if (zone->windows != CV_FLOW_WINDOWS_NONE) // before members see a packet
		group->followers[group->followers_count++] = (struct cv_flow_follower){
			.follow = cv_flow_window_follow,
			.instance = zone,
			.slots = {zone->window[0], zone->window[1]},
			.bit = CV_FLOW_WINDOWED,
		};
	for (unsigned i = 0; i < zone->members_count; i++) {
		group->order[i] = order[i];
		group->position[order[i]] = (uint8_t)i;
		group->counters[i] = counters[i];
		add_follower(group, order[i], i);
	}
	zone->groups[zone->groups_count++] = group;
	if (zone->stored) {
		memcpy(zone->carried->order[group->index], group->order, sizeof(group->order));
		zone->carried->groups_count = zone->groups_count;
	}
	return group;
}

struct cv_flow_group *cv_flow_group_find(struct cv_flow_zone *zone, const uint8_t *order)
{
	for (unsigned i = 0; i < zone->groups_count; i++)
		if (memcmp(zone->groups[i]->order, order, zone->members_count) == 0)
			return zone->groups[i];
	return NULL;
}

void cv_flow_zone_set_tick(struct cv_flow_zone *zone, unsigned member,
	void (*tick)(void *instance, struct cv_nf_worker *worker))
{
	zone->members[member].tick = tick;
}

void cv_flow_group_set_outputs(struct cv_flow_group *group, const uint8_t *first)
{
	memcpy(group->outputs, first, group->zone->members_count);
}

struct cv_nf_counters *cv_flow_group_counters(struct cv_flow_group *group)
{
	return &group->own;
}

const struct cv_flow_counters *cv_flow_zone_counters(const struct cv_flow_zone *zone)
{
	return &zone->counters;
}

void cv_flow_set_deadline(struct cv_flow_zone *zone, bool v6, uint32_t index, uint32_t from)
{
	struct cv_flow_table *table = &zone->table[v6];
	uint32_t deadline = from + zone->timeouts[cv_flow_at(table, index)->timeout];

	table->deadlines[index] = deadline + (deadline == 0);
}

void cv_flow_set_timeout(
	struct cv_flow_zone *zone, bool v6, uint32_t index, enum cv_flow_timeout timeout)
{
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	bool shorter = zone->timeouts[timeout] < zone->timeouts[flow->timeout];

	flow->timeout = (uint8_t)timeout;
	if (shorter)
		cv_flow_set_deadline(zone, v6, index, zone->now);
}

uint64_t cv_flow_host_hash(const struct cv_flow_zone *zone, bool v6, const union cv_flow_key *key)
{
	uint8_t host[16] = {0};

	memcpy(host, key, v6 ? 16 : 4);
	return cv_flow_hash(&zone->secret, host, sizeof(host));
}

void cv_flow_zone_replace(struct cv_flow_zone *zone, unsigned member, void *instance)
{
	// Pairs with the acquire load of the worker.
	__atomic_store_n(&zone->members[member].next, instance, __ATOMIC_RELEASE);
}

// What a member said before may not be what it says now.
static void begin_epoch(struct cv_flow_zone *zone, struct cv_flow_zone_member *member)
{
	member->changed = ++zone->epoch;
	__atomic_store_n(&zone->published_epoch, zone->epoch, __ATOMIC_RELEASE);
}

static void learn_instance(struct cv_flow_zone *zone, unsigned index, void *instance)
{
	struct cv_flow_zone_member *member = &zone->members[index];

	member->instance = instance;
	if (member->flow->generation != NULL) {
		member->generation = member->flow->generation(instance);
		member->known = __atomic_load_n(member->generation, __ATOMIC_ACQUIRE);
	}
	for (unsigned i = 0; i < zone->groups_count; i++) {
		struct cv_flow_group *group = zone->groups[i];

		for (unsigned j = 0; j < group->followers_count; j++)
			if (group->followers[j].bit == 1u << index)
				group->followers[j].instance = instance;
	}
	begin_epoch(zone, member);
}

void cv_flow_learn_changes(struct cv_flow_zone *zone)
{
	for (unsigned i = 0; i < zone->members_count; i++) {
		struct cv_flow_zone_member *member = &zone->members[i];
		// Pairs with the release store in cv_flow_zone_replace().
		void *instance = __atomic_load_n(&member->next, __ATOMIC_ACQUIRE);
		uint32_t now;

		if (CV_UNLIKELY(instance != member->instance))
			learn_instance(zone, i, instance);
		if (member->generation == NULL)
			continue;
		// Pairs with the release store of whoever changes the instance.
		now = __atomic_load_n(member->generation, __ATOMIC_ACQUIRE);
		if (CV_LIKELY(now == member->known))
			continue;
		member->known = now;
		begin_epoch(zone, member);
	}
}

uint8_t cv_flow_changed_since(const struct cv_flow_zone *zone, uint32_t epoch)
{
	uint8_t changed = 0;

	for (unsigned i = 0; i < zone->members_count; i++)
		if ((int32_t)(zone->members[i].changed - epoch) > 0)
			changed |= (uint8_t)(1u << i);
	return changed;
}

void cv_flow_count(struct cv_flow_zone *zone)
{
	cv_count(&zone->counters.flows_ipv4, zone->table[0].used - zone->counters.flows_ipv4);
	cv_count(&zone->counters.flows_ipv6, zone->table[1].used - zone->counters.flows_ipv6);
	cv_count(&zone->counters.denied, zone->denied[0] + zone->denied[1] - zone->counters.denied);
}

void cv_flow_end_functions(const struct cv_flow_group *group, struct cv_nf_worker *worker, bool v6,
	uint32_t index, unsigned first, unsigned end)
{
	const struct cv_flow_zone *zone = group->zone;

	for (unsigned i = first; i < end; i++) {
		unsigned member = group->order[i];
		const struct cv_flow_zone_member *of = &zone->members[member];

		if (of->flow->ended != NULL)
			of->flow->ended(
				of->instance, worker, cv_flow_slot(zone, v6, index, member));
	}
}

static uint64_t hash_of_stored(
	const struct cv_flow_zone *zone, bool v6, struct cv_flow *flow, unsigned direction)
{
	union cv_flow_key key;

	cv_flow_key(flow, direction, v6, &key);
	return cv_flow_hash_of(zone, v6, &key);
}

void cv_flow_remove_key(struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned direction)
{
	struct cv_flow_table *table = &zone->table[v6];

	cv_flow_table_remove(table, hash_of_stored(zone, v6, cv_flow_at(table, index), direction),
		index, direction);
}

// Of each key that leads to a flow.
struct key_hashes {
	uint64_t hash[2]; // by direction
};

static void hash_keys(
	const struct cv_flow_zone *zone, bool v6, uint32_t index, struct key_hashes *hashes)
{
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);

	hashes->hash[CV_FLOW_FORWARD] = hash_of_stored(zone, v6, flow, CV_FLOW_FORWARD);
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		hashes->hash[CV_FLOW_REPLY] = hash_of_stored(zone, v6, flow, CV_FLOW_REPLY);
}

static void end_flow(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	uint32_t index, const struct key_hashes *hashes)
{
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index);
	union cv_flow_key key;

	cv_flow_unsettle(table, index);
	cv_flow_table_remove(table, hashes->hash[CV_FLOW_FORWARD], index, CV_FLOW_FORWARD);
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		cv_flow_table_remove(table, hashes->hash[CV_FLOW_REPLY], index, CV_FLOW_REPLY);
	if (flow->flags & CV_FLOW_DENIED) {
		zone->denied[v6]--;
	} else {
		if (zone->hosts.limit != 0) {
			cv_flow_key(flow, CV_FLOW_FORWARD, v6, &key);
			cv_flow_hosts_remove(&zone->hosts, cv_flow_host_hash(zone, v6, &key));
		}
		cv_flow_end_functions(
			zone->groups[flow->group], worker, v6, index, 0, flow->deciders);
		cv_flow_ways_give(&zone->ways, flow->way[0]);
		cv_flow_ways_give(&zone->ways, flow->way[1]);
	}
	cv_flow_table_give(table, index);
	zone->removals++;
	cv_flow_count(zone);
}

void cv_flow_end(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6, uint32_t index)
{
	struct key_hashes hashes;

	hash_keys(zone, v6, index, &hashes);
	end_flow(zone, worker, v6, index, &hashes);
}

// Asks for the buckets that keys lead to, and for what members read when flows end.
static void expect_ends(const struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	const uint32_t *indices, const struct key_hashes *hashes, unsigned n)
{
	const struct cv_flow_table *table = &zone->table[v6];
	const void *slots[CV_BURST_MAX];

	for (unsigned i = 0; i < n; i++) {
		const struct cv_flow *flow = cv_flow_at(table, indices[i]);

		for (unsigned d = 0; d < (flow->flags & CV_FLOW_ONE_KEY ? 1u : 2u); d++)
			rte_prefetch0(
				&table->buckets[cv_flow_first_bucket(table, hashes[i].hash[d])]);
	}
	for (unsigned m = 0; m < zone->members_count; m++) {
		const struct cv_flow_zone_member *member = &zone->members[m];

		if (member->flow->expect_ended == NULL)
			continue;
		for (unsigned i = 0; i < n; i++)
			slots[i] = cv_flow_slot(zone, v6, indices[i], m);
		member->flow->expect_ended(member->instance, worker, slots, n);
	}
}

void cv_flow_end_all(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	const uint32_t *indices, unsigned n)
{
	struct key_hashes hashes[CV_BURST_MAX];

	for (unsigned i = 0; i < n; i++)
		hash_keys(zone, v6, indices[i], &hashes[i]);
	expect_ends(zone, worker, v6, indices, hashes, n);
	for (unsigned i = 0; i < n; i++)
		end_flow(zone, worker, v6, indices[i], &hashes[i]);
}

void cv_flow_zone_share(struct cv_flow_zone *zone, const struct cv_flow_homes *homes)
{
	zone->homes = homes;
	zone->published_epoch = zone->epoch;
	zone->stale = homes == NULL ? 1 : CV_FLOW_STALE_SHARED;
	for (unsigned v6 = 0; v6 < 2; v6++)
		zone->table[v6].versions = homes == NULL ? NULL : zone->versions[v6];
}

const struct cv_flow_homes *cv_flow_homes_of(const struct cv_flow_packet *packet)
{
	return packet->zone->homes;
}
