// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_random.h>
#include <rte_rib.h>

#include "dpdk/compat.h"
#include "dpdk/table_memory.h"
#include "nf/router/fib.h"
#include "packet/ipv6.h"

// rte_lpm6 keeps 21 bits of a next hop; rte_fib keeps 15 or 31.
#define ADJACENCIES_MAX (1u << 21)
#define SMALL_FIB_MAX 32767u
#define GROWING_TBL8S_V4 32000u // of tables that change: numbers of two bytes are enough
#define LAST_PATHS 64u // sets of next hops among which the same one is looked for

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
	size_t routes_entries; // the first of them: sorted
	uint32_t *by_neighbour; // the adjacency last made for each neighbour; 0: none
	struct cv_neighbour_table *table; // NULL: nothing is learned
	uint32_t adjacencies_room;
	uint32_t paths_room;
	const struct cv_fib_room *room;
	uint32_t last_paths[LAST_PATHS]; // adjacencies that are CV_FIB_PATHS: most routes share few
};

static int out_of_memory(const struct builder *builder, struct cv_error *error)
{
	cv_error_set(error, "%s: no memory for %zu routes", builder->routes->env->name,
		builder->routes->routes);
	return -ENOMEM;
}

// One more adjacency. Returns 0: no memory.
static uint32_t new_adjacency(struct cv_fib *fib, struct builder *builder)
{
	struct cv_adjacency *larger;

	if (fib->adjacencies == builder->adjacencies_room) {
		larger = realloc(fib->adjacency, builder->adjacencies_room * 2 * sizeof(*larger));
		if (larger == NULL)
			return 0;
		fib->adjacency = larger;
		builder->adjacencies_room *= 2;
		if (builder->table != NULL)
			builder->table->adjacency = fib->adjacency + fib->neighbours_at;
	}
	fib->adjacency[fib->adjacencies] = (struct cv_adjacency){.mtu = 0};
	return fib->adjacencies++;
}

// The adjacency of a neighbour behind a port, new if need be. Returns 0: no memory.
static uint32_t adjacency_of(struct cv_fib *fib, struct builder *builder,
	const struct cv_neighbour *neighbour, uint8_t port)
{
	uint32_t *known = &builder->by_neighbour[neighbour - builder->routes->neighbour];

	if (*known != 0 && fib->adjacency[*known].port == port)
		return *known;
	*known = new_adjacency(fib, builder);
	if (*known == 0)
		return 0;
	memcpy(fib->adjacency[*known].mac, neighbour->mac, 6);
	fib->adjacency[*known].port = port;
	fib->adjacency[*known].outcome = CV_FIB_FORWARD;
	return *known;
}

// Whether the router can ask for this next hop's MAC address: it has an address beside it.
static bool can_ask(const struct cv_routes *routes, const struct cv_route *route)
{
	if (cv_routes_connected(routes, &route->via, route->port) != NULL)
		return true;
	if (!route->via.v6 || !cv_ipv6_is_link_local(route->via.bytes))
		return false;
	for (size_t i = 0; i < routes->owns; i++)
		if (routes->own[i].port == route->port && routes->own[i].address.v6)
			return true;
	return false;
}

// The adjacency of a next hop that is learned. Returns 0 with error set.
static uint32_t learned(struct cv_fib *fib, struct builder *builder, const struct cv_route *route,
	const char *where, struct cv_error *error)
{
	const struct cv_neighbour_key key = {.address = route->via, .port = route->port};
	char text[CV_PREFIX_TEXT];
	uint32_t at;

	if (builder->table == NULL || !can_ask(builder->routes, route)) {
		cv_error_set(error,
			"%s: the MAC address of via %s on port %s is not known; add it to the "
			"neighbours, or an address of its network to the port's addresses",
			where, cv_address_text(&route->via, text),
			builder->routes->env->ports[route->port]);
		return 0;
	}
	at = cv_neighbour_table_pin(builder->table, &key);
	if (at == CV_NEIGHBOUR_NONE) {
		cv_error_set(error, "%s: more next hops than neighbour_entries, %u; raise it",
			where, builder->table->entries_count);
		return 0;
	}
	return fib->neighbours_at + at;
}

// The adjacency of one next hop of a route. Returns 0 with error set.
static uint32_t next_hop(struct cv_fib *fib, struct builder *builder, const struct cv_route *route,
	struct cv_error *error)
{
	const struct cv_neighbour *neighbour;
	char where[CV_WHERE_TEXT];
	uint32_t at;

	if (route->kind == CV_ROUTE_CONNECTED)
		return CV_FIB_AT_LINKS + route->port;
	neighbour = cv_routes_neighbour(builder->routes, &route->via, route->port);
	if (neighbour == NULL) {
		cv_route_where(builder->routes, route, where, sizeof(where));
		return learned(fib, builder, route, where, error);
	}
	at = adjacency_of(fib, builder, neighbour, route->port);
	if (at == 0)
		out_of_memory(builder, error);
	return at;
}

// The adjacency of several next hops: one that is there already, or new. Returns 0: no memory.
static uint32_t paths(
	struct cv_fib *fib, struct builder *builder, const uint32_t *member, uint32_t count)
{
	uint32_t *larger, at, *last;

	for (unsigned i = 0; i < LAST_PATHS; i++) {
		const struct cv_adjacency *known = &fib->adjacency[builder->last_paths[i]];

		if (known->outcome == CV_FIB_PATHS && known->count == count &&
			memcmp(fib->path + known->first, member, count * sizeof(*member)) == 0)
			return builder->last_paths[i];
	}
	if (fib->paths + count > builder->paths_room) {
		builder->paths_room = (builder->paths_room + count) * 2;
		larger = realloc(fib->path, builder->paths_room * sizeof(*larger));
		if (larger == NULL)
			return 0;
		fib->path = larger;
	}
	at = new_adjacency(fib, builder);
	if (at == 0)
		return 0;
	memcpy(fib->path + fib->paths, member, count * sizeof(*member));
	fib->adjacency[at].first = fib->paths;
	fib->adjacency[at].count = count;
	fib->adjacency[at].outcome = CV_FIB_PATHS;
	fib->paths += count;
	last = &builder->last_paths[at % LAST_PATHS];
	*last = at;
	return at;
}

// Adds the route that begins at route[0], of count next hops.
static int add_route(struct cv_fib *fib, struct builder *builder, const struct cv_route *route,
	size_t count, struct cv_error *error)
{
	static const uint32_t nowhere[] = {
		[CV_ROUTE_BLACKHOLE] = CV_FIB_AT_BLACKHOLE,
		[CV_ROUTE_UNREACHABLE] = CV_FIB_AT_UNREACHABLE,
		[CV_ROUTE_PROHIBIT] = CV_FIB_AT_PROHIBIT,
	};
	struct entry *entry = &builder->entry[builder->entries++];
	uint32_t member[CV_ROUTE_PATHS_MAX];

	*(route->prefix.address.v6 ? &fib->routes_v6 : &fib->routes_v4) += 1;
	entry->prefix = route->prefix;
	if (route->kind != CV_ROUTE_CONNECTED && route->kind != CV_ROUTE_VIA) {
		entry->adjacency = nowhere[route->kind];
		return 0;
	}
	if (count > CV_ROUTE_PATHS_MAX) {
		char where[CV_WHERE_TEXT];

		cv_error_set(error, "%s: %zu next hops; at most %u are possible",
			cv_route_where(builder->routes, route, where, sizeof(where)), count,
			CV_ROUTE_PATHS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		member[i] = next_hop(fib, builder, &route[i], error);
		if (member[i] == 0)
			return -EINVAL;
	}
	entry->adjacency = count == 1 ? member[0] : paths(fib, builder, member, (uint32_t)count);
	return entry->adjacency != 0 ? 0 : out_of_memory(builder, error);
}

static void add_own(struct builder *builder, const struct cv_address *address, uint32_t adjacency)
{
	struct entry *entry = &builder->entry[builder->entries++];

	entry->prefix.address = *address;
	entry->prefix.length = address->v6 ? 128 : 32;
	entry->adjacency = adjacency;
}

// An address of the router's own, and what its network has beside hosts: the address of all zeros
// and that of all ones (RFC 1812 section 4.2.2.11).
static void add_owns(struct cv_fib *fib, struct builder *builder)
{
	const struct cv_routes *routes = builder->routes;

	for (size_t i = 0; i < routes->owns; i++) {
		struct cv_prefix network = {
			.address = routes->own[i].address, .length = routes->own[i].length};

		if (network.address.v6 || network.length > 30)
			continue;
		cv_prefix_mask(&network);
		add_own(builder, &network.address, CV_FIB_AT_BROADCAST);
		for (unsigned bit = network.length; bit < 32; bit++)
			network.address.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		add_own(builder, &network.address, CV_FIB_AT_BROADCAST);
		fib->own += 2;
	}
	for (size_t i = 0; i < routes->owns; i++)
		add_own(builder, &routes->own[i].address, CV_FIB_AT_LOCAL);
	fib->own += (uint32_t)routes->owns;
}

// The entry with the longest prefix that has the address, among the routes', or NULL.
static struct entry *longest(const struct builder *builder, const struct cv_address *address)
{
	for (int length = address->v6 ? 128 : 32; length >= 0; length--) {
		struct cv_prefix wanted = {.address = *address, .length = (uint8_t)length};
		size_t low = 0, high = builder->routes_entries;

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

	if (entry == NULL || fib->adjacency[entry->adjacency].outcome != CV_FIB_LINK)
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
	static const uint8_t first[CV_FIB_AT_LINKS] = {
		[CV_FIB_AT_NO_ROUTE] = CV_FIB_NO_ROUTE,
		[CV_FIB_AT_LOCAL] = CV_FIB_LOCAL,
		[CV_FIB_AT_BROADCAST] = CV_FIB_BROADCAST,
		[CV_FIB_AT_BLACKHOLE] = CV_FIB_BLACKHOLE,
		[CV_FIB_AT_UNREACHABLE] = CV_FIB_UNREACHABLE,
		[CV_FIB_AT_PROHIBIT] = CV_FIB_PROHIBIT,
	};
	const struct cv_routes *routes = builder->routes;
	const unsigned ports = routes->env->ports_count;
	const uint32_t neighbours = builder->table != NULL ? builder->table->entries_count : 0;

	fib->neighbours_at = CV_FIB_AT_LINKS + ports;
	fib->adjacencies = fib->neighbours_at + neighbours;
	builder->adjacencies_room = fib->adjacencies + 64;
	fib->adjacency = calloc(builder->adjacencies_room, sizeof(*fib->adjacency));
	builder->entry = calloc(routes->routes + routes->neighbours + 3 * routes->owns + 1,
		sizeof(*builder->entry));
	builder->by_neighbour = calloc(routes->neighbours + 1, sizeof(*builder->by_neighbour));
	if (fib->adjacency == NULL || builder->entry == NULL || builder->by_neighbour == NULL)
		return out_of_memory(builder, error);
	for (unsigned i = 0; i < CV_FIB_AT_LINKS; i++)
		fib->adjacency[i].outcome = first[i];
	for (unsigned port = 0; port < ports; port++) {
		fib->adjacency[CV_FIB_AT_LINKS + port].port = (uint8_t)port;
		fib->adjacency[CV_FIB_AT_LINKS + port].outcome = CV_FIB_LINK;
	}
	if (builder->table != NULL)
		builder->table->adjacency = fib->adjacency + fib->neighbours_at;
	for (size_t i = 0, count; i < routes->routes; i += count) {
		for (count = 1; i + count < routes->routes; count++)
			if (!cv_route_same(&routes->route[i], &routes->route[i + count]) ||
				cv_prefix_compare(&routes->route[i].prefix,
					&routes->route[i + count].prefix) != 0)
				break;
		if (add_route(fib, builder, &routes->route[i], count, error) != 0)
			return -EINVAL;
	}
	builder->routes_entries = builder->entries;
	for (size_t i = 0; i < routes->neighbours; i++)
		if (add_neighbour(fib, builder, &routes->neighbour[i], error) != 0)
			return -EINVAL;
	add_owns(fib, builder);
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
		.max_routes =
			(int)(fib->routes_v4 + fib->hosts + fib->own + builder->room->routes + 1),
	};
	char name[32];
	size_t entry_bytes, bytes;

	fib->tbl8s_v4 = count_tbl8s(builder, false);
	if (fib->tbl8s_v4 < GROWING_TBL8S_V4)
		fib->tbl8s_v4 += RTE_MIN(builder->room->routes, GROWING_TBL8S_V4 - fib->tbl8s_v4);
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
	fib->v4 = rte_fib_create(name, cv_table_memory(bytes), &conf);
	if (fib->v4 == NULL)
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
	struct rte_lpm6_config conf = {
		.max_rules = fib->routes_v6 + fib->hosts + fib->own + builder->room->routes + 1};
	char name[32];
	size_t bytes;

	// One route more takes three tables, or five, but for those that it shares with others.
	fib->tbl8s_v6 = count_tbl8s(builder, true) + 2 * builder->room->routes;
	conf.number_tbl8s = fib->tbl8s_v6 + 1;
	bytes = (((size_t)1 << 24) + conf.number_tbl8s * 256ul) * 4 + conf.max_rules * 64ul;
	name_table(name, sizeof(name), "v6");
	fib->v6 = rte_lpm6_create(name, cv_table_memory(bytes), &conf);
	if (fib->v6 == NULL)
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

static bool has_family(const struct builder *builder, bool v6)
{
	for (size_t i = 0; i < builder->entries; i++)
		if (builder->entry[i].prefix.address.v6 == v6)
			return true;
	return false;
}

// Both tables' lines, and those of what rte_fib is made of: 22.11 has one type of log for them.
static void set_log_levels(uint32_t level)
{
	rte_log_set_level((uint32_t)rte_log_register("lib.lpm"), level);
	rte_log_set_level((uint32_t)rte_log_register("lib.fib"), level);
	rte_log_set_level((uint32_t)rte_log_register("lib.rib"), level);
}

static int make_tables(struct cv_fib *fib, const struct builder *builder, struct cv_error *error)
{
	const bool both = builder->room->routes > 0;
	int rc = 0;

	if (both || has_family(builder, false))
		rc = make_v4(fib, builder, error);
	if (rc == 0 && (both || has_family(builder, true)))
		rc = make_v6(fib, builder, error);
	return rc;
}

// Room for sets of next hops that are not known yet. 0 or -ENOMEM.
static int add_groups(struct cv_fib *fib, struct builder *builder)
{
	fib->groups_at = fib->adjacencies;
	for (uint32_t i = 0; i < CV_FIB_GROUPS; i++) {
		const uint32_t at = new_adjacency(fib, builder);

		if (at == 0)
			return -ENOMEM;
		fib->adjacency[at].outcome = CV_FIB_PATHS;
	}
	fib->path = calloc(CV_FIB_GROUPS * CV_ROUTE_PATHS_MAX, sizeof(*fib->path));
	return fib->path != NULL ? 0 : -ENOMEM;
}

static int remember(struct cv_fib *fib, const struct builder *builder)
{
	fib->made = calloc(builder->entries + 1, sizeof(*fib->made));
	if (fib->made == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < builder->entries; i++)
		fib->made[fib->made_count++] = builder->entry[i].prefix;
	return 0;
}

int cv_fib_make(struct cv_fib *fib, struct cv_fib *twin, const struct cv_fib_room *room,
	const struct cv_routes *routes, struct cv_neighbour_table *table, struct cv_error *error)
{
	struct builder builder = {.routes = routes, .table = table, .room = room};
	int level = rte_log_get_level((uint32_t)rte_log_register("lib.lpm"));
	int rc;

	*fib = (struct cv_fib){.flow_key = rte_rand()};
	*twin = (struct cv_fib){.shares = true};
	set_log_levels(RTE_LOG_EMERG); // what fails is said in our own words
	rc = collect_entries(fib, &builder, error);
	if (rc == 0 && room->routes > 0)
		rc = add_groups(fib, &builder) != 0 ? -ENOMEM : remember(fib, &builder);
	if (rc == 0)
		rc = make_tables(fib, &builder, error);
	if (rc == 0 && room->routes > 0) {
		*twin = *fib;
		twin->v4 = NULL;
		twin->v6 = NULL;
		twin->shares = true;
		rc = make_tables(twin, &builder, error);
	}
	set_log_levels((uint32_t)level);
	free(builder.entry);
	free(builder.by_neighbour);
	return rc;
}

int cv_fib_change(struct cv_fib *fib, const struct cv_prefix *prefix, uint32_t adjacency)
{
	const bool gone = adjacency == CV_FIB_AT_NO_ROUTE;
	struct rte_ipv6_addr v6;
	rte_be32_t v4;

	if (!prefix->address.v6) {
		memcpy(&v4, prefix->address.bytes, sizeof(v4));
		v4 = rte_be_to_cpu_32(v4);
		return gone ? rte_fib_delete(fib->v4, v4, prefix->length)
			    : rte_fib_add(fib->v4, v4, prefix->length, adjacency);
	}
	if (prefix->length == 0) {
		fib->v6_default = adjacency;
		return 0;
	}
	memcpy(v6.a, prefix->address.bytes, sizeof(v6.a));
	return gone ? rte_lpm6_delete(fib->v6, &v6, prefix->length)
		    : rte_lpm6_add(fib->v6, &v6, prefix->length, adjacency);
}

void cv_fib_free(struct cv_fib *fib)
{
	rte_fib_free(fib->v4);
	rte_lpm6_free(fib->v6);
	if (!fib->shares) {
		free(fib->adjacency);
		free(fib->path);
		free(fib->made);
	}
	*fib = (struct cv_fib){.v4 = NULL};
}

uint32_t cv_fib_find_v4(const struct cv_fib *fib, uint32_t address)
{
	uint64_t adjacency = CV_FIB_AT_NO_ROUTE;

	if (fib->v4 != NULL)
		rte_fib_lookup_bulk(fib->v4, &address, &adjacency, 1);
	return (uint32_t)adjacency;
}

uint32_t cv_fib_find_v6(const struct cv_fib *fib, const uint8_t *address)
{
	struct rte_ipv6_addr destination;
	int32_t next_hop = -1;

	memcpy(destination.a, address, sizeof(destination.a));
	if (fib->v6 != NULL)
		rte_lpm6_lookup_bulk_func(fib->v6, &destination, &next_hop, 1);
	return next_hop < 0 ? fib->v6_default : (uint32_t)next_hop;
}

uint32_t cv_fib_find(const struct cv_fib *fib, const struct cv_address *address)
{
	rte_be32_t v4;

	memcpy(&v4, address->bytes, sizeof(v4));
	return address->v6 ? cv_fib_find_v6(fib, address->bytes)
			   : cv_fib_find_v4(fib, rte_be_to_cpu_32(v4));
}
