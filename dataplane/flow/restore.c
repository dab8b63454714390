// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What is read here was written by a process that may have ended between any two instructions, and may be
// anything. Each entry is copied once, and the copy is checked: what is wrong costs that flow.
//
// The worker writes an entry's deadline last, and takes it back first: an entry with one is a flow. The
// functions repeat what became of its tuple, which must lead to the key of answers that the entry has.
#include "flow/restore.h"

#include <errno.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "flow/carried.h"
#include "flow/home.h"
#include "flow/replica.h"
#include "flow/tuples.h"
#include "flow/zone.h"

#define BATCH CV_BURST_MAX // entries whose memory is asked for together
#define SCALE_MAX 14 // of TCP's windows: RFC 7323 section 2.3
#define SCALE_SHIFT 4 // of what a SYN said, in struct cv_flow_window_end's flags

struct restoring {
	struct cv_flow_zone *zone;
	struct cv_nf_worker *worker;
	struct cv_flow_memory before; // as the zone's, at another place
	struct cv_flow_group *groups[CV_FLOW_GROUPS_MAX]; // by their numbers there
	unsigned groups_count;
	enum cv_flow_origin origin;
	uint32_t now;
	uint32_t epoch; // that flows have until they are decided on again
};

// An entry as it was there.
union entry {
	struct cv_flow flow;
	struct cv_flow_ipv4 ipv4;
	struct cv_flow_ipv6 ipv6;
};

// Where something of the zone's memory is in that of the process before.
static const void *there(const struct restoring *it, const void *here)
{
	return RTE_PTR_ADD(it->before.start, RTE_PTR_DIFF(here, it->zone->memory.start));
}

static bool can_be_stored(const struct cv_flow_zone_member *member)
{
	const struct cv_flow_kept *kept = member->flow->kept;

	if (kept == NULL)
		return member->flow->in_slots && member->flow->slot_bytes == 0;
	return kept->store != NULL && kept->store(member->instance) >= 0;
}

int cv_flow_zone_store(struct cv_flow_zone *zone)
{
	struct cv_flow_carried *carried = zone->carried;

	if (zone->memory.fd < 0)
		return -1;
	for (unsigned i = 0; i < zone->members_count; i++)
		if (!can_be_stored(&zone->members[i]))
			return -1;
	zone->stored = true;
	cv_flow_zone_mark(zone);
	for (unsigned i = 0; i < zone->groups_count; i++)
		memcpy(carried->order[i], zone->groups[i]->order, sizeof(carried->order[i]));
	carried->groups_count = zone->groups_count;
	return zone->memory.fd;
}

// Which groups flows were decided in. Those of another order than any here are lost.
static void find_groups(struct restoring *it)
{
	const struct cv_flow_carried *carried = there(it, it->zone->carried);
	const uint32_t count = carried->groups_count;

	it->groups_count = RTE_MIN(count, (uint32_t)CV_FLOW_GROUPS_MAX);
	for (unsigned i = 0; i < it->groups_count; i++) {
		uint8_t order[CV_FLOW_MEMBERS_MAX];

		memcpy(order, carried->order[i], sizeof(order));
		it->groups[i] = cv_flow_zone_is_order(it->zone, order)
					? cv_flow_group_find(it->zone, order)
					: NULL;
	}
}

// Whether a flow's numbers are such as a worker writes.
static bool is_flow(const struct restoring *it, const struct cv_flow *flow)
{
	const unsigned members = it->zone->members_count;

	if (flow->group >= it->groups_count || it->groups[flow->group] == NULL ||
		flow->timeout >= CV_FLOW_TIMEOUTS || flow->timeout == CV_FLOW_DENIED_FOR ||
		flow->tcp_state >= CV_FLOW_TCP_STATES ||
		(flow->tcp_state != CV_FLOW_TCP_NONE) != (flow->proto == IPPROTO_TCP))
		return false;
	return flow->flags & CV_FLOW_OUTPUT ? flow->deciders >= 1 && flow->deciders <= members
					    : flow->deciders == members;
}

// The functions forget a flow again, the first so many of its group.
static bool undo(struct restoring *it, bool v6, uint32_t index, const struct cv_flow_group *group,
	unsigned restored)
{
	cv_flow_end_functions(group, it->worker, v6, index, 0, restored);
	return false;
}

// The functions that decided on the flow have its slots, and repeat what they made of its tuple. False: one
// does not know it, and none does.
static bool restore_slots(
	struct restoring *it, bool v6, uint32_t from, uint32_t index, struct cv_flow_tuple *tuple)
{
	const struct cv_flow_zone *zone = it->zone;
	const struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	const struct cv_flow_group *group = zone->groups[flow->group];

	for (unsigned i = 0; i < flow->deciders; i++) {
		const struct cv_flow_zone_member *member = &zone->members[group->order[i]];
		void *slot = cv_flow_slot(zone, v6, index, group->order[i]);

		if (member->flow->kept == NULL)
			continue;
		memcpy(slot, there(it, cv_flow_slot(zone, v6, from, group->order[i])),
			member->flow->slot_bytes);
		if (!member->flow->kept->restore(member->instance, it->worker, tuple, slot)) {
			memset(slot, 0, member->flow->slot_bytes);
			return undo(it, v6, index, group, i);
		}
	}
	return true;
}

// The windows of a TCP connection that are checked. False: they cannot be.
static bool restore_window(struct restoring *it, bool v6, uint32_t from, uint32_t index)
{
	struct cv_flow_window *window = cv_flow_slot_at(&it->zone->window[v6], index);

	memcpy(window, there(it, cv_flow_slot_at(&it->zone->window[v6], from)), sizeof(*window));
	for (unsigned i = 0; i < 2; i++)
		if (window->end[i].scale > SCALE_MAX ||
			window->end[i].flags >> SCALE_SHIFT > SCALE_MAX)
			return false;
	return true;
}

// The entry of a flow, whose forward key is there, but for its keys of answers and what follows of them.
static void write_flow(const struct restoring *it, const struct cv_flow *was, struct cv_flow *flow)
{
	const struct cv_flow_group *group = it->groups[was->group];

	flow->seen = it->origin == CV_FLOW_REPLICATED || (int32_t)(it->now - was->seen) < 0
			     ? it->now
			     : was->seen;
	flow->epoch = it->epoch;
	flow->flags = was->flags & CV_FLOW_REPLIED;
	flow->tcp_state = was->tcp_state;
	flow->timeout = was->timeout;
	flow->proto = was->proto;
	flow->group = group->index;
	flow->deciders = was->deciders;
	flow->verdict =
		CV_NEXT; // until it is decided on again, before its next packet goes anywhere
	if (it->zone->windows != CV_FLOW_WINDOWS_NONE && was->proto == IPPROTO_TCP)
		flow->follows = was->follows & CV_FLOW_WINDOWED;
}

// Writes what follows of a flow's keys, and lets them lead to it. False: they do not fit, or are another's.
static bool write_keys(const struct restoring *it, bool v6, uint32_t index, const union entry *was,
	const union cv_flow_key *key, const struct cv_flow_tuple *tuple)
{
	struct cv_flow_table *table = &it->zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index);
	struct cv_flow_tuple first;
	union cv_flow_key answer, plain;
	uint64_t hash;

	cv_flow_set_tuple(key, v6, &first);
	cv_flow_set_answer(&first, &plain);
	cv_flow_set_answer(tuple, &answer);
	if (!cv_flow_has_key((struct cv_flow *)(uintptr_t)&was->flow, CV_FLOW_REPLY, v6, &answer) ||
		!cv_flow_ports_allowed(&first, tuple))
		return false;
	if (memcmp(&plain, &answer, CV_FLOW_KEY_BYTES(v6)) != 0)
		flow->flags |= CV_FLOW_REWRITES;
	cv_flow_deltas(key, &answer, v6, &flow->ip_delta, &flow->l4_delta);
	memcpy(cv_flow_stored(flow, CV_FLOW_FORWARD, v6), key, CV_FLOW_STORED_BYTES(v6));
	memcpy(cv_flow_stored(flow, CV_FLOW_REPLY, v6), &answer, CV_FLOW_STORED_BYTES(v6));
	if (memcmp(&answer, key, CV_FLOW_KEY_BYTES(v6)) == 0 ||
		(was->flow.flags & CV_FLOW_ONE_KEY && !(flow->flags & CV_FLOW_REWRITES)))
		flow->flags |= CV_FLOW_ONE_KEY;
	hash = cv_flow_hash_of(it->zone, v6, &answer);
	if (!(flow->flags & CV_FLOW_ONE_KEY) &&
		(cv_flow_table_find(table, &answer, hash) != CV_FLOW_NONE ||
			cv_flow_table_add(table, hash, index, CV_FLOW_REPLY) != 0))
		return false;
	if (cv_flow_table_add(table, cv_flow_hash_of(it->zone, v6, key), index, CV_FLOW_FORWARD) ==
		0)
		return true;
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		cv_flow_table_remove(table, hash, index, CV_FLOW_REPLY);
	return false;
}

// Makes a flow in an entry that was taken for it. False: nothing knows it.
static bool fill(struct restoring *it, bool v6, uint32_t from, uint32_t index,
	const union entry *was, const union cv_flow_key *key)
{
	struct cv_flow_zone *zone = it->zone;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	const uint64_t host = zone->hosts.limit == 0 ? 0 : cv_flow_host_hash(zone, v6, key);
	struct cv_flow_tuple tuple;

	write_flow(it, &was->flow, flow);
	cv_flow_set_tuple(key, v6, &tuple);
	if ((flow->follows & CV_FLOW_WINDOWED && !restore_window(it, v6, from, index)) ||
		!cv_flow_hosts_add(&zone->hosts, host))
		return false;
	if (restore_slots(it, v6, from, index, &tuple)) {
		if (write_keys(it, v6, index, was, key, &tuple))
			return true;
		undo(it, v6, index, zone->groups[flow->group], flow->deciders);
	}
	cv_flow_hosts_remove(&zone->hosts, host);
	return false;
}

static bool restore_one(struct restoring *it, bool v6, uint32_t from, const union entry *was,
	const union cv_flow_key *key)
{
	struct cv_flow_table *table = &it->zone->table[v6];
	uint32_t index;

	if (!is_flow(it, &was->flow) ||
		cv_flow_table_find(table, key, cv_flow_hash_of(it->zone, v6, key)) != CV_FLOW_NONE)
		return false;
	index = cv_flow_table_take(table);
	if (index == CV_FLOW_NONE)
		return false;
	if (fill(it, v6, from, index, was, key)) {
		cv_flow_set_deadline(it->zone, v6, index, cv_flow_at(table, index)->seen);
		return true;
	}
	cv_flow_table_give(table, index);
	return false;
}

// The tuples of flows that come next: the functions ask for what they will read.
static void expect(struct restoring *it, const struct cv_flow_tuple *tuples, unsigned n)
{
	for (unsigned i = 0; n > 0 && i < it->zone->members_count; i++) {
		const struct cv_flow_zone_member *member = &it->zone->members[i];

		if (member->flow->expect != NULL)
			member->flow->expect(member->instance, it->worker, tuples, n);
	}
}

static void expect_key(const struct restoring *it, bool v6, const union cv_flow_key *key)
{
	const struct cv_flow_table *table = &it->zone->table[v6];

	rte_prefetch0(
		&table->buckets[cv_flow_first_bucket(table, cv_flow_hash_of(it->zone, v6, key))]);
}

// Some entries, n <= BATCH.
static void restore_batch(struct restoring *it, bool v6, const uint32_t *from, unsigned n,
	struct cv_flow_restored *restored)
{
	struct cv_flow_table *table = &it->zone->table[v6];
	const size_t bytes = v6 ? sizeof(struct cv_flow_ipv6) : sizeof(struct cv_flow_ipv4);
	struct cv_flow_tuple tuples[BATCH];
	union cv_flow_key keys[BATCH], answer;
	union entry was[BATCH];

	cv_flow_table_expect(table);
	for (unsigned i = 0; i < n; i++) {
		memcpy(&was[i], there(it, cv_flow_at(table, from[i])), bytes);
		cv_flow_key(&was[i].flow, CV_FLOW_FORWARD, v6, &keys[i]);
		cv_flow_key(&was[i].flow, CV_FLOW_REPLY, v6, &answer);
		cv_flow_set_tuple(&keys[i], v6, &tuples[i]);
		expect_key(it, v6, &keys[i]);
		expect_key(it, v6, &answer);
	}
	expect(it, tuples, n);
	for (unsigned i = 0; i < n; i++) {
		if (was[i].flow.flags & CV_FLOW_DENIED) // decided on again by its next packet
			continue;
		if (restore_one(it, v6, from[i], &was[i], &keys[i]))
			restored->flows++;
		else
			restored->lost++;
	}
}

static void restore_table(struct restoring *it, bool v6, struct cv_flow_restored *restored)
{
	const struct cv_flow_table *table = &it->zone->table[v6];
	const uint32_t *deadlines = there(it, table->deadlines);
	uint32_t from[BATCH];
	unsigned n = 0;

	for (uint32_t i = 0; i < table->max; i++) {
		if (deadlines[i] == 0)
			continue;
		rte_prefetch0(there(it, cv_flow_at(table, i)));
		from[n++] = i;
		if (n < BATCH)
			continue;
		restore_batch(it, v6, from, n, restored);
		n = 0;
	}
	restore_batch(it, v6, from, n, restored);
}

static uint64_t layout_of(const struct cv_flow_zone *zone, enum cv_flow_origin origin)
{
	return origin == CV_FLOW_KEPT ? cv_flow_zone_layout(zone)
				      : cv_flow_zone_replica_layout(zone);
}

bool cv_flow_zone_homes_in(const struct cv_flow_zone *zone, int fd, enum cv_flow_origin origin,
	struct cv_flow_secret *secret)
{
	const off_t at = (off_t)(RTE_PTR_DIFF(zone->carried, zone->memory.start) +
				 offsetof(struct cv_flow_carried, homes));

	return zone->homes != NULL && cv_flow_zone_layout_in(fd, zone) == layout_of(zone, origin) &&
	       pread(fd, secret, sizeof(*secret), at) == (ssize_t)sizeof(*secret) &&
	       cv_flow_secret_is_alike(&zone->homes->secret, secret);
}

// Whether a flow of the file has the same worker here.
static bool has_same_homes(const struct cv_flow_zone *zone, int fd, enum cv_flow_origin origin)
{
	struct cv_flow_secret secret;

	return zone->homes == NULL ||
	       (cv_flow_zone_homes_in(zone, fd, origin, &secret) &&
		       memcmp(secret.keys, zone->homes->secret.keys, sizeof(secret.keys)) == 0);
}

int cv_flow_zone_restore(struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd,
	enum cv_flow_origin origin, struct cv_flow_restored *restored, struct cv_error *error)
{
	struct restoring it = {.zone = zone,
		.worker = worker,
		.origin = origin,
		.now = (uint32_t)(worker->now >> zone->shift),
		.epoch = zone->epoch};
	int rc = cv_flow_memory_look(&it.before, zone->memory.bytes, fd, error);

	if (rc != 0)
		return rc;
	if (cv_flow_zone_layout_in(fd, zone) != layout_of(zone, origin))
		cv_error_set(error, "its flows were kept in another layout");
	else if (!has_same_homes(zone, fd, origin))
		cv_error_set(error, "its flows were spread over workers in another way");
	if (error->text[0] != '\0') {
		cv_flow_memory_free(&it.before);
		return -ESTALE;
	}
	find_groups(&it);
	zone->now = zone->aged = it.now;
	restore_table(&it, false, restored);
	restore_table(&it, true, restored);
	cv_flow_memory_free(&it.before);
	for (unsigned i = 0; i < zone->members_count; i++)
		zone->members[i].changed = ++zone->epoch;
	zone->published_epoch = zone->epoch;
	cv_flow_count(zone);
	return 0;
}
