// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "nf/router/neighbour_table.h"
#include "nf/router/routes.h"
#include "nf/router/route_text.h"
#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	void *larger;

	if (count < *room)
		return array;
	larger = realloc(array, (*room == 0 ? 64 : *room * 2) * size);
	if (larger != NULL)
		*room = *room == 0 ? 64 : *room * 2;
	return larger;
}

int cv_routes_add(struct cv_routes *routes, const struct cv_route *route, struct cv_error *error)
{
	void *larger =
		grow(routes->route, routes->routes, &routes->routes_room, sizeof(*routes->route));

	if (larger == NULL) {
		cv_error_set(error, "%s: no memory for %zu routes", routes->env->name,
			routes->routes + 1);
		return -ENOMEM;
	}
	routes->route = larger;
	routes->route[routes->routes++] = *route;
	return 0;
}

int cv_neighbours_add(
	struct cv_routes *routes, const struct cv_neighbour *neighbour, struct cv_error *error)
{
	void *larger = grow(routes->neighbour, routes->neighbours, &routes->neighbours_room,
		sizeof(*routes->neighbour));

	if (larger == NULL) {
		cv_error_set(error, "%s: no memory for %zu neighbours", routes->env->name,
			routes->neighbours + 1);
		return -ENOMEM;
	}
	routes->neighbour = larger;
	routes->neighbour[routes->neighbours++] = *neighbour;
	return 0;
}

const char *cv_route_where(
	const struct cv_routes *routes, const struct cv_route *route, char *text, size_t size)
{
	if (route->from_file)
		snprintf(text, size, "%s:%u", routes->file, route->line);
	else if (route->implied)
		snprintf(text, size, "%s: addresses: %s", routes->env->name,
			routes->env->ports[route->port]);
	else
		snprintf(text, size, "%s: routes[%u]", routes->env->name, route->line);
	return text;
}

const char *cv_neighbour_where(const struct cv_routes *routes, const struct cv_neighbour *neighbour,
	char *text, size_t size)
{
	if (neighbour->from_file)
		snprintf(text, size, "%s:%u", routes->neighbours_file, neighbour->line);
	else
		snprintf(text, size, "%s: neighbours[%u]", routes->env->name, neighbour->line);
	return text;
}

static int read_file(struct cv_routes *routes, const char *path,
	int (*reader)(struct cv_routes *, FILE *, struct cv_error *), struct cv_error *error)
{
	FILE *file = fopen(path, "r");
	int rc;

	if (file == NULL) {
		cv_error_set(
			error, "%s: cannot open %s: %s", routes->env->name, path, strerror(errno));
		return -EINVAL;
	}
	rc = reader(routes, file, error);
	fclose(file);
	return rc;
}

const struct cv_own_address *cv_routes_connected(
	const struct cv_routes *routes, const struct cv_address *address, int port)
{
	const struct cv_own_address *best = NULL;

	for (size_t i = 0; i < routes->owns; i++) {
		const struct cv_own_address *own = &routes->own[i];
		struct cv_prefix network = {.address = own->address, .length = own->length};

		cv_prefix_mask(&network);
		if ((port < 0 || own->port == port) && cv_prefix_has(&network, address) &&
			(best == NULL || best->length < own->length))
			best = own;
	}
	return best;
}

int cv_route_find_port(const struct cv_routes *routes, struct cv_route *route, const char *where,
	struct cv_error *error)
{
	const struct cv_own_address *own = NULL;
	char text[CV_PREFIX_TEXT];

	if (route->kind != CV_ROUTE_VIA) {
		cv_error_set(error, "%s: the route names no port; add: dev PORT", where);
		return -EINVAL;
	}
	own = cv_routes_connected(routes, &route->via, -1);
	if (own == NULL) {
		cv_error_set(error,
			"%s: via %s is in no connected network; add dev PORT, or an address of "
			"its network under addresses",
			where, cv_address_text(&route->via, text));
		return -EINVAL;
	}
	route->port = own->port;
	return 0;
}

struct next_hop_text {
	const char *via, *dev;
};

struct route_text {
	const char *prefix;
	struct next_hop_text next_hop;
	unsigned kind;
	const json_t *nexthops;
};

static const char *const kinds[] = {"unicast", "blackhole", "unreachable", "prohibit", NULL};
static const struct cv_param next_hop_params[] = {
	{"via", CV_TEXT, CV_AT(struct next_hop_text, via)},
	{"dev", CV_TEXT, CV_AT(struct next_hop_text, dev)},
	{0},
};

static int add_next_hop(struct cv_routes *routes, struct cv_route *route,
	const struct next_hop_text *text, const char *where, struct cv_error *error)
{
	route->kind = text->via != NULL ? CV_ROUTE_VIA : CV_ROUTE_CONNECTED;
	if (text->via != NULL && cv_route_text_via(text->via, where, &route->via, error) != 0)
		return -EINVAL;
	if (text->via != NULL && route->via.v6 != route->prefix.address.v6) {
		cv_error_set(
			error, "%s: via %s is not of the prefix's IP version", where, text->via);
		return -EINVAL;
	}
	if (text->dev == NULL ? cv_route_find_port(routes, route, where, error) != 0
			      : cv_route_text_port(
					routes->env, text->dev, where, &route->port, error) != 0)
		return -EINVAL;
	return cv_routes_add(routes, route, error);
}

static int read_route(
	struct cv_routes *routes, const json_t *object, uint32_t line, struct cv_error *error)
{
	static const struct cv_param params[] = {
		{"prefix", CV_TEXT, CV_AT(struct route_text, prefix), .required = true},
		{"type", CV_WORD, CV_AT(struct route_text, kind), .words = kinds},
		{"nexthops", CV_LIST, CV_AT(struct route_text, nexthops), .low = 1,
			.high = CV_ROUTE_PATHS_MAX},
		{NULL, CV_PARAMS, CV_AT(struct route_text, next_hop), .params = next_hop_params},
		{0},
	};
	struct cv_route route = {.line = line};
	char where[CV_WHERE_TEXT];
	const struct cv_where at =
		cv_where_top(cv_route_where(routes, &route, where, sizeof(where)), error);
	struct route_text text;

	if (cv_params_read(&at, object, params, &text) != 0 ||
		cv_route_text_prefix(text.prefix, where, &route.prefix, error) != 0)
		return -EINVAL;
	if (text.kind != 0) {
		route.kind = (uint8_t)(CV_ROUTE_BLACKHOLE + text.kind - 1);
		return cv_routes_add(routes, &route, error);
	}
	if (text.nexthops == NULL)
		return add_next_hop(routes, &route, &text.next_hop, where, error);
	for (size_t i = 0; i < json_array_size(text.nexthops); i++) {
		const struct cv_where in = cv_where_item(&at, "nexthops", i);
		struct next_hop_text next_hop;

		if (cv_params_read(&in, json_array_get(text.nexthops, i), next_hop_params,
			    &next_hop) != 0 ||
			add_next_hop(routes, &route, &next_hop, where, error) != 0)
			return -EINVAL;
	}
	return 0;
}

// Adds an address, and the route to its network.
static int add_own(struct cv_routes *routes, const char *text, uint8_t port, struct cv_error *error)
{
	const char *name = routes->env->name, *dev = routes->env->ports[port];
	struct cv_own_address *larger, own = {.port = port};
	struct cv_route route = {.kind = CV_ROUTE_CONNECTED, .port = port, .implied = true};
	struct cv_prefix prefix;
	int rc = text != NULL ? cv_prefix_parse(text, &prefix) : -EINVAL;
	rte_be32_t v4;

	if (text == NULL || (rc != 0 && rc != -EDOM) || strchr(text, '/') == NULL) {
		cv_error_set(error,
			"%s: addresses: %s: \"%s\" is not an address with its network's length; "
			"write one like 192.0.2.1/24 or 2001:db8::1/64",
			name, dev, text ? text : "");
		return -EINVAL;
	}
	own.address = prefix.address;
	own.length = prefix.length;
	memcpy(&v4, own.address.bytes, sizeof(v4));
	if (own.address.v6 ? cv_ipv6_martian(own.address.bytes) : cv_ipv4_martian(v4)) {
		cv_error_set(error, "%s: addresses: %s: %s is not the address of a router%s", name,
			dev, text, own.address.v6 ? "; link-local ones it gives itself" : "");
		return -EINVAL;
	}
	if (rc == 0 && !own.address.v6 && own.length <= 30) {
		cv_error_set(error, "%s: addresses: %s: %s is its network's address, not a host's",
			name, dev, text);
		return -EINVAL;
	}
	if (!own.address.v6 && own.length <= 30 &&
		(~rte_be_to_cpu_32(v4) & (UINT32_MAX >> own.length)) == 0) {
		cv_error_set(error,
			"%s: addresses: %s: %s is its network's broadcast address, not a host's",
			name, dev, text);
		return -EINVAL;
	}
	for (size_t i = 0; i < routes->owns; i++) {
		if (cv_address_compare(&routes->own[i].address, &own.address) != 0)
			continue;
		cv_error_set(error, "%s: addresses: %s: port %s has %s already; remove one", name,
			dev, routes->env->ports[routes->own[i].port], text);
		return -EINVAL;
	}
	if (routes->owns == CV_OWN_ADDRESSES_MAX) {
		cv_error_set(error, "%s: addresses: more than %u", name, CV_OWN_ADDRESSES_MAX);
		return -EINVAL;
	}
	larger = grow(routes->own, routes->owns, &routes->owns_room, sizeof(*routes->own));
	if (larger == NULL)
		return -ENOMEM;
	routes->own = larger;
	routes->own[routes->owns++] = own;
	route.prefix = prefix;
	cv_prefix_mask(&route.prefix);
	route.line = (uint32_t)routes->owns - 1;
	return prefix.length == (own.address.v6 ? 128 : 32) ? 0
							    : cv_routes_add(routes, &route, error);
}

static int read_addresses(struct cv_routes *routes, const json_t *addresses, struct cv_error *error)
{
	char where[CV_WHERE_TEXT];
	const char *name;
	json_t *list;

	snprintf(where, sizeof(where), "%s: addresses", routes->env->name);
	json_object_foreach ((json_t *)addresses, name, list) {
		uint8_t port;

		if (cv_route_text_port(routes->env, name, where, &port, error) != 0)
			return -EINVAL;
		if (!json_is_array(list)) {
			cv_error_set(error, "%s: %s: must be a list of addresses", where, name);
			return -EINVAL;
		}
		for (size_t i = 0; i < json_array_size(list); i++)
			if (add_own(routes, json_string_value(json_array_get(list, i)), port,
				    error) != 0)
				return -EINVAL;
	}
	return 0;
}

struct neighbour_text {
	const char *address, *dev;
	uint8_t mac[CV_MAC_LEN];
};

static int read_neighbour(struct cv_routes *routes, const json_t *object,
	struct cv_neighbour *neighbour, struct cv_error *error)
{
	static const struct cv_param params[] = {
		{"address", CV_TEXT, CV_AT(struct neighbour_text, address), .required = true},
		{"mac", CV_MAC, CV_AT(struct neighbour_text, mac), .required = true},
		{"dev", CV_TEXT, CV_AT(struct neighbour_text, dev)},
		{0},
	};
	char where[CV_WHERE_TEXT];
	const struct cv_where at =
		cv_where_top(cv_neighbour_where(routes, neighbour, where, sizeof(where)), error);
	struct neighbour_text text;
	uint8_t port;

	if (cv_params_read(&at, object, params, &text) != 0 ||
		cv_route_text_via(text.address, where, &neighbour->address, error) != 0)
		return -EINVAL;
	memcpy(neighbour->mac, text.mac, sizeof(text.mac));
	if (text.dev == NULL)
		return 0;
	if (cv_route_text_port(routes->env, text.dev, where, &port, error) != 0)
		return -EINVAL;
	neighbour->port = port;
	return 0;
}

// A list of routes, or where the kernel has them.
static int read_routes(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"kernel", CV_TEXT, CV_AT(struct cv_routes_config, kernel), .required = true,
			.high = 200},
		{0},
	};
	struct cv_routes_config *config = member;
	const struct cv_where in = cv_where_key(at, key);

	if (json_is_object(value))
		return cv_params_read(&in, value, params, config);
	if (!json_is_array(value))
		return cv_where_wrong(
			at, key, value, "must be a list of routes, or {\"kernel\": NETNS}");
	config->routes = value;
	return 0;
}

const struct cv_param cv_routes_params[] = {
	{"addresses", CV_MAP, CV_AT(struct cv_routes_config, addresses),
		.doc = "of its own, by port, with their networks' lengths: it lives in these"},
	{"routes", CV_CUSTOM, .read = read_routes,
		.doc = "PREFIX [via ADDRESS] [dev PORT], or mappings; or {kernel: NETNS}"},
	{"routes_file", CV_FILE, CV_AT(struct cv_routes_config, routes_file),
		.doc = "file of such lines, as `ip route` prints them"},
	{"neighbours", CV_LIST, CV_AT(struct cv_routes_config, neighbours),
		.doc = "MAC addresses of those that are not asked for it"},
	{"neighbours_file", CV_FILE, CV_AT(struct cv_routes_config, neighbours_file),
		.doc = "file of ADDRESS MAC lines"},
	{"neighbour_entries", CV_INTEGER, CV_AT(struct cv_routes_config, neighbour_entries),
		.low = 16, .high = CV_NEIGHBOURS_MAX, .fallback = 1024,
		.doc = "neighbours whose MAC addresses it learns"},
	{"route_entries", CV_INTEGER, CV_AT(struct cv_routes_config, route_entries), .low = 1024,
		.high = 1 << 20, .fallback = 16384,
		.doc = "routes of the kernel that it has room for"},
	{"icmp_rate", CV_INTEGER, CV_AT(struct cv_routes_config, icmp_rate), .high = 1000000,
		.fallback = 1000, .doc = "ICMP errors per second and worker; 0: none"},
	{0},
};

// The kernel knows all routes, and needs interfaces for the ports.
static int check_kernel(const struct cv_routes *routes, const struct cv_routes_config *config,
	struct cv_error *error)
{
	const char *name = routes->env->name;

	if (config->kernel == NULL)
		return 0;
	if (config->routes_file != NULL) {
		cv_error_set(error,
			"%s: routes_file: the kernel has the routes (routes: kernel); add these "
			"there, or remove one of both",
			name);
		return -EINVAL;
	}
	if (routes->owns == 0) {
		cv_error_set(error,
			"%s: routes: kernel: the router has no addresses; add them, for its ports' "
			"interfaces",
			name);
		return -EINVAL;
	}
	for (size_t i = 0; i < routes->owns; i++) {
		const char *port = routes->env->ports[routes->own[i].port];

		if (strlen(port) < IFNAMSIZ && strpbrk(port, "/: %") == NULL &&
			strcmp(port, "lo") != 0)
			continue;
		cv_error_set(error,
			"%s: routes: kernel: port %s: no interface can have that name; call it by "
			"at most %u letters and digits",
			name, port, IFNAMSIZ - 1);
		return -EINVAL;
	}
	return 0;
}

int cv_routes_load(struct cv_routes *routes, const struct cv_routes_config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	*routes = (struct cv_routes){.env = env,
		.file = config->routes_file,
		.neighbours_file = config->neighbours_file};
	if (read_addresses(routes, config->addresses, error) != 0 ||
		check_kernel(routes, config, error) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < json_array_size(config->routes); i++)
		if (read_route(routes, json_array_get(config->routes, i), i, error) != 0)
			return -EINVAL;
	for (uint32_t i = 0; i < json_array_size(config->neighbours); i++) {
		struct cv_neighbour neighbour = {.port = -1, .line = i};
		const json_t *object = json_array_get(config->neighbours, i);

		if (read_neighbour(routes, object, &neighbour, error) != 0 ||
			cv_neighbours_add(routes, &neighbour, error) != 0)
			return -EINVAL;
	}
	if (routes->file != NULL && read_file(routes, routes->file, cv_routes_read, error) != 0)
		return -EINVAL;
	if (routes->neighbours_file != NULL &&
		read_file(routes, routes->neighbours_file, cv_neighbours_read, error) != 0)
		return -EINVAL;
	return cv_routes_sort(routes, error);
}

// By prefix, then as they were written: addresses, the plan's routes, the file's.
static int compare_routes(const void *a_, const void *b_)
{
	const struct cv_route *a = a_, *b = b_;
	int order = cv_prefix_compare(&a->prefix, &b->prefix);

	if (order != 0)
		return order;
	if (a->implied != b->implied)
		return a->implied ? -1 : 1;
	if (a->from_file != b->from_file)
		return a->from_file ? 1 : -1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	order = cv_address_compare(&a->via, &b->via);
	return order != 0 ? order : a->port - b->port;
}

static int compare_neighbours(const void *a_, const void *b_)
{
	const struct cv_neighbour *a = a_, *b = b_;
	int order = cv_address_compare(&a->address, &b->address);

	return order != 0 ? order : a->port - b->port;
}

int cv_routes_sort(struct cv_routes *routes, struct cv_error *error)
{
	char first[CV_WHERE_TEXT], second[CV_WHERE_TEXT], text[CV_PREFIX_TEXT];
	size_t kept = 0;

	if (routes->routes > 1)
		qsort(routes->route, routes->routes, sizeof(*routes->route), compare_routes);
	if (routes->neighbours > 1)
		qsort(routes->neighbour, routes->neighbours, sizeof(*routes->neighbour),
			compare_neighbours);
	for (size_t i = 0; i < routes->routes; i++) {
		const struct cv_route *one = kept > 0 ? &routes->route[kept - 1] : NULL;
		const struct cv_route *two = &routes->route[i];

		if (one == NULL || cv_prefix_compare(&one->prefix, &two->prefix) != 0 ||
			cv_route_same(one, two)) {
			routes->route[kept++] = *two;
			continue;
		}
		// What `ip route` prints of a connected network is known already.
		if (one->implied && two->kind == CV_ROUTE_CONNECTED && one->port == two->port)
			continue;
		cv_route_where(routes, one, first, sizeof(first));
		cv_route_where(routes, two, second, sizeof(second));
		cv_error_set(error, "%s: a second route to %s, the first is %s; remove one", second,
			cv_prefix_text(&one->prefix, text), first);
		return -EINVAL;
	}
	routes->routes = kept;
	for (size_t i = 1; i < routes->neighbours; i++) {
		const struct cv_neighbour *one = &routes->neighbour[i - 1];
		const struct cv_neighbour *two = &routes->neighbour[i];

		if (compare_neighbours(one, two) != 0)
			continue;
		cv_neighbour_where(routes, one, first, sizeof(first));
		cv_neighbour_where(routes, two, second, sizeof(second));
		cv_error_set(error, "%s: a second entry for %s, the other is %s; remove one",
			second, cv_address_text(&one->address, text), first);
		return -EINVAL;
	}
	return 0;
}

const struct cv_neighbour *cv_routes_neighbour(
	const struct cv_routes *routes, const struct cv_address *address, unsigned port)
{
	struct cv_neighbour wanted = {.address = *address, .port = -1};
	size_t low = 0, high = routes->neighbours;

	// The first that is not less than the wanted address with no port said.
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_neighbours(&routes->neighbour[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	// Those with the address stand together, the one for any port first: a said port wins.
	const struct cv_neighbour *any = NULL;

	for (; low < routes->neighbours; low++) {
		const struct cv_neighbour *neighbour = &routes->neighbour[low];

		if (cv_address_compare(&neighbour->address, address) != 0)
			break;
		if (neighbour->port == (int)port)
			return neighbour;
		if (neighbour->port < 0)
			any = neighbour;
	}
	return any;
}

void cv_routes_free(struct cv_routes *routes)
{
	free(routes->route);
	free(routes->neighbour);
	free(routes->own);
	routes->route = NULL;
	routes->own = NULL;
	routes->neighbour = NULL;
}
