// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a file of routes or neighbours: read or refused with a reason, and what is read
// keeps what the tables are made on. The first byte says which: even, routes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nf/router/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void check(const struct cv_routes *routes)
{
	for (size_t i = 0; i < routes->routes; i++) {
		const struct cv_route *route = &routes->route[i];
		struct cv_prefix masked = route->prefix;
		char text[CV_PREFIX_TEXT];
		struct cv_prefix again;

		cv_prefix_mask(&masked);
		must(cv_prefix_compare(&masked, &route->prefix) == 0, "no bits behind the length");
		must(cv_prefix_parse(cv_prefix_text(&masked, text), &again) == 0 &&
				cv_prefix_compare(&again, &masked) == 0,
			"a prefix is read as it is written");
		must(route->kind <= CV_ROUTE_PROHIBIT && route->line > 0, "a kind and a line");
		must(route->kind > CV_ROUTE_VIA || route->port < routes->env->ports_count,
			"the port is there");
		must(i == 0 || cv_prefix_compare(&routes->route[i - 1].prefix, &route->prefix) <= 0,
			"sorted; several of one prefix are its next hops");
	}
	for (size_t i = 0; i < routes->neighbours; i++) {
		const struct cv_neighbour *neighbour = &routes->neighbour[i];
		unsigned port = neighbour->port < 0 ? 0 : (unsigned)neighbour->port;
		const struct cv_neighbour *chosen =
			cv_routes_neighbour(routes, &neighbour->address, port);

		must(!(neighbour->mac[0] & 1), "a station's address");
		must(chosen != NULL && (chosen == neighbour || neighbour->port < 0), "it is found");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const ports[] = {"left", "right"};
	static const struct cv_nf_env env = {
		.name = "fuzzed", .workers = 1, .ports = ports, .ports_count = 2};
	struct cv_routes routes = {.env = &env, .file = "routes", .neighbours_file = "neighbours"};
	struct cv_error error = {""};
	FILE *file;
	int rc;

	if (size < 2)
		return 0;
	file = fmemopen((void *)(data + 1), size - 1, "r");
	if (file == NULL)
		return 0;
	rc = data[0] % 2 == 0 ? cv_routes_read(&routes, file, &error)
			      : cv_neighbours_read(&routes, file, &error);
	if (rc == 0)
		rc = cv_routes_sort(&routes, &error);
	must((rc == 0) == (error.text[0] == '\0'), "an error has words");
	if (rc == 0)
		check(&routes);
	cv_routes_free(&routes);
	fclose(file);
	return 0;
}
