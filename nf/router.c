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
// Drops, judged in this order:
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

#include "ether.h"
#include "fib.h"
#include "ipv4.h"
#include "ipv6.h"
#include "nf.h"

enum drop {
	NOT_IP,
	BAD_HEADER,
	MULTICAST,
	MARTIAN,
	TTL_EXPIRED,
	NO_ROUTE,
	NO_NEIGHBOUR,
};

static const char *const drops[] = {"not_ip", "bad_header", "multicast", "martian", "ttl_expired",
	"no_route", "no_neighbour", NULL};

struct router {
	const uint8_t (*macs)[CV_MAC_LEN]; // of the ports
	struct cv_fib fib;
};

static void destroy(void *instance)
{
	struct router *router = instance;

	cv_fib_free(&router->fib);
	free(router);
}

static void *create(const json_t *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct router *router = calloc(1, sizeof(*router));
	struct cv_routes routes;
	int rc;

	if (router == NULL) {
		cv_error_set(error, "%s: out of memory", env->name);
		return NULL;
	}
	router->macs = env->macs;
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

// The packets of a burst that are still to be routed, one family.
struct batch {
	uint16_t n;
	uint8_t index[CV_BURST_MAX]; // in the burst
};

static CV_INLINE uint8_t judge_ipv4(const struct cv_view *view)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(view->data + view->l3);

	if (CV_UNLIKELY(cv_ipv4_check(ip, view->len - view->l3) == 0))
		return CV_DROP(BAD_HEADER);
	if (CV_UNLIKELY(cv_mac_group(view->data)))
		return CV_DROP(MULTICAST);
	if (CV_UNLIKELY(cv_ipv4_martian(ip->src) || cv_ipv4_martian(ip->dst)))
		return cv_ipv4_multicast(ip->dst) ? CV_DROP(MULTICAST) : CV_DROP(MARTIAN);
	if (CV_UNLIKELY(ip->ttl <= 1))
		return CV_DROP(TTL_EXPIRED);
	return CV_NEXT;
}

static CV_INLINE uint8_t judge_ipv6(const struct cv_view *view)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)(view->data + view->l3);

	if (CV_UNLIKELY(!cv_ipv6_check(ip, view->len - view->l3)))
		return CV_DROP(BAD_HEADER);
	if (CV_UNLIKELY(cv_mac_group(view->data)))
		return CV_DROP(MULTICAST);
	if (CV_UNLIKELY(cv_ipv6_martian(ip->src) || cv_ipv6_martian(ip->dst)))
		return cv_ipv6_multicast(ip->dst) ? CV_DROP(MULTICAST) : CV_DROP(MARTIAN);
	if (CV_UNLIKELY(ip->hop_limit <= 1))
		return CV_DROP(TTL_EXPIRED);
	return CV_NEXT;
}

static CV_INLINE uint8_t send_on(
	const struct router *router, struct cv_view *view, const struct cv_adjacency *adjacency)
{
	if (CV_UNLIKELY(adjacency->outcome != CV_FIB_FORWARD))
		return adjacency->outcome == CV_FIB_NO_ROUTE ? CV_DROP(NO_ROUTE)
							     : CV_DROP(NO_NEIGHBOUR);
	memcpy(view->data, adjacency->mac, CV_MAC_LEN);
	memcpy(view->data + CV_MAC_LEN, router->macs[adjacency->port], CV_MAC_LEN);
	view->out = adjacency->port;
	return CV_NEXT;
}

// Looks up and rewrites the IPv4 packets of a burst. Returns how many were dropped.
static CV_INLINE uint16_t route_ipv4(const struct router *router, struct cv_view *view,
	uint8_t *verdict, const struct batch *batch, uint32_t *destination)
{
	uint64_t hop[CV_BURST_MAX];
	uint16_t dropped = 0;

	if (router->fib.v4 == NULL)
		memset(hop, 0, sizeof(hop));
	else
		rte_fib_lookup_bulk(router->fib.v4, destination, hop, batch->n);
	for (uint16_t i = 0; i < batch->n; i++) {
		struct cv_view *v = &view[batch->index[i]];
		uint8_t judged = send_on(router, v, &router->fib.adjacency[hop[i]]);

		if (CV_LIKELY(judged == CV_NEXT))
			cv_ipv4_ttl_decrement((struct cv_ipv4 *)(v->data + v->l3));
		verdict[batch->index[i]] = judged;
		dropped += judged != CV_NEXT;
	}
	return dropped;
}

static CV_INLINE uint16_t route_ipv6(const struct router *router, struct cv_view *view,
	uint8_t *verdict, const struct batch *batch)
{
	uint8_t destination[CV_BURST_MAX][16];
	int32_t hop[CV_BURST_MAX]; // -1: none
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < batch->n; i++) {
		const struct cv_view *v = &view[batch->index[i]];

		memcpy(destination[i], ((const struct cv_ipv6 *)(v->data + v->l3))->dst, 16);
	}
	if (router->fib.v6 == NULL)
		memset(hop, 0xff, sizeof(hop));
	else
		rte_lpm6_lookup_bulk_func(router->fib.v6, destination, hop, batch->n);
	for (uint16_t i = 0; i < batch->n; i++) {
		struct cv_view *v = &view[batch->index[i]];
		uint32_t adjacency = hop[i] < 0 ? router->fib.v6_default : (uint32_t)hop[i];
		uint8_t judged = send_on(router, v, &router->fib.adjacency[adjacency]);

		if (CV_LIKELY(judged == CV_NEXT))
			((struct cv_ipv6 *)(v->data + v->l3))->hop_limit--;
		verdict[batch->index[i]] = judged;
		dropped += judged != CV_NEXT;
	}
	return dropped;
}

CV_HOT static uint16_t process(
	void *instance, unsigned worker, struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	const struct router *router = instance;
	uint32_t destination[CV_BURST_MAX];
	struct batch v4, v6;
	uint16_t dropped = 0;

	v4.n = 0;
	v6.n = 0;
	for (uint16_t i = 0; i < n; i++) {
		uint8_t judged;

		if (CV_LIKELY(view[i].proto == CV_PROTO_IPV4)) {
			const struct cv_ipv4 *ip =
				(const struct cv_ipv4 *)(view[i].data + view[i].l3);

			judged = judge_ipv4(&view[i]);
			if (CV_LIKELY(judged == CV_NEXT)) {
				destination[v4.n] = rte_be_to_cpu_32(ip->dst);
				v4.index[v4.n++] = (uint8_t)i;
			}
		} else if (view[i].proto == CV_PROTO_IPV6) {
			judged = judge_ipv6(&view[i]);
			if (CV_LIKELY(judged == CV_NEXT))
				v6.index[v6.n++] = (uint8_t)i;
		} else {
			judged = CV_DROP(NOT_IP);
		}
		verdict[i] = judged;
		dropped += judged != CV_NEXT;
	}
	if (v4.n > 0)
		dropped += route_ipv4(router, view, verdict, &v4, destination);
	if (v6.n > 0)
		dropped += route_ipv6(router, view, verdict, &v6);
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
	.summary = "routes IPv4 and IPv6 by longest prefix",
	.drops = drops,
	.create = create,
	.destroy = destroy,
	.process = process,
	.info = info,
};
