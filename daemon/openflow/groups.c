// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// GROUP_MOD: next hops of which each flow has one (OFPGT_SELECT), and what is asked about them.
#include <time.h>

#include "daemon/openflow/session.h"

#define DESC_BYTES 8u // before the buckets
#define DESC_BUCKET_BYTES 32u // with its action, output
#define STATS_BYTES 40u
#define STATS_BUCKET_BYTES 16u
#define FEATURES_BYTES 40u
#define PART_BYTES 32768u // of groups in an answer

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int cv_of_group_find(const struct cv_of_entries *entries, uint32_t id)
{
	for (unsigned i = 0; i < CV_OF_GROUPS_MAX; i++)
		if (entries->groups[i].there && entries->groups[i].id == id)
			return (int)i;
	return -1;
}

// Adds a bucket where its next hop's place is.
static uint32_t insert(
	struct cv_of_group *group, uint16_t next_hop, uint16_t serial, uint16_t weight)
{
	struct cv_spread_member *members = group->of.members;
	unsigned at = group->of.members_count;

	for (unsigned i = 0; i < group->of.members_count; i++)
		if (members[i].next_hop == next_hop)
			return CV_OF_BAD_BUCKET;
	for (; at > 0 && members[at - 1].next_hop > next_hop; at--) {
		members[at] = members[at - 1];
		group->serials[at] = group->serials[at - 1];
	}
	members[at] = (struct cv_spread_member){.next_hop = next_hop, .weight = weight};
	group->serials[at] = serial;
	group->of.members_count++;
	return 0;
}

// The group that a message asks for. 0, or why it is refused.
static uint32_t make_group(const struct cv_of_switch *of, const struct cv_of_group_change *change,
	struct cv_of_group *group)
{
	*group = (struct cv_of_group){.id = change->id, .there = true, .since_ns = now_ns()};
	for (unsigned i = 0; i < change->buckets_count; i++) {
		uint16_t next_hop;
		uint32_t why = cv_of_switch_resolve(of, &change->buckets[i].to, &next_hop);

		if (why == 0)
			why = insert(group, next_hop, of->ports[next_hop].serial,
				change->buckets[i].weight);
		if (why != 0)
			return why;
	}
	return 0;
}

// Removes the entries of groups that are no longer there: in one walk, however many those are.
static void sweep(struct cv_of_switch *of)
{
	const struct cv_of_entries *entries = &of->entries;

	for (uint32_t i = 0; i < entries->end; i++) {
		const struct cv_of_entry *entry = &entries->all[i];

		if (entry->there && cv_of_group_of(entries, entry) != NULL &&
			!cv_of_group_of(entries, entry)->there)
			cv_of_remove(of, i, CV_OF_REMOVED_GROUP);
	}
}

static void delete_groups(struct cv_of_switch *of, uint32_t id)
{
	for (unsigned i = 0; i < CV_OF_GROUPS_MAX; i++)
		if (id == CV_OF_ALL_GROUPS || of->entries.groups[i].id == id)
			of->entries.groups[i].there = false;
	sweep(of);
}

static int find_free(const struct cv_of_entries *entries)
{
	for (unsigned i = 0; i < CV_OF_GROUPS_MAX; i++)
		if (!entries->groups[i].there)
			return (int)i;
	return -1;
}

// Adds a group, or gives one other buckets: in a new table, which workers go over to.
static uint32_t put(struct cv_of_switch *of, const struct cv_of_group_change *change)
{
	const bool adds = change->command == CV_OF_GROUP_ADD;
	const int there = cv_of_group_find(&of->entries, change->id);
	const int index = adds ? find_free(&of->entries) : there;
	struct cv_of_group group, before;
	uint32_t why;

	if (adds && there >= 0)
		return CV_OF_GROUP_EXISTS;
	if (index < 0)
		return adds ? CV_OF_OUT_OF_GROUPS : CV_OF_UNKNOWN_GROUP;
	why = make_group(of, change, &group);
	if (why != 0)
		return why;
	before = of->entries.groups[index];
	if (!adds)
		group.since_ns = before.since_ns;
	of->entries.groups[index] = group;
	of->changed = true;
	if (of->node->change(of->node->of, 0, true) == 0)
		return 0;
	of->entries.groups[index] = before;
	return CV_OF_OUT_OF_GROUPS;
}

uint32_t cv_of_change_group(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	struct cv_of_group_change change;
	uint32_t why = cv_of_parse_group(message, length, &change);

	if (why == 0 && session->role == CV_OF_SLAVE)
		why = CV_OF_IS_SLAVE;
	if (why != 0)
		return why;
	if (change.command != CV_OF_GROUP_DELETE)
		why = put(session->of, &change);
	else
		delete_groups(session->of, change.id);
	if (why == 0)
		cv_of_count(&session->of->counters.changes, 1);
	return why;
}

void cv_of_groups_forget(struct cv_of_switch *of, uint16_t next_hop)
{
	for (unsigned i = 0; i < CV_OF_GROUPS_MAX; i++) {
		struct cv_of_group *group = &of->entries.groups[i];
		unsigned kept = 0;

		for (unsigned j = 0; group->there && j < group->of.members_count; j++) {
			if (group->of.members[j].next_hop == next_hop)
				continue;
			group->of.members[kept] = group->of.members[j];
			group->serials[kept++] = group->serials[j];
		}
		group->of.members_count = (uint16_t)kept;
		group->there &= kept > 0;
	}
	sweep(of);
}

static void tell_features(struct cv_of_session *session, uint32_t xid)
{
	uint8_t *at = cv_of_begin_part(session, xid, CV_OF_GROUP_FEATURES, FEATURES_BYTES);

	if (at == NULL)
		return;
	cv_of_put32(at + CV_OF_BODY, 1u << CV_OF_SELECT);
	cv_of_put32(at + CV_OF_BODY + 4, 1); // buckets have weights
	cv_of_put32(at + CV_OF_BODY + 8 + 4 * CV_OF_SELECT, CV_OF_GROUPS_MAX);
	cv_of_put32(at + CV_OF_BODY + 24 + 4 * CV_OF_SELECT, 1u << 0 | 1u << 25);
}

static size_t write_desc(uint8_t *at, const struct cv_of_group *group)
{
	size_t bytes = DESC_BYTES;

	at[2] = CV_OF_SELECT;
	cv_of_put32(at + 4, group->id);
	for (unsigned i = 0; i < group->of.members_count; i++, bytes += DESC_BUCKET_BYTES) {
		uint8_t *bucket = at + bytes;

		cv_of_put16(bucket, DESC_BUCKET_BYTES);
		cv_of_put16(bucket + 2, group->of.members[i].weight);
		cv_of_put32(bucket + 4, CV_OF_ANY);
		cv_of_put32(bucket + 8, CV_OF_ANY);
		cv_of_put16(bucket + 18, 16); // an output
		cv_of_put32(bucket + 20, group->of.members[i].next_hop + 1u);
		cv_of_put16(bucket + 24, UINT16_MAX);
	}
	cv_of_put16(at, (uint16_t)bytes);
	return bytes;
}

// How many entries name each group.
static void count_entries(const struct cv_of_entries *entries, uint32_t counts[CV_OF_GROUPS_MAX])
{
	memset(counts, 0, CV_OF_GROUPS_MAX * sizeof(counts[0]));
	for (uint32_t i = 0; i < entries->end; i++)
		if (entries->all[i].there && cv_next_hop_is_spread(entries->all[i].next_hop))
			counts[entries->all[i].next_hop - CV_NEXT_HOP_GROUP]++;
}

static size_t write_stats(
	uint8_t *at, const struct cv_of_group *group, uint32_t entries_count, uint64_t now)
{
	const uint64_t ns = now - group->since_ns;
	const size_t bytes = STATS_BYTES + (size_t)group->of.members_count * STATS_BUCKET_BYTES;

	memset(at + 16, 0xff, bytes - 16); // packets of groups are not counted
	cv_of_put16(at, (uint16_t)bytes);
	cv_of_put32(at + 4, group->id);
	cv_of_put32(at + 8, entries_count);
	cv_of_put32(at + 32, (uint32_t)(ns / 1000000000u));
	cv_of_put32(at + 36, (uint32_t)(ns % 1000000000u));
	return bytes;
}

uint32_t cv_of_tell_groups(struct cv_of_session *session, uint32_t xid, unsigned type,
	const uint8_t *body, size_t length)
{
	if (type == CV_OF_GROUP_FEATURES) {
		tell_features(session, xid);
		return 0;
	}
	if (type == CV_OF_GROUP_STATS && length != 8)
		return CV_OF_BAD_LEN;
	session->work =
		(struct cv_of_work){.kind = CV_OF_TELL_GROUPS, .type = (uint16_t)type, .xid = xid};
	session->work.selection.out_group =
		type == CV_OF_GROUP_STATS ? cv_of_get32(body) : CV_OF_ALL_GROUPS;
	return 0;
}

bool cv_of_go_on_groups(struct cv_of_session *session, struct cv_of_work *work)
{
	static uint8_t part[PART_BYTES]; // one thread
	const struct cv_of_entries *entries = &session->of->entries;
	const uint32_t id = work->selection.out_group;
	const size_t most = DESC_BYTES + CV_SPREAD_MEMBERS_MAX * DESC_BUCKET_BYTES;
	const uint64_t now = now_ns();
	uint32_t counts[CV_OF_GROUPS_MAX];
	size_t used = 0;
	uint8_t *at;

	if (cv_of_room(session) < CV_OF_BODY + PART_BYTES)
		return false;
	memset(part, 0, sizeof(part));
	count_entries(entries, counts);
	for (; work->number < CV_OF_GROUPS_MAX && used + most <= sizeof(part); work->number++) {
		const struct cv_of_group *group = &entries->groups[work->number];

		if (!group->there || (id != CV_OF_ALL_GROUPS && group->id != id))
			continue;
		used += work->type == CV_OF_GROUP_DESC
				? write_desc(part + used, group)
				: write_stats(part + used, group, counts[work->number], now);
	}
	at = cv_of_begin_part(session, work->xid, work->type, used);
	if (at == NULL)
		return true;
	cv_of_put16(at + 10, work->number < CV_OF_GROUPS_MAX ? CV_OF_MORE : 0);
	memcpy(at + CV_OF_BODY, part, used);
	return work->number == CV_OF_GROUPS_MAX;
}
