// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Forwarding tables made from routes and neighbours: destination -> adjacency, which is all that a
// packet needs to go on.
//
// IPv4 is rte_fib (DIR-24-8): rte_lpm looks a rule up linearly while adding, so that 300,000 routes
// take 8 s and a million a minute or more; rte_fib takes under 3 s for a million and its tables are
// half as large. IPv6 is rte_lpm6: rte_fib6 sets tables aside for each route as if it shared none
// with its neighbours, and needs gigabytes for what fits rte_lpm6 in 700 MB.
#ifndef CV_FIB_H
#define CV_FIB_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_fib.h>
#include <rte_lpm6.h>

#include "nf/router/adjacency.h"
#include "nf/router/neighbour_table.h"
#include "nf/router/routes.h"

// The first adjacencies. Behind them those of the ports' links and those of learned neighbours.
enum {
	CV_FIB_AT_NO_ROUTE,
	CV_FIB_AT_LOCAL,
	CV_FIB_AT_BROADCAST,
	CV_FIB_AT_BLACKHOLE,
	CV_FIB_AT_UNREACHABLE,
	CV_FIB_AT_PROHIBIT,
	CV_FIB_AT_LINKS, // of port 0, and so on
};

#define CV_FIB_GROUPS 1024u // sets of next hops that tables which change may lead to

// Room in tables that change while workers read them (route_mirror.h).
struct cv_fib_room {
	uint32_t routes; // of either family; 0: the tables stay as they are
};

struct cv_fib {
	struct rte_fib *v4; // NULL: no IPv4 route; next hops are indices of adjacency
	struct rte_lpm6 *v6; // NULL: no IPv6 route but perhaps a default
	uint32_t v6_default; // adjacency of what v6 does not have: rte_lpm6 takes no ::/0
	struct cv_adjacency *adjacency;
	uint32_t adjacencies;
	uint32_t neighbours_at; // the adjacency of the neighbour table's first entry
	uint32_t *path; // adjacencies of the next hops of CV_FIB_PATHS
	uint32_t paths;
	uint32_t groups_at; // the adjacency of the first of CV_FIB_GROUPS; 0: there are none
	uint64_t flow_key; // random: nobody can choose flows that all take one next hop
	uint32_t routes_v4, routes_v6, hosts; // hosts: neighbours on connected prefixes
	uint32_t own; // entries for the router's own addresses
	uint32_t tbl8s_v4, tbl8s_v6;
	struct cv_prefix *made; // with room: what the tables had at first, and is not to change
	uint32_t made_count;
	bool shares; // adjacency, path and made are another's
};

// Makes the tables. The routes are sorted (cv_routes_sort) and no longer needed afterwards. A next hop
// that is not among the neighbours must be in a network of one of the router's addresses: table, whose
// entries are all free and which has no adjacencies yet, learns it; NULL: there are no addresses.
// Needs the EAL. Returns 0 or a negative errno with error set; either way *fib is to be freed by
// cv_fib_free.
// With room, both families' tables are made, and twin becomes a second pair of tables with the same
// adjacencies, to be freed as well.
int cv_fib_make(struct cv_fib *fib, struct cv_fib *twin, const struct cv_fib_room *room,
	const struct cv_routes *routes, struct cv_neighbour_table *table, struct cv_error *error);

// Has a prefix lead to an adjacency; CV_FIB_AT_NO_ROUTE: it is taken out. 0, or a negative errno: there
// is no room, and nothing has changed. Nobody reads the tables meanwhile.
int cv_fib_change(struct cv_fib *fib, const struct cv_prefix *prefix, uint32_t adjacency);

// The adjacency of one destination: an IPv4 address in host order; an IPv6 address.
uint32_t cv_fib_find_v4(const struct cv_fib *fib, uint32_t address);
uint32_t cv_fib_find_v6(const struct cv_fib *fib, const uint8_t *address);
uint32_t cv_fib_find(const struct cv_fib *fib, const struct cv_address *address);

void cv_fib_free(struct cv_fib *fib);

#endif
