// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// FLOW_MOD: entries added, modified, deleted, and put into effect.
#include <time.h>

#include "daemon/openflow/session.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint8_t cv_of_table_of(const struct cv_of_switch *of, uint32_t key)
{
	for (unsigned i = 0; i < of->node->tables_count; i++)
		if (of->node->ports[i] == key >> 26)
			return (uint8_t)i;
	return CV_OF_ALL_TABLES;
}

bool cv_of_is_selected(const struct cv_of_switch *of, const struct cv_of_change *selection,
	const struct cv_of_entry *entry)
{
	const struct cv_of_match match = cv_of_match_of(entry->key);
	const struct cv_of_group *group;

	if (selection->table != CV_OF_ALL_TABLES &&
		of->node->ports[selection->table] != entry->key >> 26)
		return false;
	if (selection->match.kind != CV_SCID_NONE &&
		(selection->match.kind != match.kind || selection->match.id != match.id))
		return false;
	if (((entry->cookie ^ selection->cookie) & selection->cookie_mask) != 0)
		return false;
	group = cv_of_group_of(&of->entries, entry);
	if (selection->out_port != CV_OF_ANY &&
		(group != NULL || selection->out_port != entry->next_hop + 1u))
		return false;
	return selection->out_group == CV_OF_ANY ||
	       (group != NULL && selection->out_group == group->id);
}

// The priority of the entry that decides for a key, -1 without.
static int best_priority(const struct cv_of_entries *entries, uint32_t key)
{
	const uint32_t best = cv_of_entries_best(entries, key);

	return best != CV_OF_NONE ? entries->all[best].priority : -1;
}

static bool matches_all(uint32_t key)
{
	return cv_of_match_of(key).kind == CV_SCID_NONE;
}

// Has the node follow what is now in the entries. before: the priority that decided for the key. An
// entry that matches all takes the place of all those of lower priority, and gives it back.
static int follow(struct cv_of_switch *of, uint32_t key, int before)
{
	const bool all = matches_all(key) && best_priority(&of->entries, key) != before;

	of->changed = true;
	return of->node->change(of->node->of, key, all);
}

// Tells a controller that an entry is no longer there. false: it has not read what it was told before.
static void tell_removed(struct cv_of_session *session, const struct cv_of_entry *entry,
	uint8_t table, enum cv_of_removed why)
{
	const uint64_t ns = now_ns() - entry->since_ns;
	const struct cv_of_match match = cv_of_match_of(entry->key);
	uint8_t bytes[CV_OF_MATCH_BYTES];
	const size_t length = 48 + cv_of_write_match(bytes, &match);
	uint8_t *at;

	if ((session->async[session->role == CV_OF_SLAVE ? 5 : 4] >> why & 1) == 0)
		return;
	at = cv_of_reply(session, CV_OF_FLOW_REMOVED, ++session->xid, length);
	if (at == NULL)
		return;
	cv_of_put64(at + 8, entry->cookie);
	cv_of_put16(at + 16, entry->priority);
	at[18] = (uint8_t)why;
	at[19] = table;
	cv_of_put32(at + 20, (uint32_t)(ns / 1000000000u));
	cv_of_put32(at + 24, (uint32_t)(ns % 1000000000u));
	cv_of_put16(at + 28, entry->idle);
	cv_of_put16(at + 30, entry->hard);
	cv_of_put64(at + 32, CV_OF_UNKNOWN_COUNT);
	cv_of_put64(at + 40, CV_OF_UNKNOWN_COUNT);
	memcpy(at + 48, bytes, length - 48);
}

void cv_of_remove(struct cv_of_switch *of, uint32_t number, enum cv_of_removed why)
{
	const struct cv_of_entry entry = of->entries.all[number];
	const int before = best_priority(&of->entries, entry.key);

	cv_of_entries_remove(&of->entries, number);
	// It takes no memory to remove one; what matches all may take a new table, and without memory
	// for that the one before stays until the next change.
	follow(of, entry.key, before);
	for (unsigned i = 0; (entry.flags & CV_OF_SEND_REMOVED) != 0 && i < CV_OF_SESSIONS_MAX; i++)
		if (of->sessions[i] != NULL && of->sessions[i]->greeted)
			tell_removed(of->sessions[i], &entry, cv_of_table_of(of, entry.key), why);
}

// Whether an entry of the same priority matches a packet that this one would match.
static bool overlaps(const struct cv_of_entries *entries, uint32_t key, uint16_t priority)
{
	const uint32_t port = key >> 26;

	if (cv_of_entries_find(entries, key, priority) != CV_OF_NONE)
		return true;
	if (!matches_all(key))
		return cv_of_entries_find(entries, cv_next_hop_key((uint8_t)port, CV_SCID_NONE, 0),
			       priority) != CV_OF_NONE;
	for (uint32_t i = 0; entries->of_port[port] > 0 && i < entries->end; i++)
		if (entries->all[i].there && entries->all[i].key >> 26 == port &&
			entries->all[i].priority == priority)
			return true;
	return false;
}

static unsigned count_priorities(const struct cv_of_entries *entries, uint32_t key)
{
	unsigned count = 0;

	for (uint32_t i = cv_of_entries_best(entries, key); i != CV_OF_NONE;
		i = entries->all[i].lower)
		count++;
	return count;
}

// Of a next hop; a group needs none: its entries go with it.
static uint16_t serial_of(const struct cv_of_switch *of, uint16_t next_hop)
{
	return next_hop < CV_NEXT_HOPS_MAX ? of->ports[next_hop].serial : 0;
}

static uint32_t add(struct cv_of_switch *of, const struct cv_of_change *change, uint16_t next_hop)
{
	struct cv_of_entries *entries = &of->entries;
	const uint64_t now = now_ns();
	const struct cv_of_entry entry = {
		.key = cv_of_key_in(of, change->table, &change->match),
		.priority = change->priority,
		.next_hop = next_hop,
		.serial = serial_of(of, next_hop),
		.cookie = change->cookie,
		.since_ns = now,
		.hard = change->hard,
		.flags = change->flags,
	};
	const int before = best_priority(entries, entry.key);
	uint32_t number;

	if ((change->flags & CV_OF_CHECK_OVERLAP) != 0 &&
		overlaps(entries, entry.key, entry.priority))
		return CV_OF_OVERLAP;
	number = cv_of_entries_find(entries, entry.key, entry.priority);
	if (number != CV_OF_NONE)
		cv_of_entries_remove(entries, number);
	else if (count_priorities(entries, entry.key) >= CV_OF_PRIORITIES_MAX)
		return CV_OF_TABLE_FULL;
	number = cv_of_entries_add(entries, &entry, now / 1000000000u);
	if (number == CV_OF_NONE)
		return CV_OF_TABLE_FULL;
	if (follow(of, entry.key, before) == 0)
		return 0;
	cv_of_entries_remove(entries, number);
	return CV_OF_TABLE_FULL;
}

static void modify_one(struct cv_of_switch *of, uint32_t number, uint16_t next_hop)
{
	struct cv_of_entry *entry = &of->entries.all[number];

	entry->next_hop = next_hop;
	entry->serial = serial_of(of, next_hop);
	follow(of, entry->key, best_priority(&of->entries, entry->key));
}

// Those of one key that are selected. remove: deletes them, else they get the next hop.
static void change_key(struct cv_of_switch *of, const struct cv_of_change *change, uint32_t key,
	bool remove, uint16_t next_hop)
{
	uint32_t next;

	for (uint32_t i = cv_of_entries_best(&of->entries, key); i != CV_OF_NONE; i = next) {
		next = of->entries.all[i].lower;
		if (!cv_of_is_selected(of, change, &of->entries.all[i]))
			continue;
		if (remove)
			cv_of_remove(of, i, CV_OF_REMOVED_DELETE);
		else
			modify_one(of, i, next_hop);
	}
}

static void modify(struct cv_of_switch *of, const struct cv_of_change *change, uint16_t next_hop)
{
	if (change->match.kind != CV_SCID_NONE) {
		change_key(of, change, cv_of_key_in(of, change->table, &change->match), false,
			next_hop);
		return;
	}
	for (uint32_t i = 0; i < of->entries.end; i++)
		if (of->entries.all[i].there && cv_of_is_selected(of, change, &of->entries.all[i]))
			modify_one(of, i, next_hop);
}

static bool is_in(const struct cv_of_change *change, unsigned table)
{
	return change->table == CV_OF_ALL_TABLES || change->table == table;
}

static void delete_strict(struct cv_of_switch *of, const struct cv_of_change *change)
{
	for (unsigned table = 0; table < of->node->tables_count; table++) {
		const uint32_t number = cv_of_entries_find(
			&of->entries, cv_of_key_in(of, table, &change->match), change->priority);

		if (is_in(change, table) && number != CV_OF_NONE &&
			cv_of_is_selected(of, change, &of->entries.all[number]))
			cv_of_remove(of, number, CV_OF_REMOVED_DELETE);
	}
}

static void modify_strict(
	struct cv_of_switch *of, const struct cv_of_change *change, uint16_t next_hop)
{
	const uint32_t number = cv_of_entries_find(
		&of->entries, cv_of_key_in(of, change->table, &change->match), change->priority);

	if (number != CV_OF_NONE && cv_of_is_selected(of, change, &of->entries.all[number]))
		modify_one(of, number, next_hop);
}

// One table, or a number of entries, at a time: each may be told of.
bool cv_of_go_on_deleting(struct cv_of_session *session, struct cv_of_work *work)
{
	const struct cv_of_change *change = &work->selection;
	struct cv_of_switch *of = session->of;

	if (change->match.kind != CV_SCID_NONE) {
		for (; work->table < of->node->tables_count; work->table++) {
			if (cv_of_room(session) < CV_OF_PRIORITIES_MAX * CV_OF_REMOVED_BYTES)
				return false;
			if (is_in(change, work->table))
				change_key(of, change,
					cv_of_key_in(of, work->table, &change->match), true, 0);
		}
		return true;
	}
	for (; work->number < of->entries.end; work->number++) {
		if (cv_of_room(session) < CV_OF_REMOVED_BYTES)
			return false;
		if (of->entries.all[work->number].there &&
			cv_of_is_selected(of, change, &of->entries.all[work->number]))
			cv_of_remove(of, work->number, CV_OF_REMOVED_DELETE);
	}
	return true;
}

static uint32_t check(const struct cv_of_session *session, const struct cv_of_change *change)
{
	const bool deletes = change->command >= CV_OF_DELETE;

	if (session->role == CV_OF_SLAVE)
		return CV_OF_IS_SLAVE;
	if (change->table >= session->of->node->tables_count &&
		!(deletes && change->table == CV_OF_ALL_TABLES))
		return CV_OF_FLOW_TABLE;
	return 0;
}

uint32_t cv_of_change(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	struct cv_of_switch *of = session->of;
	struct cv_of_change change;
	uint16_t next_hop = 0;
	uint32_t why = cv_of_parse_change(message, length, &change);

	if (why == 0)
		why = check(session, &change);
	if (why == 0 && change.command < CV_OF_DELETE) {
		change.out_port = change.out_group = CV_OF_ANY; // they select what is deleted
		why = cv_of_switch_resolve(of, &change.to, &next_hop);
	}
	if (why != 0)
		return why;
	switch ((enum cv_of_command)change.command) {
	case CV_OF_ADD:
		why = add(of, &change, next_hop);
		break;
	case CV_OF_MODIFY:
		modify(of, &change, next_hop);
		break;
	case CV_OF_MODIFY_STRICT:
		modify_strict(of, &change, next_hop);
		break;
	case CV_OF_DELETE:
		session->work = (struct cv_of_work){.kind = CV_OF_DELETION, .selection = change};
		cv_of_go_on(session);
		break;
	case CV_OF_DELETE_STRICT:
		delete_strict(of, &change);
		break;
	}
	if (why == 0)
		cv_of_count(&of->counters.changes, 1);
	__atomic_store_n(&of->counters.entries, of->entries.count, __ATOMIC_RELAXED);
	return why;
}

void cv_of_go_on(struct cv_of_session *session)
{
	struct cv_of_work *work = &session->work;
	const bool done = work->kind == CV_OF_DELETION      ? cv_of_go_on_deleting(session, work)
			  : work->kind == CV_OF_TELL_GROUPS ? cv_of_go_on_groups(session, work)
							    : cv_of_go_on_telling(session, work);

	if (done)
		work->kind = CV_OF_NO_WORK;
	__atomic_store_n(
		&session->of->counters.entries, session->of->entries.count, __ATOMIC_RELAXED);
}
