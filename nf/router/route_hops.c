// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/route_hops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cv_route_hops_init(
	struct cv_route_hops *hops, struct cv_network *network, const struct cv_fib *fib)
{
	*hops = (struct cv_route_hops){.network = network, .fib = fib};
	hops->users = calloc(network->table.entries_count + CV_FIB_GROUPS, sizeof(*hops->users));
	return hops->users != NULL ? 0 : -ENOMEM;
}

void cv_route_hops_free(struct cv_route_hops *hops)
{
	free(hops->users);
	hops->users = NULL;
}

static bool is_neighbour(const struct cv_route_hops *hops, uint32_t adjacency)
{
	return adjacency - hops->fib->neighbours_at < hops->network->table.entries_count;
}

static bool is_group(const struct cv_route_hops *hops, uint32_t adjacency)
{
	return adjacency - hops->fib->groups_at < CV_FIB_GROUPS;
}

// The count of users; NULL: the adjacency is always there.
static uint32_t *users_of(const struct cv_route_hops *hops, uint32_t adjacency)
{
	if (is_neighbour(hops, adjacency))
		return &hops->users[adjacency - hops->fib->neighbours_at];
	if (is_group(hops, adjacency))
		return &hops->users[hops->network->table.entries_count + adjacency -
				    hops->fib->groups_at];
	return NULL;
}

void cv_route_hops_keep(struct cv_route_hops *hops, uint32_t adjacency)
{
	uint32_t *users = users_of(hops, adjacency);

	if (users != NULL)
		++*users;
}

void cv_route_hops_release(struct cv_route_hops *hops, uint32_t adjacency)
{
	uint32_t *users = users_of(hops, adjacency);
	struct cv_adjacency *group = &hops->fib->adjacency[adjacency];

	if (users == NULL || --*users > 0)
		return;
	if (is_neighbour(hops, adjacency)) {
		cv_neighbour_table_unpin(
			&hops->network->table, adjacency - hops->fib->neighbours_at);
		return;
	}
	for (uint32_t i = 0; i < group->count; i++)
		cv_route_hops_release(hops, hops->fib->path[group->first + i]);
	group->count = 0;
}

// The port whose interface this is, or -1.
static int port_of(const struct cv_route_hops *hops, int interface)
{
	for (unsigned port = 0; port < hops->network->ports_count && interface > 0; port++)
		if (hops->interface[port] == interface)
			return (int)port;
	return -1;
}

// One next hop. CV_FIB_AT_UNREACHABLE: it cannot be followed.
static uint32_t take_one(struct cv_route_hops *hops, const struct cv_kernel_next_hop *hop)
{
	const int port = port_of(hops, hop->interface);
	const struct cv_neighbour_key key = {.address = hop->via, .port = (uint8_t)port};
	uint32_t at;

	if (port < 0)
		return CV_FIB_AT_UNREACHABLE;
	if (!hop->has_via)
		return CV_FIB_AT_LINKS + (uint32_t)port;
	at = cv_fib_find(hops->fib, &hop->via);
	if (hops->fib->adjacency[at].outcome == CV_FIB_FORWARD &&
		hops->fib->adjacency[at].port == port)
		return at; // its MAC address is given
	if (!cv_network_on_link(hops->network, &hop->via, (unsigned)port) ||
		cv_network_own(hops->network, &hop->via, (unsigned)port))
		return CV_FIB_AT_UNREACHABLE;
	at = cv_neighbour_table_pin(&hops->network->table, &key);
	if (at == CV_NEIGHBOUR_NONE)
		return CV_FIB_AT_UNREACHABLE;
	at += hops->fib->neighbours_at;
	cv_route_hops_keep(hops, at);
	return at;
}

// The group of these members, in this order: one that there is, or a free one, which gets them.
static uint32_t find_group(struct cv_route_hops *hops, const uint32_t *member, uint32_t count)
{
	uint32_t free = 0;

	for (uint32_t at = hops->fib->groups_at; at < hops->fib->groups_at + CV_FIB_GROUPS; at++) {
		const struct cv_adjacency *group = &hops->fib->adjacency[at];

		if (group->count == 0)
			free = free == 0 ? at : free;
		else if (group->count == count && memcmp(&hops->fib->path[group->first], member,
							  count * sizeof(*member)) == 0)
			return at;
	}
	return free;
}

static uint32_t take_group(struct cv_route_hops *hops, const uint32_t *member, uint32_t count)
{
	const uint32_t at = find_group(hops, member, count);
	struct cv_adjacency *group = &hops->fib->adjacency[at];

	if (at == 0)
		return CV_FIB_AT_UNREACHABLE; // there are CV_FIB_GROUPS others
	if (group->count == 0) {
		group->first = (at - hops->fib->groups_at) * CV_ROUTE_PATHS_MAX;
		group->count = count;
		memcpy(&hops->fib->path[group->first], member, count * sizeof(*member));
		for (uint32_t i = 0; i < count; i++)
			cv_route_hops_keep(hops, member[i]);
	}
	cv_route_hops_keep(hops, at);
	return at;
}

// How often a next hop stands in its group: by its weight, where that is little enough in all.
static uint32_t shares(const struct cv_kernel_route *route, uint32_t i)
{
	uint32_t all = 0;

	for (uint32_t k = 0; k < route->hops; k++)
		all += route->hop[k].weight;
	return all <= CV_ROUTE_PATHS_MAX ? route->hop[i].weight : 1;
}

static uint32_t take_unicast(struct cv_route_hops *hops, const struct cv_kernel_route *route)
{
	uint32_t member[CV_ROUTE_PATHS_MAX], count = 0, at = CV_FIB_AT_UNREACHABLE;
	bool same = true;

	for (uint32_t i = 0; i < route->hops; i++) {
		const uint32_t times = shares(route, i);

		at = route->hop[i].dead ? CV_FIB_AT_UNREACHABLE : take_one(hops, &route->hop[i]);
		for (uint32_t k = 0; at != CV_FIB_AT_UNREACHABLE && k < times; k++) {
			if (k > 0)
				cv_route_hops_keep(hops, at);
			member[count++] = at;
			same = same && at == member[0];
		}
	}
	if (count == 0)
		return CV_FIB_AT_UNREACHABLE;
	at = same ? member[0] : take_group(hops, member, count);
	for (uint32_t i = same ? 1 : 0; i < count; i++)
		cv_route_hops_release(hops, member[i]);
	return at;
}

uint32_t cv_route_hops_take(struct cv_route_hops *hops, const struct cv_kernel_route *route)
{
	switch (route->kind) {
	case CV_KERNEL_UNICAST:
		return take_unicast(hops, route);
	case CV_KERNEL_LOCAL:
		return CV_FIB_AT_LOCAL;
	case CV_KERNEL_BLACKHOLE:
		return CV_FIB_AT_BLACKHOLE;
	case CV_KERNEL_PROHIBIT:
		return CV_FIB_AT_PROHIBIT;
	default:
		return CV_FIB_AT_UNREACHABLE;
	}
}
