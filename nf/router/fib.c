// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_rib.h>

#include "nf/router/fib.h"
#include "dpdk/compat.h"

// rte_lpm6 keeps 21 bits of a next hop; rte_fib keeps 15 or 31.
#define ADJACENCIES_MAX (1u << 21)
#define SMALL_FIB_MAX 32767u

// One entry of a table: a route, or a neighbour on a connected prefix.
struct entry {
	struct cv_prefix prefix;
	uint32_t adjacency;
};

// What is decided before the tables are made: their sizes follow from it.
struct builder {
	const struct cv_routes *routes;
	struct entry *entry;
	size_t entries;
	uint32_t *by_neighbour; // the adjacency last made for each neighbour; 0: none
	uint32_t adjacencies_room;
};

static int out_of_memory(const struct builder *builder, struct cv_error *error)
{
	cv_error_set(error, "%s: no memory for %zu routes", builder->routes->env->name,
		builder->routes->routes);
	return -ENOMEM;
}

// The adjacency of a neighbour behind a port, new if need be. Returns 0: no memory.
static uint32_t adjacency_of(struct cv_fib *fib, struct builder *builder,
	const struct cv_neighbour *neighbour, uint8_t port)
{
	uint32_t *known = &builder->by_neighbour[neighbour - builder->routes->neighbour];
	struct cv_adjacency *larger;

	if (*known != 0 && fib->adjacency[*known].port == port)
		return *known;
	if (fib->adjacencies == builder->adjacencies_room) {
		larger = realloc(fib->adjacency, builder->adjacencies_room * 2 * sizeof(*larger));
		if (larger == NULL)
			return 0;
		fib->adjacency = larger;
		builder->adjacencies_room *= 2;
	}
	*known = fib->adjacencies++;
	memcpy(fib->adjacency[*known].mac, neighbour->mac, 6);
	fib->adjacency[*known].port = port;
	fib->adjacency[*known].outcome = CV_FIB_FORWARD;
	return *known;
}

static int add_route(struct cv_fib *fib, struct builder *builder, const struct cv_route *route,
	struct cv_error *error)
{
	struct entry *entry = &builder->entry[builder->entries++];
	const struct cv_neighbour *neighbour;
	char where[CV_WHERE_TEXT], text[CV_PREFIX_TEXT];

	*(route->prefix.address.v6 ? &fib->routes_v6 : &fib->routes_v4) += 1;
	entry->prefix = route->prefix;
	entry->adjacency = route->kind == CV_ROUTE_CONNECTED ? 1u + route->port : 0;
	if (route->kind != CV_ROUTE_VIA)
		return 0;
	neighbour = cv_routes_neighbour(builder->routes, &route->via, route->port);
	if (neighbour == NULL) {
		cv_error_set(error,
			"%s: the MAC address of via %s on port %s is not known; add it to the "
			"neighbours",
			cv_route_where(builder->routes, route, where, sizeof(where)),
			cv_address_text(&route->via, text),
			builder->routes->env->ports[route->port]);
		return -EINVAL;
	}
	entry->adjacency = adjacency_of(fib, builder, neighbour, route->port);
	return entry->adjacency != 0 ? 0 : out_of_memory(builder, error);
}

// The entry with the longest prefix that has the address, among the routes', or NULL.
static struct entry *longest(const struct builder *builder, const struct cv_address *address)
{
	for (int length = address->v6 ? 128 : 32; length >= 0; length--) {
		struct cv_prefix wanted = {.address = *address, .length = (uint8_t)length};
		size_t low = 0, high = builder->routes->routes;

		cv_prefix_mask(&wanted);
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			int order = cv_prefix_compare(&builder->entry[middle].prefix, &wanted);

			if (order == 0)
				return &builder->entry[middle];
			if (order < 0)
				low = middle + 1;
			else
				high = middle;
		}
	}
	return NULL;
}

// A neighbour whose address lies on a connected prefix is a route to that one host.
static int add_neighbour(struct cv_fib *fib, struct builder *builder,
	const struct cv_neighbour *neighbour, struct cv_error *error)
{
	struct entry *entry = longest(builder, &neighbour->address);
	uint32_t adjacency;

	if (entry == NULL || fib->adjacency[entry->adjacency].outcome != CV_FIB_NO_NEIGHBOUR)
		return 0;
	uint8_t port = fib->adjacency[entry->adjacency].port;

	if (cv_routes_neighbour(builder->routes, &neighbour->address, port) != neighbour)
		return 0; // it is known on another port, or better on this one
	adjacency = adjacency_of(fib, builder, neighbour, port);
	if (adjacency == 0)
		return out_of_memory(builder, error);
	fib->hosts++;
	if (entry->prefix.length == (neighbour->address.v6 ? 128 : 32)) {
		entry->adjacency = adjacency;
		return 0;
	}
	entry = &builder->entry[builder->entries++];
	entry->prefix.address = neighbour->address;
	entry->prefix.length = neighbour->address.v6 ? 128 : 32;
	entry->adjacency = adjacency;
	return 0;
}

static int collect_entries(struct cv_fib *fib, struct builder *builder, struct cv_error *error)
{
	const struct cv_routes *routes = builder->routes;
	unsigned ports = routes->env->ports_count;

	builder->adjacencies_room = 64 + CV_PORTS_MAX;
	fib->adjacency = calloc(builder->adjacencies_room, sizeof(*fib->adjacency));
	builder->entry = calloc(routes->routes + routes->neighbours + 1, sizeof(*builder->entry));
	builder->by_neighbour = calloc(routes->neighbours + 1, sizeof(*builder->by_neighbour));
	if (fib->adjacency == NULL || builder->entry == NULL || builder->by_neighbour == NULL)
		return out_of_memory(builder, error);
	fib->adjacency[0].outcome = CV_FIB_NO_ROUTE;
	for (unsigned port = 0; port < ports; port++) {
		fib->adjacency[1 + port].port = (uint8_t)port;
		fib->adjacency[1 + port].outcome = CV_FIB_NO_NEIGHBOUR;
	}
	fib->adjacencies = 1 + ports;
	for (size_t i = 0; i < routes->routes; i++)
		if (add_route(fib, builder, &routes->route[i], error) != 0)
			return -EINVAL;
	for (size_t i = 0; i < routes->neighbours; i++)
		if (add_neighbour(fib, builder, &routes->neighbour[i], error) != 0)
			return -EINVAL;
	if (fib->adjacencies >= ADJACENCIES_MAX) {
		cv_error_set(error, "%s: %u next hops; at most %u are possible", routes->env->name,
			fib->adjacencies, ADJACENCIES_MAX - 1);
		return -EINVAL;
	}
	return 0;
}

// How many second-level tables the entries of a family need: one for each different prefix of
// k bytes, k from 3 up, that some entry is longer than. The entries must be in order; those of
// hosts follow those of routes, which counts a shared table twice at most.
static uint32_t count_tbl8s(const struct builder *builder, bool v6)
{
	const struct entry *last[16] = {NULL};
	uint32_t count = 0;

	for (size_t i = 0; i < builder->entries; i++) {
		const struct entry *entry = &builder->entry[i];

		if (entry->prefix.address.v6 != v6)
			continue;
		for (unsigned bytes = 3; bytes * 8 < entry->prefix.length; bytes++) {
			if (last[bytes] == NULL || memcmp(last[bytes]->prefix.address.bytes,
							   entry->prefix.address.bytes, bytes) != 0)
				count++;
			last[bytes] = entry;
		}
	}
	return count;
}

static int table_failed(const struct builder *builder, const char *family, uint32_t routes,
	size_t bytes, int why, struct cv_error *error)
{
	// rte_fib_create passes on whatever its pool failed with, ENOENT too.
	if (why != EINVAL && why != EEXIST)
		cv_error_set(error,
			"%s: no memory for %u %s routes, which need about %zu MB; give the node "
			"more "
			"(memory.mb; a plan's eal.memory_mb)",
			builder->routes->env->name, routes, family, (bytes >> 20) + 1);
	else
		cv_error_set(error, "%s: the table of %s routes cannot be made: %s",
			builder->routes->env->name, family, rte_strerror(why));
	return -why;
}

// DPDK names tables; no two may have the same name.
static void name_table(char *name, size_t size, const char *kind)
{
	static atomic_uint made;

	snprintf(name, size, "cv-%s-%u", kind, atomic_fetch_add(&made, 1));
}

static int make_v4(struct cv_fib *fib, const struct builder *builder, struct cv_error *error)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = (int)(fib->routes_v4 + fib->hosts + 1),
	};
	char name[32];
	size_t entry_bytes, bytes;

	fib->tbl8s_v4 = count_tbl8s(builder, false);
	// Half the table is half the cache misses, where the numbers are small enough for it.
	if (fib->adjacencies <= SMALL_FIB_MAX && fib->tbl8s_v4 < SMALL_FIB_MAX)
		conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
	else
		conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
	conf.dir24_8.num_tbl8 = fib->tbl8s_v4 + 1;
	entry_bytes = (size_t)1 << conf.dir24_8.nh_sz;
	// 400 bytes a route: what librte_rib of DPDK 22.11 was seen to take.
	bytes = (((size_t)1 << 24) + conf.dir24_8.num_tbl8 * 256ul) * entry_bytes +
		(size_t)conf.max_routes * 400;
	name_table(name, sizeof(name), "v4");
	fib->v4 = rte_fib_create(name, builder->routes->env->socket, &conf);
	if (fib->v4 == NULL)
		return table_failed(builder, "IPv4", fib->routes_v4, bytes, rte_errno, error);
	for (size_t i = 0; i < builder->entries; i++) {
		const struct entry *entry = &builder->entry[i];
		rte_be32_t address;
		int rc;

		if (entry->prefix.address.v6)
			continue;
		memcpy(&address, entry->prefix.address.bytes, 4);
		rc = rte_fib_add(
			fib->v4, rte_be_to_cpu_32(address), entry->prefix.length, entry->adjacency);
		if (rc != 0)
			return table_failed(builder, "IPv4", fib->routes_v4, bytes, -rc, error);
	}
	return 0;
}

static int make_v6(struct cv_fib *fib, const struct builder *builder, struct cv_error *error)
{
	struct rte_lpm6_config conf = {.max_rules = fib->routes_v6 + fib->hosts + 1};
	char name[32];
	size_t bytes;

	fib->tbl8s_v6 = count_tbl8s(builder, true);
	conf.number_tbl8s = fib->tbl8s_v6 + 1;
	bytes = (((size_t)1 << 24) + conf.number_tbl8s * 256ul) * 4 + conf.max_rules * 64ul;
	name_table(name, sizeof(name), "v6");
	fib->v6 = rte_lpm6_create(name, builder->routes->env->socket, &conf);
	if (fib->v6 == NULL)
		return table_failed(builder, "IPv6", fib->routes_v6, bytes, rte_errno, error);
	for (size_t i = 0; i < builder->entries; i++) {
		const struct entry *entry = &builder->entry[i];
		struct rte_ipv6_addr address;
		int rc;

		if (!entry->prefix.address.v6)
			continue;
		if (entry->prefix.length == 0) {
			fib->v6_default = entry->adjacency;
			continue;
		}
		memcpy(address.a, entry->prefix.address.bytes, sizeof(address.a));
		rc = rte_lpm6_add(fib->v6, &address, entry->prefix.length, entry->adjacency);
		if (rc != 0)
			return table_failed(builder, "IPv6", fib->routes_v6, bytes, -rc, error);
	}
	return 0;
}

// Both tables' lines: 22.11 has one type of log for them.
static void set_log_levels(uint32_t level)
{
	rte_log_set_level((uint32_t)rte_log_register("lib.lpm"), level);
	rte_log_set_level((uint32_t)rte_log_register("lib.fib"), level);
}

int cv_fib_make(struct cv_fib *fib, const struct cv_routes *routes, struct cv_error *error)
{
	struct builder builder = {.routes = routes};
	int level = rte_log_get_level((uint32_t)rte_log_register("lib.lpm"));
	int rc;

	*fib = (struct cv_fib){.v4 = NULL};
	set_log_levels(RTE_LOG_EMERG); // what fails is said in our own words
	rc = collect_entries(fib, &builder, error);
	if (rc == 0 && fib->routes_v4 > 0)
		rc = make_v4(fib, &builder, error);
	if (rc == 0 && fib->routes_v6 > 0)
		rc = make_v6(fib, &builder, error);
	set_log_levels((uint32_t)level);
	free(builder.entry);
	free(builder.by_neighbour);
	return rc;
}

void cv_fib_free(struct cv_fib *fib)
{
	rte_fib_free(fib->v4);
	rte_lpm6_free(fib->v6);
	free(fib->adjacency);
	*fib = (struct cv_fib){.v4 = NULL};
}
