// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/network.h"

#include "nf/router/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/neighbour_discovery.h"

#define ANNOUNCEMENTS 2 // RFC 5227 section 1.1: ANNOUNCE_NUM

struct cv_address cv_router_address(bool v6, const void *bytes)
{
	struct cv_address address = {.v6 = v6};

	memcpy(address.bytes, bytes, v6 ? 16 : 4);
	return address;
}

static bool has_link_local(const struct cv_network *network, unsigned port)
{
	return network->link_local[port][0] != 0;
}

size_t cv_network_claims(const struct cv_network *network, struct cv_nf_claim *claims, size_t max)
{
	for (size_t i = 0; i < network->owns && i < max; i++)
		claims[i] = (struct cv_nf_claim){.address = network->own[i].address};
	return network->owns;
}

bool cv_network_own(
	const struct cv_network *network, const struct cv_address *address, unsigned port)
{
	if (address->v6 && cv_ipv6_is_link_local(address->bytes))
		return has_link_local(network, port) &&
		       memcmp(network->link_local[port], address->bytes, 16) == 0;
	for (size_t i = 0; i < network->owns; i++)
		if (network->own[i].port == port &&
			cv_address_compare(&network->own[i].address, address) == 0)
			return true;
	return false;
}

bool cv_network_local(const struct cv_network *network, const struct cv_address *address)
{
	const struct cv_fib *fib = cv_network_fib(network);

	return fib->adjacency[cv_fib_find(fib, address)].outcome == CV_FIB_LOCAL;
}

// The own address on a port, any for -1, whose network has the address. NULL: none.
static const struct cv_own_address *connected(
	const struct cv_network *network, const struct cv_address *address, int port)
{
	const struct cv_routes routes = {.own = network->own, .owns = network->owns};

	return cv_routes_connected(&routes, address, port);
}

bool cv_network_on_link(
	const struct cv_network *network, const struct cv_address *address, unsigned port)
{
	rte_be32_t v4;

	if (address->v6 && cv_ipv6_is_link_local(address->bytes))
		return has_link_local(network, port);
	memcpy(&v4, address->bytes, sizeof(v4));
	if (address->v6 ? cv_ipv6_martian(address->bytes) : cv_ipv4_martian(v4))
		return false;
	return connected(network, address, (int)port) != NULL;
}

const uint8_t *cv_network_source(
	const struct cv_network *network, unsigned port, const struct cv_address *to)
{
	const struct cv_own_address *own = connected(network, to, (int)port), *other = NULL;

	if (to->v6 && cv_ipv6_is_link_local(to->bytes))
		return has_link_local(network, port) ? network->link_local[port] : NULL;
	if (own != NULL)
		return own->address.bytes;
	for (size_t i = 0; i < network->owns; i++) {
		own = &network->own[i];
		if (own->address.v6 == to->v6 && (other == NULL || own->port == port))
			other = own;
		if (other == own && own->port == port)
			break;
	}
	return other != NULL ? other->address.bytes : NULL;
}

static int make_workers(struct cv_network *network, const struct cv_routes_config *config)
{
	size_t size = network->workers * sizeof(*network->worker);

	network->worker = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (network->worker == NULL)
		return -1;
	memset(network->worker, 0, size);
	for (unsigned i = 0; i < network->workers; i++) {
		struct cv_network_worker *worker = &network->worker[i];

		worker->errors = cv_token_bucket(config->icmp_rate, network->hz);
		worker->waits = calloc(network->table.entries_count, sizeof(*worker->waits));
		if (worker->waits == NULL)
			return -1;
	}
	return 0;
}

struct cv_network *cv_network_create(const struct cv_routes *routes,
	const struct cv_fib *const *fib, struct cv_neighbour_table *table,
	const struct cv_routes_config *config, const struct cv_nf_env *env)
{
	struct cv_network *network = calloc(1, sizeof(*network));

	if (network == NULL)
		return NULL;
	network->fib = fib;
	network->table = *table;
	*table = (struct cv_neighbour_table){.entry = NULL};
	network->workers = env->workers;
	network->ports_count = env->ports_count;
	network->hz = network->table.hz;
	network->owns = routes->owns;
	network->own = malloc(routes->owns * sizeof(*network->own));
	if (network->own == NULL || make_workers(network, config) != 0) {
		cv_network_destroy(network);
		return NULL;
	}
	memcpy(network->own, routes->own, routes->owns * sizeof(*network->own));
	return network;
}

void cv_network_start(struct cv_network *network, const struct cv_nf_env *env)
{
	for (unsigned port = 0; port < env->ports_count; port++) {
		memcpy(network->port[port].mac, env->macs[port], CV_MAC_LEN);
		network->port[port].mtu = env->mtus[port];
	}
	for (size_t i = 0; i < network->owns; i++) {
		unsigned port = network->own[i].port;

		if (network->own[i].address.v6)
			cv_ipv6_link_local(network->port[port].mac, network->link_local[port]);
	}
	cv_neighbour_table_start(&network->table, network->port);
}

void cv_network_matches(const struct cv_network *network, struct cv_mac_match *match)
{
	for (size_t i = 0; i < network->owns; i++)
		match[network->own[i].port] =
			cv_mac_match_one(network->port[network->own[i].port].mac);
}

void cv_network_destroy(struct cv_network *network)
{
	if (network == NULL)
		return;
	cv_kernel_destroy(network->kernel);
	for (unsigned i = 0; network->worker != NULL && i < network->workers; i++) {
		struct cv_network_worker *worker = &network->worker[i];

		for (uint32_t w = 0; w < worker->waiting_count; w++)
			cv_nf_free_held(&worker->waiting[w].held);
		for (uint32_t w = 0; worker->left != NULL && w < worker->left->count; w++)
			cv_nf_free_held(&worker->left->waiting[w].held);
		free(worker->left);
		free(worker->waits);
	}
	cv_neighbour_table_free(&network->table);
	free(network->worker);
	free(network->own);
	free(network);
}

// Once, by the worker that comes first: the addresses are announced, and again after two seconds.
static void announce(struct cv_network *network, struct cv_nf_worker *worker)
{
	struct cv_network_worker *own = cv_network_worker_of(network, worker);

	if (own->next_announcement == 0) {
		if (__atomic_exchange_n(&network->announced, 1, __ATOMIC_RELAXED) == 0)
			own->announcements_left = ANNOUNCEMENTS;
		own->next_announcement = worker->now;
	}
	if (own->announcements_left == 0 || worker->now < own->next_announcement)
		return;
	own->announcements_left--;
	own->next_announcement = worker->now + 2 * network->hz;
	cv_network_announce(network, worker);
}

#define EXPIRE_STEP 128u // neighbours looked at in a millisecond

void cv_network_tick(struct cv_network *network, struct cv_nf_worker *worker)
{
	struct cv_network_worker *own = cv_network_worker_of(network, worker);
	struct cv_neighbour_event events[EXPIRE_STEP];
	unsigned count;
	uint32_t changes;

	// Pairs with the release store in cv_network_inherit().
	if (CV_UNLIKELY(__atomic_load_n(&own->left, __ATOMIC_ACQUIRE) != NULL))
		cv_network_wait_on(network, worker);
	// Pairs with enter() in neighbour_table.c: those who waited for it see the new address.
	changes = __atomic_load_n(&network->table.changes, __ATOMIC_ACQUIRE);
	if (CV_UNLIKELY(changes != own->changes)) {
		own->changes = changes;
		cv_network_release(network, worker);
	}
	if (network->kernel != NULL)
		cv_kernel_send(network, worker, worker->now >= own->next_tick);
	if (CV_LIKELY(worker->now < own->next_tick))
		return;
	own->next_tick = worker->now + network->hz / 1000;
	announce(network, worker);
	count = cv_neighbour_table_expire(&network->table, worker->now, EXPIRE_STEP, events);
	for (unsigned i = 0; i < count; i++)
		cv_network_ask(network, worker, &events[i]);
	cv_network_release(network, worker); // those that waited too long
}

static uint64_t sum(const struct cv_network *network, size_t offset)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < network->workers; i++)
		total += __atomic_load_n(
			(const uint64_t *)((const char *)&network->worker[i] + offset),
			__ATOMIC_RELAXED);
	return total;
}

#define SUM(member)                                         \
	json_integer((json_int_t)(network->counted.member + \
				  sum(network, offsetof(struct cv_network_worker, member))))

void cv_network_info(const struct cv_network *network, json_t *info)
{
	json_int_t states[CV_NEIGHBOUR_STATES] = {0};
	char key[40];

	for (uint32_t i = 0; i < network->table.entries_count; i++)
		states[__atomic_load_n(&network->table.entry[i].state, __ATOMIC_RELAXED)]++;
	for (unsigned i = CV_NEIGHBOUR_FREE + 1; i < CV_NEIGHBOUR_STATES; i++) {
		snprintf(key, sizeof(key), "neighbours_%s", cv_neighbour_state_names[i]);
		json_object_set_new(info, key, json_integer(states[i]));
	}
	json_object_set_new(info, "addresses", json_integer((json_int_t)network->owns));
	json_object_set_new(info, "address_conflicts", SUM(conflicts));
	json_object_set_new(info, "solicitations", SUM(solicitations));
	json_object_set_new(info, "answered", SUM(answered));
	json_object_set_new(info, "icmp_errors", SUM(errors_sent));
	json_object_set_new(info, "icmp_errors_limited", SUM(errors_limited));
	json_object_set_new(info, "fragmented", SUM(fragmented));
	if (network->kernel != NULL)
		cv_kernel_info(network->kernel, info);
}
