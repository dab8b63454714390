// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What is read here was written by a process that may have ended between any two instructions, and may be
// anything. Each entry is copied once, and the copy is checked: what is wrong costs that flow.
//
// The worker writes an entry's deadline last, and takes it back first: an entry with one is a flow. The
// functions repeat what became of its tuple, which must lead to the key of answers that the entry has.
//
// Where functions allow it, flows come back while the worker runs: some in each poll iteration, and those
// that a packet comes for at once, by the table there and its secret.
#include "flow/restore.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "flow/carried.h"
#include "flow/home.h"
#include "flow/replica.h"
#include "flow/tuples.h"
#include "flow/zone.h"

#define BATCH CV_BURST_MAX // entries whose memory is asked for together
#define FLOWS_PER_US 4 // that come back in the time that a poll iteration took without them
#define STEP_MAX 4096u
#define SCALE_MAX 14 // of TCP's windows: RFC 7323 section 2.3
#define SCALE_SHIFT 4 // of what a SYN said, in struct cv_flow_window_end's flags

struct cv_flow_restoring {
	struct cv_flow_zone *zone;
	struct cv_nf_worker *worker;
	struct cv_flow_memory before; // as the zone's, at another place
	struct cv_flow_group *groups[CV_FLOW_GROUPS_MAX]; // by their numbers there
	unsigned groups_count;
	enum cv_flow_origin origin;
	uint32_t epoch; // that flows have until they are decided on again
	uint32_t next[2]; // entry there, of IPv4 and IPv6; those before it came back, or cannot
	struct cv_flow_restored restored;

	// While the worker runs.
	struct cv_flow_secret secret; // of the table there
	uint64_t *came[2]; // entries there that came back, or cannot: one bit each
	uint32_t left[2]; // those that are still to come
	uint64_t stepped; // when the last ones came: TSC
	uint64_t tsc_per_us;
};

// An entry as it was there.
union entry {
	struct cv_flow flow;
	struct cv_flow_ipv4 ipv4;
	struct cv_flow_ipv6 ipv6;
};

// Where something of the zone's memory is in that of the process before.
static const void *there(const struct cv_flow_restoring *it, const void *here)
{
	return RTE_PTR_ADD(it->before.start, RTE_PTR_DIFF(here, it->zone->memory.start));
}

static bool can_be_stored(const struct cv_flow_zone_member *member)
{
	const struct cv_flow_kept *kept = member->flow->kept;

	if (kept == NULL)
		return member->flow->in_slots &&
		       (member->flow->any_slot || member->flow->slot_bytes == 0);
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
	carried->secret = zone->secret;
	for (unsigned i = 0; i < zone->groups_count; i++)
		memcpy(carried->order[i], zone->groups[i]->order, sizeof(carried->order[i]));
	carried->groups_count = zone->groups_count;
	return zone->memory.fd;
}

// Which groups flows were decided in. Those of another order than any here are lost.
static void find_groups(struct cv_flow_restoring *it)
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
static bool is_flow(const struct cv_flow_restoring *it, const struct cv_flow *flow)
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
static bool undo(struct cv_flow_restoring *it, bool v6, uint32_t index,
	const struct cv_flow_group *group, unsigned restored)
{
	cv_flow_end_functions(group, it->worker, v6, index, 0, restored);
	return false;
}

// The functions that decided on the flow have its slots, and repeat what they made of its tuple. False: one
// does not know it, and none does.
static bool restore_slots(struct cv_flow_restoring *it, bool v6, uint32_t from, uint32_t index,
	struct cv_flow_tuple *tuple)
{
	const struct cv_flow_zone *zone = it->zone;
	const struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	const struct cv_flow_group *group = zone->groups[flow->group];

	for (unsigned i = 0; i < flow->deciders; i++) {
		const struct cv_flow_zone_member *member = &zone->members[group->order[i]];
		void *slot = cv_flow_slot(zone, v6, index, group->order[i]);

		if (member->flow->slot_bytes > 0)
			memcpy(slot, there(it, cv_flow_slot(zone, v6, from, group->order[i])),
				member->flow->slot_bytes);
		if (member->flow->kept == NULL)
			continue;
		if (!member->flow->kept->restore(member->instance, it->worker, tuple, slot)) {
			memset(slot, 0, member->flow->slot_bytes);
			return undo(it, v6, index, group, i);
		}
	}
	return true;
}

// The windows of a TCP connection that are checked. False: they cannot be.
static bool restore_window(struct cv_flow_restoring *it, bool v6, uint32_t from, uint32_t index)
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
static void write_flow(
	const struct cv_flow_restoring *it, const struct cv_flow *was, struct cv_flow *flow)
{
	const struct cv_flow_group *group = it->groups[was->group];
	const uint32_t now = it->zone->now;

	flow->seen = it->origin == CV_FLOW_REPLICATED || (int32_t)(now - was->seen) < 0 ? now
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
static bool write_keys(const struct cv_flow_restoring *it, bool v6, uint32_t index,
	const union entry *was, const union cv_flow_key *key, const struct cv_flow_tuple *tuple)
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
static bool fill(struct cv_flow_restoring *it, bool v6, uint32_t from, uint32_t index,
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

static bool restore_one(struct cv_flow_restoring *it, bool v6, uint32_t from,
	const union entry *was, const union cv_flow_key *key)
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
static void expect(struct cv_flow_restoring *it, const struct cv_flow_tuple *tuples, unsigned n)
{
	for (unsigned i = 0; n > 0 && i < it->zone->members_count; i++) {
		const struct cv_flow_zone_member *member = &it->zone->members[i];

		if (member->flow->expect != NULL)
			member->flow->expect(member->instance, it->worker, tuples, n);
	}
}

static void expect_key(const struct cv_flow_restoring *it, bool v6, const union cv_flow_key *key)
{
	const struct cv_flow_table *table = &it->zone->table[v6];

	rte_prefetch0(
		&table->buckets[cv_flow_first_bucket(table, cv_flow_hash_of(it->zone, v6, key))]);
}

// Some entries, n <= BATCH.
static void restore_batch(struct cv_flow_restoring *it, bool v6, const uint32_t *from, unsigned n)
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
			it->restored.flows++;
		else
			it->restored.lost++;
	}
}

// Whether an entry comes back now, and not before.
static bool claim(struct cv_flow_restoring *it, bool v6, uint32_t index)
{
	const uint64_t bit = 1ull << index % 64;

	if (it->came[v6] == NULL) // in one go: each has one turn
		return true;
	if (it->came[v6][index / 64] & bit)
		return false;
	it->came[v6][index / 64] |= bit;
	it->left[v6]--;
	return true;
}

// The next flows, about n at most. Returns whether there may be more.
static bool restore_some(struct cv_flow_restoring *it, bool v6, uint32_t n)
{
	const struct cv_flow_table *table = &it->zone->table[v6];
	const uint32_t *deadlines = there(it, table->deadlines);
	const uint32_t end = it->next[v6] + RTE_MIN(table->max - it->next[v6], 16 * n);
	uint32_t from[BATCH], i;
	unsigned count = 0;

	for (i = it->next[v6]; i < end && n > 0; i++) {
		if (deadlines[i] == 0 || !claim(it, v6, i))
			continue;
		n--;
		rte_prefetch0(there(it, cv_flow_at(table, i)));
		from[count++] = i;
		if (count < BATCH)
			continue;
		restore_batch(it, v6, from, count);
		count = 0;
	}
	restore_batch(it, v6, from, count);
	it->next[v6] = i;
	return i < table->max;
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

// Looks at a file, whose flows are to come back. NULL with *rc and error set.
static struct cv_flow_restoring *begin(struct cv_flow_zone *zone, struct cv_nf_worker *worker,
	int fd, enum cv_flow_origin origin, int *rc, struct cv_error *error)
{
	struct cv_flow_restoring *it = calloc(1, sizeof(*it));

	*rc = it == NULL ? -ENOMEM
			 : cv_flow_memory_look(&it->before, zone->memory.bytes, fd, error);
	if (*rc != 0) {
		free(it);
		return NULL;
	}
	it->zone = zone;
	it->worker = worker;
	it->origin = origin;
	it->epoch = zone->epoch;
	if (cv_flow_zone_layout_in(fd, zone) != layout_of(zone, origin))
		cv_error_set(error, "its flows were kept in another layout");
	else if (!has_same_homes(zone, fd, origin))
		cv_error_set(error, "its flows were spread over workers in another way");
	if (error->text[0] != '\0') {
		cv_flow_restoring_free(it);
		*rc = -ESTALE;
		return NULL;
	}
	find_groups(it);
	zone->now = zone->aged = (uint32_t)(worker->now >> zone->shift);
	return it;
}

// All that comes back is decided on again.
static void begin_epochs(struct cv_flow_zone *zone)
{
	for (unsigned i = 0; i < zone->members_count; i++)
		zone->members[i].changed = ++zone->epoch;
	zone->published_epoch = zone->epoch;
}

void cv_flow_restoring_free(struct cv_flow_restoring *it)
{
	if (it == NULL)
		return;
	cv_flow_memory_free(&it->before);
	free(it->came[0]);
	free(it->came[1]);
	free(it);
}

int cv_flow_zone_restore(struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd,
	enum cv_flow_origin origin, struct cv_flow_restored *restored, struct cv_error *error)
{
	int rc;
	struct cv_flow_restoring *it = begin(zone, worker, fd, origin, &rc, error);

	if (it == NULL)
		return rc;
	for (unsigned v6 = 0; v6 < 2; v6++)
		while (restore_some(it, v6 == 1, STEP_MAX))
			;
	restored->flows += it->restored.flows;
	restored->lost += it->restored.lost;
	cv_flow_restoring_free(it);
	begin_epochs(zone);
	cv_flow_count(zone);
	return 0;
}

// The secret of the table in a file. False: it says none.
static bool secret_in(const struct cv_flow_zone *zone, int fd, struct cv_flow_secret *secret)
{
	static const struct cv_flow_secret none;
	const off_t at = (off_t)(RTE_PTR_DIFF(zone->carried, zone->memory.start) +
				 offsetof(struct cv_flow_carried, secret));

	return pread(fd, secret, sizeof(*secret), at) == (ssize_t)sizeof(*secret) &&
	       memcmp(secret->keys, none.keys, sizeof(none.keys)) != 0;
}

enum cv_flow_later cv_flow_zone_restores_later(const struct cv_flow_zone *zone, int fd)
{
	// How many flows a host has is not known before all came.
	enum cv_flow_later later = zone->hosts.limit != 0 ? CV_FLOW_LATER_ALONE : CV_FLOW_LATER;
	struct cv_flow_secret secret;

	for (unsigned i = 0; i < zone->members_count; i++) {
		const struct cv_flow_kept *kept = zone->members[i].flow->kept;

		if (kept != NULL)
			later = RTE_MIN(later, kept->later);
	}
	return secret_in(zone, fd, &secret) ? later : CV_FLOW_AT_ONCE;
}

// Entries there that are flows, and room to say which of them came. False: there is no memory.
static bool count_left(struct cv_flow_restoring *it, bool v6)
{
	const struct cv_flow_table *table = &it->zone->table[v6];
	const uint32_t *deadlines = there(it, table->deadlines);

	it->came[v6] = calloc(table->max / 64 + 1, sizeof(*it->came[v6]));
	for (uint32_t i = 0; i < table->max; i++)
		it->left[v6] += deadlines[i] != 0;
	return it->came[v6] != NULL;
}

int cv_flow_zone_restore_later(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd, struct cv_error *error)
{
	int rc;
	struct cv_flow_restoring *it = begin(zone, worker, fd, CV_FLOW_KEPT, &rc, error);

	if (it == NULL)
		return rc;
	if (!count_left(it, false) || !count_left(it, true) || !secret_in(zone, fd, &it->secret)) {
		cv_error_set(error, "no memory to restore them");
		cv_flow_restoring_free(it);
		return -ENOMEM;
	}
	it->secret.aes = zone->secret.aes; // the layout says so
	it->tsc_per_us = RTE_MAX(rte_get_tsc_hz() / 1000000, 1u);
	it->stepped = worker->now;
	begin_epochs(zone);
	zone->refuses = cv_flow_zone_restores_later(zone, fd) == CV_FLOW_LATER_ALONE;
	zone->restored = zone->restoring = it;
	return 0;
}

void cv_flow_zone_accept(struct cv_flow_zone *zone)
{
	// Pairs with the worker's acquire load.
	__atomic_store_n(&zone->refuses, false, __ATOMIC_RELEASE);
}

bool cv_flow_zone_is_restored(struct cv_flow_zone *zone, struct cv_flow_restored *restored)
{
	// Pairs with the worker's release: it uses it no longer.
	if (__atomic_load_n(&zone->restoring, __ATOMIC_ACQUIRE) != NULL)
		return false;
	if (zone->restored == NULL)
		return true;
	restored->flows += zone->restored->restored.flows;
	restored->lost += zone->restored->restored.lost;
	cv_flow_restoring_free(zone->restored);
	zone->restored = NULL;
	return true;
}

void cv_flow_restore_step(struct cv_flow_zone *zone, struct cv_nf_worker *worker)
{
	struct cv_flow_restoring *it = zone->restoring;
	const uint64_t us = (worker->now - it->stepped) / it->tsc_per_us;
	uint32_t n = CV_BURST_MAX / 2;
	bool more;

	if (us > n / FLOWS_PER_US) // it has slept, or has much else to do
		n = (uint32_t)RTE_MIN(us * FLOWS_PER_US, (uint64_t)STEP_MAX);
	it->worker = worker;
	more = restore_some(it, false, n);
	more = more || restore_some(it, true, n);
	it->stepped = rte_rdtsc();
	cv_flow_count(zone);
	if (!more)
		__atomic_store_n(&zone->restoring, NULL, __ATOMIC_RELEASE);
}

// The entry there that a key leads to, in either direction; CV_FLOW_NONE: none that is a flow.
static uint32_t find_there(
	const struct cv_flow_restoring *it, bool v6, const union cv_flow_key *key)
{
	const struct cv_flow_table *table = &it->zone->table[v6];
	const struct cv_flow_bucket *buckets = there(it, table->buckets);
	const uint32_t *deadlines = there(it, table->deadlines);
	const uint64_t hash = cv_flow_hash(&it->secret, key, CV_FLOW_KEY_BYTES(v6));
	const uint16_t signature = cv_flow_signature(hash);
	uint32_t bucket = cv_flow_first_bucket(table, hash);

	for (unsigned i = 0; i < 2; i++) {
		uint32_t match = cv_flow_bucket_match(&buckets[bucket], signature);

		for (; match != 0; match &= match - 1) {
			const uint32_t slot =
				buckets[bucket].slot[__builtin_ctz(match)] & ~CV_FLOW_SECOND;
			const uint32_t index = slot >> 1;

			// It may lead anywhere.
			if (index < table->max && deadlines[index] != 0 &&
				cv_flow_has_key((struct cv_flow *)(uintptr_t)there(
							it, cv_flow_at(table, index)),
					slot & 1, v6, key))
				return index;
		}
		bucket = cv_flow_other_bucket(bucket, signature, table->buckets_count);
	}
	return CV_FLOW_NONE;
}

uint32_t cv_flow_restore_for(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6,
	const union cv_flow_key *key, uint64_t hash)
{
	struct cv_flow_restoring *it = zone->restoring;
	const uint32_t from = find_there(it, v6, key);

	if (from == CV_FLOW_NONE || !claim(it, v6, from))
		return CV_FLOW_NONE;
	it->worker = worker;
	restore_batch(it, v6, &from, 1);
	cv_flow_count(zone);
	return cv_flow_table_find(&zone->table[v6], key, hash);
}

bool cv_flow_restore_needs_room(const struct cv_flow_zone *zone, bool v6)
{
	return zone->table[v6].used + zone->restoring->left[v6] >= zone->table[v6].max;
}
