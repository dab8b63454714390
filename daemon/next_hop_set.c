// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "daemon/next_hop_set.h"

// The outer headers of all next hops. 0 or -EINVAL.
static int make_next_hops(
	const struct cv_next_hop_set *set, struct cv_next_hop *next_hops, struct cv_error *error)
{
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++) {
		const struct cv_plan_next_hop *from = &set->next_hops[i];
		const struct cv_port *port = set->ports[from->port];
		struct cv_outer_config config = from->outer;
		struct cv_error why = {0};

		if (from->name[0] == '\0')
			continue;
		memcpy(config.src_mac, port->mac, sizeof(config.src_mac));
		if (config.mtu > port->mtu) {
			cv_error_set(error, "next hop \"%s\": mtu: %u: port \"%s\" has %u",
				from->name, config.mtu, port->name, port->mtu);
			return -EINVAL;
		}
		if (cv_outer_set(&next_hops[i].outer, &config, &why) != 0) {
			cv_error_set(error, "next hop \"%s\": %s", from->name, why.text);
			return -EINVAL;
		}
		next_hops[i].port = from->port;
		next_hops[i].compressor = from->compressor;
		next_hops[i].wait = from->wait_ns * rte_get_tsc_hz() / 1000000000;
		next_hops[i].id = cv_spread_id(from->name);
		next_hops[i].weight = from->weight;
		next_hops[i].by_addresses = from->by_addresses;
	}
	return 0;
}

// The members of a controller's group that are still those that it meant; none: there is no group.
static struct cv_spread_group valid_members(
	const struct cv_next_hop_set *set, const struct cv_of_group *group)
{
	struct cv_spread_group valid = {.members_count = 0};

	for (unsigned i = 0; group->there && i < group->of.members_count; i++) {
		const struct cv_spread_member *member = &group->of.members[i];

		if (set->next_hops[member->next_hop].name[0] != '\0' &&
			set->serials[member->next_hop] == group->serials[i])
			valid.members[valid.members_count++] = *member;
	}
	return valid;
}

// All groups of controllers, for a table; NULL without memory.
static struct cv_spread_group *valid_groups(const struct cv_next_hop_set *set)
{
	struct cv_spread_group *groups = calloc(CV_OF_GROUPS_MAX, sizeof(*groups));

	for (unsigned i = 0; groups != NULL && i < CV_OF_GROUPS_MAX; i++)
		groups[i] = valid_members(set, &set->entries->groups[i]);
	return groups;
}

// Whether the next hop that a controller meant is still there.
static bool is_valid(const struct cv_next_hop_set *set, const struct cv_of_entry *entry)
{
	const struct cv_of_group *group = cv_of_group_of(set->entries, entry);

	if (group != NULL)
		return valid_members(set, group).members_count > 0;
	return set->next_hops[entry->next_hop].name[0] != '\0' &&
	       set->serials[entry->next_hop] == entry->serial;
}

// The entry that decides for a key, as far as it alone goes. NULL: none.
static const struct cv_of_entry *best(const struct cv_next_hop_set *set, uint32_t key)
{
	uint32_t i = cv_of_entries_best(set->entries, key);

	while (i != CV_OF_NONE && !is_valid(set, &set->entries->all[i]))
		i = set->entries->all[i].lower;
	return i != CV_OF_NONE ? &set->entries->all[i] : NULL;
}

// What the table is to have for a key: a controller's entry, unless one that matches all has a higher
// priority; else the plan's, unless a controller's matches all.
static uint16_t resolve(
	const struct cv_next_hop_set *set, const struct cv_next_hop_table *own, uint32_t key)
{
	const uint32_t rest_key = cv_next_hop_key((uint8_t)(key >> 26), CV_SCID_NONE, 0);
	const struct cv_of_entry *entry = best(set, key), *rest = best(set, rest_key);

	if (entry != NULL && (rest == NULL || entry->priority >= rest->priority))
		return entry->next_hop;
	return rest != NULL ? CV_NEXT_HOP_NONE : cv_next_hop_of_key(own, key);
}

// Entries of a table that is to be made.
struct list {
	struct cv_next_hop_entry *entries;
	uint32_t count;
};

static void add(struct list *list, uint32_t key, uint16_t next_hop)
{
	if (next_hop != CV_NEXT_HOP_NONE)
		list->entries[list->count++] =
			(struct cv_next_hop_entry){.key = key, .next_hop = next_hop};
}

// The plan's next hop of a key, the first one of several.
static uint16_t first_of(const struct cv_next_hop_table *own, uint32_t key)
{
	const uint16_t next_hop = cv_next_hop_of_key(own, key);
	const struct cv_spread *spread = cv_next_hop_spread_at(own, next_hop);

	return spread != NULL ? spread->group.members[0].next_hop : next_hop;
}

// Those of the plan as they are (own NULL), or those of the plan and of controllers.
static void collect(
	const struct cv_next_hop_set *set, const struct cv_next_hop_table *own, struct list *list)
{
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		for (unsigned j = 0; j < set->next_hops[i].keys_count; j++) {
			const uint32_t key = set->next_hops[i].keys[j];

			if (own == NULL)
				add(list, key, (uint16_t)i);
			else if (first_of(own, key) == i)
				add(list, key, resolve(set, own, key));
		}
	for (uint32_t i = 0; own != NULL && i < set->entries->end; i++) {
		const struct cv_of_entry *entry = &set->entries->all[i];

		if (entry->there && cv_of_entries_best(set->entries, entry->key) == i &&
			cv_next_hop_of_key(own, entry->key) == CV_NEXT_HOP_NONE)
			add(list, entry->key, resolve(set, own, entry->key));
	}
}

#define ROOM_LEAST 1024u // keys that a table takes in place, if it takes any
#define ROOM_MOST (CV_NEXT_HOP_KEYS_MAX / 2)

static uint32_t room_for(uint32_t count)
{
	return count < ROOM_LEAST ? ROOM_LEAST : RTE_MIN(count, ROOM_MOST);
}

// own: as above.
static struct cv_next_hop_table *make_table(const struct cv_next_hop_set *set,
	const struct cv_next_hop_table *own, struct cv_error *error)
{
	struct cv_next_hop *next_hops = calloc(CV_NEXT_HOPS_MAX, sizeof(*next_hops));
	struct cv_spread_group *groups = own != NULL ? valid_groups(set) : NULL;
	struct cv_next_hop_table *table = NULL;
	struct list list = {.count = 0};
	size_t count = own != NULL ? set->entries->count : 0;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		count += set->next_hops[i].keys_count;
	list.entries = calloc(count + 1, sizeof(*list.entries));
	if (next_hops == NULL || list.entries == NULL || (own != NULL && groups == NULL)) {
		cv_error_set(error, "no memory for %zu SC-IDs", count);
	} else if (make_next_hops(set, next_hops, error) == 0) {
		collect(set, own, &list);
		table = cv_next_hop_table_build(
			&(struct cv_next_hop_spec){.next_hops = next_hops,
				.next_hops_count = CV_NEXT_HOPS_MAX,
				.entries = list.entries,
				.entries_count = list.count,
				.room = own != NULL ? room_for(list.count) : 0,
				.groups = groups,
				.groups_count = groups != NULL ? CV_OF_GROUPS_MAX : 0,
				.like = own,
				.hash_key = set->hash_key},
			error);
	}
	free(next_hops);
	free(groups);
	free(list.entries);
	return table;
}

static bool are_one_instance(const struct cv_plan_next_hop *a, const struct cv_plan_next_hop *b)
{
	return a->port == b->port && a->outer.nfi == b->outer.nfi &&
	       a->outer.port == b->outer.port && a->outer.version == b->outer.version &&
	       memcmp(a->outer.dst, b->outer.dst, sizeof(a->outer.dst)) == 0;
}

// What next hops that share SC-IDs must be to each other. False with error set.
static bool check_members(
	const struct cv_next_hop_set *set, const struct cv_spread *spread, struct cv_error *error)
{
	for (unsigned i = 0; i < spread->group.members_count; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct cv_plan_next_hop *a =
				&set->next_hops[spread->group.members[j].next_hop];
			const struct cv_plan_next_hop *b =
				&set->next_hops[spread->group.members[i].next_hop];

			if (are_one_instance(a, b)) {
				cv_error_set(error,
					"next hops \"%s\" and \"%s\" share SC-IDs and are one "
					"instance; give them different NFI-IDs, or one of them "
					"more weight and remove the other",
					a->name, b->name);
				return false;
			}
			if (a->by_addresses != b->by_addresses) {
				cv_error_set(error,
					"next hops \"%s\" and \"%s\" share SC-IDs; give them the "
					"same spread",
					a->name, b->name);
				return false;
			}
		}
	return true;
}

static bool check_shared(const struct cv_next_hop_set *set, const struct cv_next_hop_table *own,
	struct cv_error *error)
{
	bool checked[CV_NEXT_HOP_SETS_MAX] = {false};

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		for (unsigned j = 0; j < set->next_hops[i].keys_count; j++) {
			const uint16_t at = cv_next_hop_of_key(own, set->next_hops[i].keys[j]);
			const struct cv_spread *spread = cv_next_hop_spread_at(own, at);

			if (spread == NULL || checked[at - CV_NEXT_HOP_SPREAD])
				continue;
			checked[at - CV_NEXT_HOP_SPREAD] = true;
			if (!check_members(set, spread, error))
				return false;
		}
	return true;
}

// Of the plan's SC-IDs alone. NULL with error set.
static struct cv_next_hop_table *make_own(const struct cv_next_hop_set *set, struct cv_error *error)
{
	struct cv_next_hop_table *table = make_table(set, NULL, error);

	if (table == NULL || check_shared(set, table, error))
		return table;
	cv_next_hop_table_free(table);
	return NULL;
}

// Makes the table for workers, and that of the plan's SC-IDs if it is needed. False with error set.
static bool make_tables(const struct cv_next_hop_set *set, struct cv_next_hop_table **table,
	struct cv_next_hop_table **own, struct cv_error *error)
{
	*table = make_own(set, error);
	*own = NULL;
	if (*table == NULL || set->entries == NULL)
		return *table != NULL;
	*own = *table;
	*table = make_table(set, *own, error);
	if (*table == NULL)
		cv_next_hop_table_free(*own);
	return *table != NULL;
}

// What compresses for a next hop on so many workers. False: no memory.
static bool add_compressor(struct cv_plan_next_hop *next_hop, unsigned workers)
{
	if (next_hop->dictionary == NULL)
		return true;
	next_hop->compressor = cv_compressor_make(next_hop->dictionary, workers);
	return next_hop->compressor != NULL;
}

// A copy for a node of so many workers; it shares the dictionary. False: no memory.
static bool copy_next_hop(
	struct cv_plan_next_hop *to, const struct cv_plan_next_hop *from, unsigned workers)
{
	*to = *from;
	to->compressor = NULL;
	cv_dictionary_hold(to->dictionary);
	to->keys = malloc(from->keys_count * sizeof(*from->keys));
	if (to->keys == NULL)
		return false;
	memcpy(to->keys, from->keys, from->keys_count * sizeof(*from->keys));
	return add_compressor(to, workers);
}

int cv_next_hop_set_init(struct cv_next_hop_set *set, const struct cv_plan *plan,
	struct cv_port *const *ports, struct cv_error *error)
{
	struct cv_next_hop_table *table;

	set->plan = plan;
	set->ports = ports;
	for (unsigned i = 0; i < plan->next_hops_count; i++)
		if (!copy_next_hop(&set->next_hops[i], &plan->next_hops[i], plan->workers_count))
			return -ENOMEM;
	set->hash_key = rte_rand();
	table = make_own(set, error);
	if (table == NULL)
		return -EINVAL;
	return cv_next_hop_rcu_init(&set->table, table, plan->workers_count);
}

void cv_next_hop_set_fini(struct cv_next_hop_set *set)
{
	cv_next_hop_rcu_fini(&set->table);
	cv_next_hop_table_free(set->own);
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		cv_plan_next_hop_free(&set->next_hops[i]);
}

int cv_next_hop_set_attach(
	struct cv_next_hop_set *set, const struct cv_of_entries *entries, struct cv_error *error)
{
	set->own = make_table(set, NULL, error);
	if (set->own == NULL)
		return -ENOMEM;
	set->entries = entries;
	return 0;
}

int cv_next_hop_set_follow(struct cv_next_hop_set *set, uint32_t key, bool all)
{
	struct cv_error error = {0};
	struct cv_next_hop_table *table;

	if (!all &&
		cv_next_hop_table_change(set->table.table, key, resolve(set, set->own, key)) == 0)
		return 0;
	table = make_table(set, set->own, &error);
	if (table == NULL)
		return -ENOMEM;
	cv_next_hop_rcu_replace(&set->table, table);
	return 0;
}

static int find(const struct cv_next_hop_set *set, const char *name)
{
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		if (strcmp(set->next_hops[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

// Puts a next hop at an index and publishes the table; the one before, or the new one, is freed.
static int change(struct cv_next_hop_set *set, int index, struct cv_plan_next_hop *next_hop,
	struct cv_error *error)
{
	struct cv_plan_next_hop before = set->next_hops[index];
	const bool other = strcmp(before.name, next_hop->name) != 0;
	struct cv_next_hop_table *table, *own;

	set->next_hops[index] = *next_hop;
	set->serials[index] += other;
	if (!make_tables(set, &table, &own, error)) {
		set->next_hops[index] = before;
		set->serials[index] -= other;
		cv_plan_next_hop_free(next_hop);
		return -EINVAL;
	}
	cv_next_hop_rcu_replace(&set->table, table);
	cv_next_hop_table_free(set->own);
	set->own = own;
	set->generation++;
	cv_plan_next_hop_free(&before);
	return index;
}

int cv_next_hop_set_put(struct cv_next_hop_set *set, const json_t *object, struct cv_error *error)
{
	const struct cv_where at = cv_where_top("next hop", error);
	struct cv_plan_next_hop next_hop;
	int rc = cv_plan_next_hop_read(&at, object, set->plan->port_names, set->plan->ports_count,
		set->plan->port_convoys, &next_hop);
	int index;

	if (rc != 0)
		return rc;
	index = find(set, next_hop.name);
	if (index < 0)
		index = find(set, "");
	if (index < 0) {
		cv_error_set(error, "next hop \"%s\": there are %d already; remove one",
			next_hop.name, CV_NEXT_HOPS_MAX);
		cv_plan_next_hop_free(&next_hop);
		return -ENOSPC;
	}
	if (!add_compressor(&next_hop, set->plan->workers_count)) {
		cv_error_set(error, "next hop \"%s\": no memory to compress", next_hop.name);
		cv_plan_next_hop_free(&next_hop);
		return -ENOMEM;
	}
	return change(set, index, &next_hop, error);
}

int cv_next_hop_set_remove(struct cv_next_hop_set *set, const char *name, struct cv_error *error)
{
	struct cv_plan_next_hop none = {0};
	int index = name[0] != '\0' ? find(set, name) : -ENOENT;

	if (index < 0) {
		cv_error_set(error, "next hop \"%.64s\": there is none of that name", name);
		return -ENOENT;
	}
	return change(set, index, &none, error);
}

void cv_next_hop_set_rekey(struct cv_next_hop_set *set, uint64_t hash_key)
{
	set->hash_key = hash_key;
	cv_next_hop_table_rekey(set->table.table, hash_key);
	if (set->own != NULL)
		cv_next_hop_table_rekey(set->own, hash_key);
}

// Where a next hop of another plan goes: -1: there is no room.
static int place_for(
	const struct cv_next_hop_set *set, const struct cv_next_hop_set *next, const char *name)
{
	int index = find(set, name);

	// An index that was another's only where there is no other: counters are by index.
	for (unsigned i = 0; index < 0 && i < CV_NEXT_HOPS_MAX; i++)
		if (set->next_hops[i].name[0] == '\0' && next->next_hops[i].name[0] == '\0')
			index = (int)i;
	for (unsigned i = 0; index < 0 && i < CV_NEXT_HOPS_MAX; i++)
		if (next->next_hops[i].name[0] == '\0')
			index = (int)i;
	return index;
}

struct cv_next_hop_set *cv_next_hop_set_prepare(
	const struct cv_next_hop_set *set, const struct cv_plan *plan, struct cv_error *error)
{
	struct cv_next_hop_set *next = calloc(1, sizeof(*next));
	bool whole = next != NULL;

	if (next != NULL)
		*next = (struct cv_next_hop_set){.plan = plan,
			.ports = set->ports,
			.entries = set->entries,
			.hash_key = set->hash_key};
	for (unsigned i = 0; whole && i < plan->next_hops_count; i++)
		if (find(set, plan->next_hops[i].name) >= 0)
			whole = copy_next_hop(&next->next_hops[find(set, plan->next_hops[i].name)],
				&plan->next_hops[i], plan->workers_count);
	for (unsigned i = 0; whole && i < plan->next_hops_count; i++)
		if (find(set, plan->next_hops[i].name) < 0)
			whole = copy_next_hop(
				&next->next_hops[place_for(set, next, plan->next_hops[i].name)],
				&plan->next_hops[i], plan->workers_count);
	for (unsigned i = 0; whole && i < CV_NEXT_HOPS_MAX; i++)
		next->serials[i] =
			(uint16_t)(set->serials[i] +
				   (strcmp(set->next_hops[i].name, next->next_hops[i].name) != 0));
	if (whole && make_tables(next, &next->prepared, &next->own, error))
		return next;
	cv_error_set(error, "out of memory"); // unless an error says more
	cv_next_hop_set_discard(next);
	return NULL;
}

void cv_next_hop_set_exchange(struct cv_next_hop_set *set, struct cv_next_hop_set *next)
{
	const struct cv_plan *plan = set->plan;

	cv_next_hop_rcu_replace(&set->table, next->prepared);
	next->prepared = NULL;
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++) {
		const struct cv_plan_next_hop before = set->next_hops[i];

		set->next_hops[i] = next->next_hops[i];
		next->next_hops[i] = before;
		set->serials[i] = next->serials[i];
	}
	cv_next_hop_table_free(set->own);
	set->own = next->own;
	next->own = NULL;
	set->generation++;
	set->plan = next->plan;
	next->plan = plan;
}

void cv_next_hop_set_discard(struct cv_next_hop_set *next)
{
	for (unsigned i = 0; next != NULL && i < CV_NEXT_HOPS_MAX; i++)
		cv_plan_next_hop_free(&next->next_hops[i]);
	if (next != NULL) {
		cv_next_hop_table_free(next->prepared);
		cv_next_hop_table_free(next->own);
	}
	free(next);
}
