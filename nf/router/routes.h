// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A router's routes and neighbours as they are configured: in the plan, or in files with lines as
// `ip route`, `ip -6 route` and `ip neighbour` print them.
//
//   PREFIX [via NEXTHOP] [dev PORT]     what else such a line says (proto, metric …) is skipped
//   PREFIX nexthop via NEXTHOP [dev PORT] nexthop via NEXTHOP [dev PORT] …
//   default via NEXTHOP [dev PORT]      IPv6 if the next hop is, else IPv4
//   blackhole|unreachable|prohibit PREFIX
//   ADDRESS [dev PORT] [lladdr] MAC     a neighbour; its state (REACHABLE …) is skipped
//
// Without dev the port is the one whose addresses' network has the next hop. A line that begins with
// "nexthop" is one more next hop of the route before it.
//
// Routes to link-local and multicast prefixes, which `ip -6 route` prints for every interface,
// are accepted and forgotten: a router does not forward there. Empty lines and lines that begin
// with # are skipped.
#ifndef CV_ROUTES_H
#define CV_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chain/nf.h"
#include "packet/prefix.h"

#define CV_WHERE_TEXT 300 // bytes that hold where something was written
#define CV_ROUTE_PATHS_MAX 64 // next hops of one route
#define CV_OWN_ADDRESSES_MAX 1024

enum cv_route_kind {
	CV_ROUTE_CONNECTED, // packets go to the destination itself
	CV_ROUTE_VIA, // packets go to the next hop
	CV_ROUTE_BLACKHOLE,
	CV_ROUTE_UNREACHABLE,
	CV_ROUTE_PROHIBIT,
};

// Several of one prefix from one place are the next hops of one route.
struct cv_route {
	struct cv_prefix prefix;
	struct cv_address via;
	uint8_t kind;
	uint8_t port; // index; of no meaning where packets go nowhere
	bool from_file;
	bool implied; // the network of an address; line is the address's index
	uint32_t line; // of the file, from 1; or index in the plan, from 0
};

// An address of the router's own.
struct cv_own_address {
	struct cv_address address;
	uint8_t length; // of its network's prefix
	uint8_t port; // index
};

struct cv_neighbour {
	struct cv_address address;
	uint8_t mac[6];
	int16_t port; // index; -1: not said
	bool from_file;
	uint32_t line;
};

// Owns its arrays; config and env must outlive it (texts for errors).
struct cv_routes {
	struct cv_route *route; // sorted by family, address and length once complete
	size_t routes;
	size_t routes_room;
	struct cv_neighbour *neighbour; // sorted by address once complete
	size_t neighbours;
	size_t neighbours_room;
	struct cv_own_address *own;
	size_t owns;
	size_t owns_room;
	const char *file; // of routes; NULL: none
	const char *neighbours_file;
	const struct cv_nf_env *env;
};

// The router's parameters.
struct cv_routes_config {
	const json_t *addresses, *routes, *neighbours;
	const char *routes_file, *neighbours_file;
	uint32_t neighbour_entries;
	uint32_t icmp_rate; // errors per second
	const char *kernel; // the namespace whose routes are mirrored; NULL: routes has them
	uint32_t route_entries; // of the kernel's
};

extern const struct cv_param cv_routes_params[];

// Reads what config has, sorts it and refuses duplicates. Returns 0 or a negative errno with error
// set; either way *routes is to be freed by cv_routes_free.
int cv_routes_load(struct cv_routes *routes, const struct cv_routes_config *config,
	const struct cv_nf_env *env, struct cv_error *error);

int cv_routes_add(struct cv_routes *routes, const struct cv_route *route, struct cv_error *error);
int cv_neighbours_add(
	struct cv_routes *routes, const struct cv_neighbour *neighbour, struct cv_error *error);

// Adds the routes (neighbours) of a file that is open; it is known as routes->file
// (routes->neighbours_file) in errors. Memory is bounded by the number of lines. Returns 0 or a
// negative errno with error set.
int cv_routes_read(struct cv_routes *routes, FILE *file, struct cv_error *error);
int cv_neighbours_read(struct cv_routes *routes, FILE *file, struct cv_error *error);

// Sorts, and refuses two routes to one prefix and two neighbours of one address and port.
int cv_routes_sort(struct cv_routes *routes, struct cv_error *error);

// The address of the router's own whose network has this one, the longest; on a port, or on any:
// -1. NULL: none.
const struct cv_own_address *cv_routes_connected(
	const struct cv_routes *routes, const struct cv_address *address, int port);

// Finds the port of a route that names none, by its next hop. 0, or -EINVAL with error set.
int cv_route_find_port(const struct cv_routes *routes, struct cv_route *route, const char *where,
	struct cv_error *error);

// The neighbour with this address that is reached by port, or NULL. The routes are sorted.
const struct cv_neighbour *cv_routes_neighbour(
	const struct cv_routes *routes, const struct cv_address *address, unsigned port);

// Whether two routes of one prefix are next hops of one route.
static inline bool cv_route_same(const struct cv_route *a, const struct cv_route *b)
{
	return a->from_file == b->from_file && a->implied == b->implied && a->line == b->line;
}

// Where a route (neighbour) was written: "FILE:LINE" or "NAME: routes[INDEX]". Returns text.
const char *cv_route_where(
	const struct cv_routes *routes, const struct cv_route *route, char *text, size_t size);
const char *cv_neighbour_where(const struct cv_routes *routes, const struct cv_neighbour *neighbour,
	char *text, size_t size);

void cv_routes_free(struct cv_routes *routes);

#endif
