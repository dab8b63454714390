// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/router/routes.h"
#include "nf/router/route_text.h"
#include "packet/ether.h"

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

struct route_text {
	const char *prefix, *via, *dev;
};

static int read_route(struct cv_routes *routes, const json_t *object, struct cv_route *route,
	struct cv_error *error)
{
	static const struct cv_param params[] = {
		{"prefix", CV_TEXT, CV_AT(struct route_text, prefix), .required = true},
		{"via", CV_TEXT, CV_AT(struct route_text, via)},
		{"dev", CV_TEXT, CV_AT(struct route_text, dev), .required = true},
		{0},
	};
	char where[CV_WHERE_TEXT];
	const struct cv_where at =
		cv_where_top(cv_route_where(routes, route, where, sizeof(where)), error);
	struct route_text text;

	if (cv_params_read(&at, object, params, &text) != 0 ||
		cv_route_text_prefix(text.prefix, where, &route->prefix, error) != 0 ||
		cv_route_text_port(routes->env, text.dev, where, &route->port, error) != 0)
		return -EINVAL;
	if (text.via == NULL)
		return 0;
	route->kind = CV_ROUTE_VIA;
	return cv_route_text_via(text.via, where, &route->via, error);
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

const struct cv_param cv_routes_params[] = {
	{"routes", CV_LIST, CV_AT(struct cv_routes_config, routes),
		.doc = "PREFIX [via ADDRESS] dev PORT, or mappings"},
	{"routes_file", CV_FILE, CV_AT(struct cv_routes_config, routes_file),
		.doc = "file of such lines, as `ip route` prints them"},
	{"neighbours", CV_LIST, CV_AT(struct cv_routes_config, neighbours),
		.doc = "MAC address of each next hop"},
	{"neighbours_file", CV_FILE, CV_AT(struct cv_routes_config, neighbours_file),
		.doc = "file of ADDRESS MAC lines"},
	{0},
};

int cv_routes_load(struct cv_routes *routes, const struct cv_routes_config *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	*routes = (struct cv_routes){.env = env,
		.file = config->routes_file,
		.neighbours_file = config->neighbours_file};
	for (uint32_t i = 0; i < json_array_size(config->routes); i++) {
		struct cv_route route = {.line = i};

		if (read_route(routes, json_array_get(config->routes, i), &route, error) != 0 ||
			cv_routes_add(routes, &route, error) != 0)
			return -EINVAL;
	}
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

static int compare_routes(const void *a, const void *b)
{
	return cv_prefix_compare(
		&((const struct cv_route *)a)->prefix, &((const struct cv_route *)b)->prefix);
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

	if (routes->routes > 1)
		qsort(routes->route, routes->routes, sizeof(*routes->route), compare_routes);
	if (routes->neighbours > 1)
		qsort(routes->neighbour, routes->neighbours, sizeof(*routes->neighbour),
			compare_neighbours);
	for (size_t i = 1; i < routes->routes; i++) {
		const struct cv_route *one = &routes->route[i - 1], *two = &routes->route[i];
		bool swapped =
			one->from_file == two->from_file ? one->line > two->line : one->from_file;

		if (compare_routes(one, two) != 0)
			continue;
		cv_route_where(routes, swapped ? two : one, first, sizeof(first));
		cv_route_where(routes, swapped ? one : two, second, sizeof(second));
		cv_error_set(error, "%s: a second route to %s, the first is %s; remove one", second,
			cv_prefix_text(&one->prefix, text), first);
		return -EINVAL;
	}
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
	routes->route = NULL;
	routes->neighbour = NULL;
}
