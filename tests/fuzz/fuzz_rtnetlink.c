// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a message of the kernel about a route, in memory of their exact size: it says nothing, or
// a route whose prefix, metric and next hops are sound, and the same again.
#include <stdlib.h>
#include <string.h>

#include <linux/rtnetlink.h>

#include "nf/router/rtnetlink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct cv_kernel_route *route)
{
	const unsigned bits = route->prefix.address.v6 ? 128 : 32;

	must(route->prefix.length <= bits);
	for (unsigned i = route->prefix.length; i < bits; i++) // nothing behind the prefix
		must((route->prefix.address.bytes[i / 8] >> (7 - i % 8) & 1) == 0);
	must(route->kind <= CV_KERNEL_PROHIBIT);
	must(route->hops <= CV_ROUTE_PATHS_MAX);
	must(route->kind != CV_KERNEL_UNICAST || route->hops > 0);
	for (uint32_t i = 0; i < route->hops; i++)
		must(route->hop[i].weight > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_kernel_route route, again;
	struct nlmsghdr *message;

	if (size < sizeof(*message))
		return 0;
	message = malloc(size);
	memcpy(message, data, size);
	message->nlmsg_len = (uint32_t)size; // who receives it has looked
	message->nlmsg_type = message->nlmsg_type & 1 ? RTM_DELROUTE : RTM_NEWROUTE;
	memset(&route, 0, sizeof(route));
	if (cv_rtnetlink_route(message, &route)) {
		check(&route);
		memset(&again, 0, sizeof(again));
		must(cv_rtnetlink_route(message, &again));
		must(memcmp(&route, &again, sizeof(route)) == 0);
	}
	free(message);
	return 0;
}
