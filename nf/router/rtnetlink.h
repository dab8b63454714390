// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the kernel says of its routes (rtnetlink(7)), and what it is asked. Bytes alone: no socket.
#ifndef CV_RTNETLINK_H
#define CV_RTNETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

#include "nf/router/routes.h"
#include "packet/ether.h"
#include "packet/prefix.h"

struct cv_kernel_next_hop {
	struct cv_address via; // of no meaning unless has_via
	bool has_via;
	bool dead; // its interface is down, or it takes what the router cannot do (encap)
	uint16_t weight;
	int interface; // index; 0: none
};

enum cv_kernel_route_kind {
	CV_KERNEL_UNICAST,
	CV_KERNEL_LOCAL, // an address of the kernel's own
	CV_KERNEL_BLACKHOLE,
	CV_KERNEL_UNREACHABLE,
	CV_KERNEL_PROHIBIT,
};

struct cv_kernel_route {
	struct cv_prefix prefix;
	uint8_t kind; // enum cv_kernel_route_kind
	bool replaces; // what there was of the same prefix and metric
	uint32_t metric; // less is better
	uint32_t hops;
	struct cv_kernel_next_hop hop[CV_ROUTE_PATHS_MAX];
};

// Reads a message of type RTM_NEWROUTE or RTM_DELROUTE, all of whose bytes are there. False: it is
// broken, or of a route that is not the router's business: of another table, for some packets only
// (by TOS), cloned, to groups, to link-local addresses, from the router to itself.
bool cv_rtnetlink_route(const struct nlmsghdr *message, struct cv_kernel_route *route);

// A request in the making.
struct cv_rtnetlink_request {
	struct nlmsghdr header;
	uint8_t bytes[240];
};

// Asks for all routes.
void cv_rtnetlink_dump_routes(struct cv_rtnetlink_request *request, uint32_t sequence);
// Gives an interface its MAC address and MTU, and takes it up: one that asks for no neighbours.
void cv_rtnetlink_set_link(struct cv_rtnetlink_request *request, int interface,
	const uint8_t mac[CV_MAC_LEN], uint32_t mtu);
// Gives an interface an address with its network's length.
void cv_rtnetlink_add_address(struct cv_rtnetlink_request *request, int interface,
	const struct cv_address *address, uint8_t length);

#endif
