// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	}
	return 0;
}

static struct cv_next_hop_table *make_table(
	const struct cv_next_hop_set *set, struct cv_error *error)
{
	struct cv_next_hop *next_hops = calloc(CV_NEXT_HOPS_MAX, sizeof(*next_hops));
	struct cv_next_hop_entry *entries;
	struct cv_next_hop_table *table = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		count += set->next_hops[i].keys_count;
	entries = calloc(count + 1, sizeof(*entries));
	count = 0;
	for (unsigned i = 0; entries != NULL && i < CV_NEXT_HOPS_MAX; i++)
		for (unsigned j = 0; j < set->next_hops[i].keys_count; j++)
			entries[count++] = (struct cv_next_hop_entry){
				.key = set->next_hops[i].keys[j], .next_hop = (uint16_t)i};
	if (next_hops == NULL || entries == NULL)
		cv_error_set(error, "no memory for %u SC-IDs", count);
	else if (make_next_hops(set, next_hops, error) == 0)
		table = cv_next_hop_table_make(next_hops, CV_NEXT_HOPS_MAX, entries, count, 0, error);
	free(next_hops);
	free(entries);
	return table;
}

// A copy that shares nothing. False: no memory.
static bool copy_next_hop(struct cv_plan_next_hop *to, const struct cv_plan_next_hop *from)
{
	*to = *from;
	to->keys = malloc(from->keys_count * sizeof(*from->keys));
	if (to->keys == NULL)
		return false;
	memcpy(to->keys, from->keys, from->keys_count * sizeof(*from->keys));
	return true;
}

int cv_next_hop_set_init(struct cv_next_hop_set *set, const struct cv_plan *plan,
	struct cv_port *const *ports, struct cv_error *error)
{
	struct cv_next_hop_table *table;

	set->plan = plan;
	set->ports = ports;
	for (unsigned i = 0; i < plan->next_hops_count; i++)
		if (!copy_next_hop(&set->next_hops[i], &plan->next_hops[i]))
			return -ENOMEM;
	table = make_table(set, error);
	if (table == NULL)
		return -EINVAL;
	return cv_next_hop_rcu_init(&set->table, table, plan->workers_count);
}

void cv_next_hop_set_fini(struct cv_next_hop_set *set)
{
	cv_next_hop_rcu_fini(&set->table);
	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		cv_plan_next_hop_free(&set->next_hops[i]);
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
	struct cv_next_hop_table *table;

	set->next_hops[index] = *next_hop;
	table = make_table(set, error);
	if (table == NULL) {
		set->next_hops[index] = before;
		cv_plan_next_hop_free(next_hop);
		return -EINVAL;
	}
	cv_next_hop_rcu_replace(&set->table, table);
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
		*next = (struct cv_next_hop_set){.plan = plan, .ports = set->ports};
	for (unsigned i = 0; whole && i < plan->next_hops_count; i++)
		if (find(set, plan->next_hops[i].name) >= 0)
			whole = copy_next_hop(&next->next_hops[find(set, plan->next_hops[i].name)],
				&plan->next_hops[i]);
	for (unsigned i = 0; whole && i < plan->next_hops_count; i++)
		if (find(set, plan->next_hops[i].name) < 0)
			whole = copy_next_hop(
				&next->next_hops[place_for(set, next, plan->next_hops[i].name)],
				&plan->next_hops[i]);
	if (whole)
		next->prepared = make_table(next, error);
	if (whole && next->prepared != NULL)
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
	}
	set->plan = next->plan;
	next->plan = plan;
}

void cv_next_hop_set_discard(struct cv_next_hop_set *next)
{
	for (unsigned i = 0; next != NULL && i < CV_NEXT_HOPS_MAX; i++)
		cv_plan_next_hop_free(&next->next_hops[i]);
	if (next != NULL && next->prepared != NULL)
		cv_next_hop_table_free(next->prepared);
	free(next);
}
