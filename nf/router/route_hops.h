// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The adjacencies that mirrored routes lead to, counted: a neighbour stays known, and several next
// hops stay together, as long as a route or a table leads there.
#ifndef CV_ROUTE_HOPS_H
#define CV_ROUTE_HOPS_H

#include <stdint.h>

#include "nf/router/network.h"
#include "nf/router/rtnetlink.h"

struct cv_route_hops {
	struct cv_network *network;
	const struct cv_fib *fib; // whose adjacencies; their places do not change
	int interface[CV_PORTS_MAX]; // of each port, in the kernel; 0: it has none
	uint32_t *users; // of each neighbour, then of each group
};

// Returns 0 or -ENOMEM.
int cv_route_hops_init(
	struct cv_route_hops *hops, struct cv_network *network, const struct cv_fib *fib);
void cv_route_hops_free(struct cv_route_hops *hops);

// The adjacency of a route, which has one user more. A route that cannot be followed, by an interface
// that is no port's or to a next hop on no port's network, leads to CV_FIB_AT_UNREACHABLE: its packets
// must not go where a shorter prefix leads.
uint32_t cv_route_hops_take(struct cv_route_hops *hops, const struct cv_kernel_route *route);

// One user more, and one less: the last one forgets it. No worker reads the adjacency by then.
void cv_route_hops_keep(struct cv_route_hops *hops, uint32_t adjacency);
void cv_route_hops_release(struct cv_route_hops *hops, uint32_t adjacency);

#endif
