// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Routing of IPv4 and IPv6 by longest prefix, as RFC 1812 and RFC 8200 ask of a router's
// forwarding path. With addresses it lives in its networks as well (network.h); without, it answers
// nobody and all MAC addresses are given.
//
//   {"addresses": {PORT: [ADDRESS/LENGTH]},
//    "routes": [{"prefix": PREFIX, "via": NEXTHOP, "dev": PORT}], "routes_file": PATH,
//    or "routes": {"kernel": NETNS},
//    "neighbours": [{"address": ADDRESS, "mac": MAC, "dev": PORT}], "neighbours_file": PATH}
//
//   addresses   of its own; their networks are routes
//   via         absent: the prefix is on the port's link, packets go to the destination itself.
//               "nexthops": [{"via": NEXTHOP, "dev": PORT}] for several, "type": "blackhole",
//               "unreachable" or "prohibit" for none
//   dev         absent: the port whose addresses' networks have the next hop
//   routes_file lines as `ip route` prints them (routes.h)
//   neighbours  the MAC addresses of next hops and of hosts on connected prefixes that are not asked
//               for; dev only where one address is on several links
//
// A forwarded packet leaves by the route's port, with the port's address as its source and the
// neighbour's as its destination, a TTL (hop limit) less by one and the checksum to match (RFC
// 1624). VLAN tags stay as they are. Options, fragments and extension headers go untouched; source
// routes are not followed (RFC 1812 section 5.3.13.4 leaves that open): such a packet goes to its
// destination field's address. Bytes behind the IP packet (padding) are kept.
//
// Drops, checked in this order:
//   not_ip        neither IPv4 nor IPv6 (nor ARP, with addresses)
//   bad_header    version, header length, total length, or checksum (RFC 1812 section 5.2.2)
//   multicast     a group address as Ethernet (RFC 1812 section 5.3.4) or IP destination; with
//                 addresses also the broadcast address of a connected network
//   martian       a source or destination that is nobody's: 0/8, 127/8, 240/4, a multicast source;
//                 ::, ::1, link-local (RFC 1812 section 5.3.7, RFC 4291). 169.254/16 is forwarded
//                 where a route leads there.
//   ttl_expired   TTL or hop limit 0 or 1
//   no_route      no prefix has the destination, or a route that leads nowhere
//   no_neighbour  the destination is on a connected prefix and its MAC address is not known
//
// With addresses only:
//   other_mac     sent to a MAC address that is not the port's
//   too_big       longer than the next port's MTU, and not to be fragmented
//   not_served    to one of its addresses, and nothing there answers; or a fragment to it
//   wait_full     too many packets wait for neighbours already
//   no_buffer     no room for an answer or a fragment
//   punt_full     to the kernel (routes: kernel), which has not taken the last 256 yet
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "chain/nf.h"
#include "dpdk/compat.h"
#include "nf/router/explain.h"
#include "nf/router/fib.h"
#include "nf/router/kernel.h"
#include "nf/router/network.h"
#include "nf/router/paths.h"
#include "nf/router/validate.h"
#include "packet/ether.h"
#include "packet/ipv6.h"

// As enum cv_router_drop has them.
static const char *const drops[] = {"not_ip", "bad_header", "multicast", "martian", "ttl_expired",
	"no_route", "no_neighbour", "other_mac", "too_big", "not_served", "wait_full", "no_buffer",
	"punt_full", NULL};

struct router {
	struct cv_fib fib[2]; // the second where routes are mirrored
	const struct cv_fib *now; // which changes then
	struct cv_route_mirror *mirror; // NULL: they stay; the network's
	cv_router_validate *validate;
	struct cv_network *network; // NULL: it has no addresses
	struct cv_mac_match match[CV_PORTS_MAX]; // what each port takes in
};

static void destroy(void *instance)
{
	struct router *router = instance;

	cv_network_destroy(router->network);
	cv_fib_free(&router->fib[0]);
	cv_fib_free(&router->fib[1]);
	free(router);
}

// Has the kernel's routes mirrored in the tables. What they have already stays. 0 or -ENOMEM.
static int mirror(struct router *router, const struct cv_routes *routes,
	const struct cv_routes_config *config, const struct cv_nf_env *env)
{
	const struct cv_fib *fib = &router->fib[0];

	router->mirror = cv_route_mirror_create(router->network, router->fib, &router->now,
		config->route_entries + fib->made_count, env->workers);
	if (router->mirror == NULL)
		return -ENOMEM;
	router->network->kernel =
		cv_kernel_create(router->network, router->mirror, config->kernel, env);
	if (router->network->kernel == NULL) {
		cv_route_mirror_destroy(router->mirror);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < fib->made_count; i++)
		if (cv_route_mirror_fix(router->mirror, &fib->made[i]) != 0)
			return -ENOMEM;
	return 0;
}

// Makes the tables of what was read, and the life in its networks. 0, or a negative errno with error
// set unless it is for want of memory.
static int make(struct router *router, const struct cv_routes *routes,
	const struct cv_routes_config *config, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct cv_fib_room room = {config->kernel != NULL ? config->route_entries : 0};
	struct cv_neighbour_table table = {.entry = NULL};
	int rc = 0;

	if (routes->owns > 0)
		rc = cv_neighbour_table_init(
			&table, config->neighbour_entries, NULL, rte_get_tsc_hz(), NULL);
	if (rc == 0)
		rc = cv_fib_make(&router->fib[0], &router->fib[1], &room, routes,
			routes->owns > 0 ? &table : NULL, error);
	if (rc == 0 && routes->owns > 0) {
		router->network = cv_network_create(routes, &router->now, &table, config, env);
		rc = router->network != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0 && config->kernel != NULL)
		rc = mirror(router, routes, config, env);
	cv_neighbour_table_free(&table);
	return rc;
}

// The interfaces are made once, while the node has the rights to.
static int refuse_to_change(
	const struct cv_routes_config *config, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct router *running = env->running;

	if (running == NULL || (running->mirror == NULL && config->kernel == NULL))
		return 0;
	cv_error_set(error,
		"%s: routes: kernel: a router with them cannot be changed while it runs; start the "
		"node again",
		env->name);
	return -EINVAL;
}

static void *create(const void *config, const struct cv_nf_env *env, struct cv_error *error)
{
	struct router *router = calloc(1, sizeof(*router));
	struct cv_routes routes = {.env = env};
	int rc;

	if (router == NULL)
		return NULL;
	router->now = &router->fib[0];
	router->validate = cv_router_validate_best();
	rc = refuse_to_change(config, env, error);
	if (rc == 0)
		rc = cv_routes_load(&routes, config, env, error);
	if (rc == 0)
		rc = make(router, &routes, config, env, error);
	cv_routes_free(&routes);
	if (rc != 0) {
		destroy(router);
		return NULL;
	}
	return router;
}

static size_t claims(const void *instance, struct cv_nf_claim *of, size_t max)
{
	const struct router *router = instance;

	return router->network == NULL ? 0 : cv_network_claims(router->network, of, max);
}

// Writes the ports' addresses beside those of the next hops, and what fits through.
static void start(void *instance, const struct cv_nf_env *env)
{
	struct router *router = instance;
	const struct router *running = env->running;
	struct cv_adjacency *adjacency = router->fib[0].adjacency;

	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		router->match[i] = cv_mac_match_any();
	for (uint32_t i = 0; i < router->fib[0].adjacencies; i++) {
		if (adjacency[i].outcome != CV_FIB_FORWARD)
			continue;
		memcpy(adjacency[i].source, env->macs[adjacency[i].port], CV_MAC_LEN);
		// Without addresses nobody could be told, and nothing is fragmented.
		adjacency[i].mtu =
			router->network != NULL ? env->mtus[adjacency[i].port] : UINT16_MAX;
	}
	if (router->network == NULL)
		return;
	cv_network_start(router->network, env);
	if (running != NULL && running->network != NULL)
		cv_network_copy_neighbours(router->network, running->network);
	cv_network_matches(router->network, router->match);
}

static void inherit(void *instance, void *before)
{
	struct router *router = instance;

	if (router->network != NULL && ((struct router *)before)->network != NULL)
		cv_network_inherit(router->network, ((struct router *)before)->network);
}

static int attach(void *instance, const struct cv_nf_env *env, struct cv_error *error)
{
	const struct router *router = instance;

	return router->mirror != NULL ? cv_kernel_attach(router->network->kernel, env, error) : 0;
}

// Sends a packet of this many bytes of layer 3, or fewer, on if it may go straight: no longer than the
// next port takes, its next hop's MAC address known. False: it is as it was.
static CV_INLINE bool send_on(
	struct cv_view *view, const struct cv_adjacency *adjacency, uint32_t bytes)
{
	uint8_t *data = view->data;
	uint64_t word;

	// The acquire load pairs with neighbour_table.c's publish(): what follows is the address.
	if (CV_UNLIKELY(bytes > __atomic_load_n(&adjacency->mtu, __ATOMIC_ACQUIRE)))
		return false;
	// Both addresses, in two stores.
	word = __atomic_load_n(&adjacency->word, __ATOMIC_RELAXED);
	memcpy(data, &word, 8);
	memcpy(data + 8, (const uint8_t *)adjacency + 8, 4);
	view->out = adjacency->port;
	return true;
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

// What becomes of packets that lead nowhere, where nobody is told.
static uint8_t nowhere(const struct cv_adjacency *adjacency)
{
	return adjacency->outcome == CV_FIB_LINK ? CV_DROP(CV_ROUTER_NO_NEIGHBOUR)
						 : CV_DROP(CV_ROUTER_NO_ROUTE);
}

// The verdict of a packet that does not go straight on.
static __attribute__((noinline)) uint8_t slow(struct router *router, struct cv_nf_worker *worker,
	struct cv_view *view, uint8_t verdict, uint32_t at)
{
	const struct cv_fib *fib = __atomic_load_n(&router->now, __ATOMIC_ACQUIRE);
	const uint32_t bytes = view->len - view->l3;

	// Only another packet of the burst is too long.
	if (verdict == CV_NEXT && send_on(view, &fib->adjacency[at], bytes))
		return CV_NEXT;
	if (verdict == CV_NEXT && fib->adjacency[at].outcome == CV_FIB_PATHS) {
		uint32_t chosen = cv_paths_choose(fib, at, cv_paths_flow(view, fib->flow_key));

		if (send_on(view, &fib->adjacency[chosen], bytes))
			return CV_NEXT;
		if (router->network == NULL)
			return nowhere(&fib->adjacency[chosen]);
	}
	if (router->network != NULL)
		return cv_network_process(router->network, worker, view, verdict, at);
	return verdict == CV_NEXT ? nowhere(&fib->adjacency[at]) : verdict;
}

// Rewrites the packets of a burst. all: no verdict needs to be looked at first.
static CV_INLINE uint16_t send_all(struct router *router, struct cv_nf_worker *worker,
	const struct cv_adjacency *adjacencies, struct cv_view *view, uint8_t *verdict,
	const uint64_t *adjacency, uint32_t longest, uint16_t n, bool all)
{
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		if ((all || CV_LIKELY(verdict[i] == CV_NEXT)) &&
			CV_LIKELY(send_on(&view[i], &adjacencies[adjacency[i]], longest)))
			continue;
		verdict[i] = slow(router, worker, &view[i], verdict[i], (uint32_t)adjacency[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}

// Validates all headers, looks up all destinations, rewrites all packets: each a short loop whose
// memory accesses do not wait for one another.
// Not CV_HOT: AVX2 makes it slower (own cycles 12.2 -> 12.9 with 10 routes).
static uint16_t process(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct router *router = instance;
	struct cv_router_validated validated;
	uint64_t adjacency[CV_BURST_MAX];
	const struct cv_fib *fib;

	if (CV_UNLIKELY(router->mirror != NULL))
		cv_route_mirror_enter(router->mirror, worker->index);
	// Pairs with the release store in route_mirror.c.
	fib = __atomic_load_n(&router->now, __ATOMIC_ACQUIRE);
	router->validate(view, router->match, verdict, n, &validated);
	if (fib->v4 == NULL || validated.v6 == n)
		memset(adjacency, 0, sizeof(adjacency));
	else
		rte_fib_lookup_bulk(fib->v4, validated.destination, adjacency, n);
	if (validated.v6 > 0)
		look_up_ipv6(fib, view, validated.v6_index, validated.v6, adjacency);
	if (CV_LIKELY(validated.all))
		return send_all(router, worker, fib->adjacency, view, verdict, adjacency,
			validated.longest, n, true);
	return send_all(router, worker, fib->adjacency, view, verdict, adjacency, validated.longest,
		n, false);
}

static void tick(void *instance, struct cv_nf_worker *worker)
{
	const struct router *router = instance;

	if (router->network != NULL)
		cv_network_tick(router->network, worker);
	if (router->mirror != NULL)
		cv_route_mirror_leave(router->mirror, worker->index);
}

static json_t *info(const void *instance)
{
	const struct router *router = instance;
	const struct cv_fib *fib = &router->fib[0];
	json_t *known = json_pack("{s:{s:i,s:i}, s:i, s:i, s:{s:i,s:i}}", "routes", "ipv4",
		fib->routes_v4, "ipv6", fib->routes_v6, "hosts", fib->hosts, "adjacencies",
		fib->adjacencies, "tables", "ipv4", fib->tbl8s_v4, "ipv6", fib->tbl8s_v6);

	if (router->network != NULL)
		cv_network_info(router->network, known);
	return known;
}

static void explain(const void *instance, const struct cv_nf_worker *worker,
	const struct cv_view *view, struct cv_nf_because *because)
{
	const struct router *router = instance;

	if (router->mirror != NULL)
		cv_route_mirror_enter(router->mirror, worker->index);
	cv_fib_explain(__atomic_load_n(&router->now, __ATOMIC_ACQUIRE), view, because);
}

static void in_words(const void *instance, const struct cv_nf_env *env,
	const struct cv_nf_because *because, char *words, size_t room)
{
	const struct router *router = instance;

	cv_fib_in_words(&router->fib[0], router->mirror != NULL,
		router->network == NULL ? NULL : &router->network->table, env->ports, because,
		words, room);
}

const struct cv_nf cv_nf_router = {
	.name = "router",
	.summary = "Forwards IPv4 and IPv6 by longest prefix; with addresses it lives in networks.",
	.drops = drops,
	.params = cv_routes_params,
	.config_size = sizeof(struct cv_routes_config),
	.create = create,
	.claims = claims,
	.start = start,
	.attach = attach,
	.destroy = destroy,
	.inherit = inherit,
	.process = process,
	.explain = explain,
	.in_words = in_words,
	.tick = tick,
	.info = info,
};
