// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Routing of IPv4 and IPv6 by longest prefix, as RFC 1812 and RFC 8200 ask of a router's
// forwarding path. There is no slow path: the router answers nobody, sends no ICMP and has no
// address of its own.
//
//   {"routes": [{"prefix": PREFIX, "via": NEXTHOP, "dev": PORT}], "routes_file": PATH,
//    "neighbours": [{"address": ADDRESS, "mac": MAC, "dev": PORT}], "neighbours_file": PATH}
//
//   via         absent: the prefix is on the port's link, packets go to the destination itself
//   routes_file lines as `ip route` prints them (routes.h)
//   neighbours  the MAC addresses of next hops and of hosts on connected prefixes; dev only where
//               one address is on several links
//
// A forwarded packet leaves by the route's port, with the port's address as its source and the
// neighbour's as its destination, a TTL (hop limit) less by one and the checksum to match (RFC
// 1624). VLAN tags stay as they are. Options, fragments and extension headers go untouched; source
// routes are not followed (RFC 1812 section 5.3.13.4 leaves that open): such a packet goes to its
// destination field's address. Bytes behind the IP packet (padding) are kept.
//
// Drops, checked in this order:
//   not_ip        neither IPv4 nor IPv6
//   bad_header    version, header length, total length, or checksum (RFC 1812 section 5.2.2)
//   multicast     a group address as Ethernet (RFC 1812 section 5.3.4) or IP destination
//   martian       a source or destination that is nobody's: 0/8, 127/8, 240/4, a multicast source;
//                 ::, ::1, link-local (RFC 1812 section 5.3.7, RFC 4291). 169.254/16 is forwarded
//                 where a route leads there.
//   ttl_expired   TTL or hop limit 0 or 1
//   no_route      no prefix has the destination, or a blackhole route
//   no_neighbour  the destination is on a connected prefix and its MAC address is not known
#include <stdlib.h>
#include <string.h>

#include "chain/nf.h"
#include "dpdk/compat.h"
#include "nf/router/fib.h"
#include "nf/router/validate.h"
#include "packet/ether.h"
#include "packet/ipv6.h"

// As enum cv_router_drop has them.
static const char *const drops[] = {"not_ip", "bad_header", "multicast", "martian", "ttl_expired",
	"no_route", "no_neighbour", NULL};

struct router {
	struct cv_fib fib;
	cv_router_validate *validate;
};

static void destroy(void *instance)
{
	struct router *router = instance;

	cv_fib_free(&router->fib);
	free(router);
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct router *router = calloc(1, sizeof(*router));
	struct cv_routes routes;
	int rc;

	if (router == NULL)
		return NULL;
	router->validate = cv_router_validate_best();
	rc = cv_routes_load(&routes, config, env, error);
	if (rc == 0)
		rc = cv_fib_make(&router->fib, &routes, error);
	cv_routes_free(&routes);
	if (rc != 0) {
		destroy(router);
		return NULL;
	}
	return router;
}

// Writes the ports' addresses beside those of the next hops.
static void start(void *instance, const struct cv_nf_env *env)
{
	struct router *router = instance;
	struct cv_adjacency *adjacency = router->fib.adjacency;

	for (uint32_t i = 0; i < router->fib.adjacencies; i++)
		if (adjacency[i].outcome == CV_FIB_FORWARD)
			memcpy(adjacency[i].source, env->macs[adjacency[i].port], CV_MAC_LEN);
}

static CV_INLINE uint8_t send_on(struct cv_view *view, const struct cv_adjacency *adjacency)
{
	uint8_t *data = view->data;

	if (CV_UNLIKELY(adjacency->outcome != CV_FIB_FORWARD))
		return adjacency->outcome == CV_FIB_NO_ROUTE ? CV_DROP(CV_ROUTER_NO_ROUTE)
							     : CV_DROP(CV_ROUTER_NO_NEIGHBOUR);
	// Both addresses, in two stores.
	memcpy(data, adjacency, 8);
	memcpy(data + 8, (const uint8_t *)adjacency + 8, 4);
	view->out = adjacency->port;
	return CV_NEXT;
}

// Looks up the IPv6 packets of a burst, those at n places of index.
static CV_INLINE void look_up_ipv6(const struct cv_fib *fib, const struct cv_view *view,
	const uint8_t *index, uint16_t n, uint64_t *adjacency)
{
	struct rte_ipv6_addr destination[CV_BURST_MAX];
	int32_t next_hop[CV_BURST_MAX]; // -1: none

	if (fib->v6 == NULL) {
		memset(next_hop, 0xff, sizeof(next_hop));
	} else {
		for (uint16_t i = 0; i < n; i++) {
			const struct cv_view *v = &view[index[i]];

			memcpy(destination[i].a, ((struct cv_ipv6 *)(v->data + v->l3))->dst, 16);
		}
		rte_lpm6_lookup_bulk_func(fib->v6, destination, next_hop, n);
	}
	for (uint16_t i = 0; i < n; i++)
		adjacency[index[i]] = next_hop[i] < 0 ? fib->v6_default : (uint32_t)next_hop[i];
}

// Validates all headers, looks up all destinations, rewrites all packets: each a short loop whose
// memory accesses do not wait for one another.
// Not CV_HOT: AVX2 makes it slower (own cycles 12.2 -> 12.9 with 10 routes).
static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	const struct router *router = instance;
	const struct cv_adjacency *adjacencies = router->fib.adjacency;
	struct cv_router_validated validated;
	uint64_t adjacency[CV_BURST_MAX];
	uint16_t dropped = 0;

	router->validate(view, verdict, n, &validated);
	if (router->fib.v4 == NULL || validated.v6 == n)
		memset(adjacency, 0, sizeof(adjacency));
	else
		rte_fib_lookup_bulk(router->fib.v4, validated.destination, adjacency, n);
	if (validated.v6 > 0)
		look_up_ipv6(&router->fib, view, validated.v6_index, validated.v6, adjacency);
	for (uint16_t i = 0; i < n; i++) {
		uint8_t what = verdict[i];

		if (CV_LIKELY(what == CV_NEXT))
			what = send_on(&view[i], &adjacencies[adjacency[i]]);
		if (CV_UNLIKELY(what != CV_NEXT)) {
			verdict[i] = what;
			dropped++;
		}
	}
	return dropped;
}

static json_t *info(const void *instance)
{
	const struct cv_fib *fib = &((const struct router *)instance)->fib;

	return json_pack("{s:{s:i,s:i}, s:i, s:i, s:{s:i,s:i}}", "routes", "ipv4", fib->routes_v4,
		"ipv6", fib->routes_v6, "hosts", fib->hosts, "adjacencies", fib->adjacencies,
		"tables", "ipv4", fib->tbl8s_v4, "ipv6", fib->tbl8s_v6);
}

const struct cv_nf cv_nf_router = {
	.name = "router",
	.summary = "Forwards IPv4 and IPv6 by longest prefix; a route names the port that packets "
		   "leave by.",
	.drops = drops,
	.params = cv_routes_params,
	.config_size = sizeof(struct cv_routes_config),
	.create = create,
	.start = start,
	.destroy = destroy,
	.process = process,
	.info = info,
};
