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

#include <stdint.h>

#include <rte_fib.h>
#include <rte_lpm6.h>

#include "nf/router/routes.h"

// What a packet's destination leads to. Adjacency 0 is "no route"; 1 + port is "on this port's
// link, but no neighbour has the address".
struct cv_adjacency {
	uint8_t mac[6]; // of the next hop
	uint8_t source[6]; // of the port: known, and written, when the first packet comes
	uint8_t port;
	uint8_t outcome; // enum cv_fib_outcome
	uint8_t zero[2];
};

_Static_assert(sizeof(struct cv_adjacency) == 16, "four to a cache line");

enum cv_fib_outcome {
	CV_FIB_FORWARD,
	CV_FIB_NO_ROUTE,
	CV_FIB_NO_NEIGHBOUR,
};

struct cv_fib {
	struct rte_fib *v4; // NULL: no IPv4 route; next hops are indices of adjacency
	struct rte_lpm6 *v6; // NULL: no IPv6 route but perhaps a default
	uint32_t v6_default; // adjacency of what v6 does not have: rte_lpm6 takes no ::/0
	struct cv_adjacency *adjacency;
	uint32_t adjacencies;
	uint32_t routes_v4, routes_v6, hosts; // hosts: neighbours on connected prefixes
	uint32_t tbl8s_v4, tbl8s_v6;
};

// Makes the tables. The routes are sorted (cv_routes_sort) and no longer needed afterwards. Every
// next hop must have a neighbour. Needs the EAL. Returns 0 or a negative errno with error set;
// either way *fib is to be freed by cv_fib_free.
int cv_fib_make(struct cv_fib *fib, const struct cv_routes *routes, struct cv_error *error);

void cv_fib_free(struct cv_fib *fib);

#endif
