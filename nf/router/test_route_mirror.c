// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Both tables of a mirror lead where the kernel's routes lead, whatever changes come in which order.
#include <string.h>

#include <rte_cycles.h>

#include "nf/router/route_mirror.h"
#include "tests/support/test_packets.h"

#define PREFIXES 300
#define METRICS 3
#define ROUTES 100000

struct rig {
	json_t *addresses;
	struct cv_routes routes;
	struct cv_neighbour_table table;
	struct cv_fib fib[2];
	const struct cv_fib *now;
	struct cv_network *network;
	struct cv_route_mirror *mirror;
};

static const char addresses[] = "{\"left\": [\"10.0.0.1/24\", \"2001:db8:1::1/64\"],"
				"\"right\": [\"192.0.2.1/24\", \"2001:db8:2::1/64\"]}";

// Routers' next hops on both ports: interface 10 is left's, 11 right's. Tables have room for so many
// routes, the mirror for so many entries.
static void begin_with(struct rig *rig, uint32_t routes, uint32_t entries)
{
	const struct cv_nf_env *env = packet_env();
	const struct cv_fib_room room = {routes};
	struct cv_routes_config config = {.neighbour_entries = 64};
	struct cv_error error = {""};

	memset(rig, 0, sizeof(*rig));
	rig->addresses = json_loads(addresses, 0, NULL);
	config.addresses = rig->addresses;
	assert_int_equal(cv_routes_load(&rig->routes, &config, env, &error), 0);
	assert_int_equal(cv_neighbour_table_init(&rig->table, 64, NULL, rte_get_tsc_hz(), NULL), 0);
	if (cv_fib_make(&rig->fib[0], &rig->fib[1], &room, &rig->routes, &rig->table, &error) != 0)
		fail_msg("%s", error.text);
	rig->now = &rig->fib[0];
	rig->network = cv_network_create(&rig->routes, &rig->now, &rig->table, &config, env);
	assert_non_null(rig->network);
	cv_network_start(rig->network, env);
	rig->mirror = cv_route_mirror_create(
		rig->network, rig->fib, &rig->now, entries + rig->fib[0].made_count, env->workers);
	assert_non_null(rig->mirror);
	for (uint32_t i = 0; i < rig->fib[0].made_count; i++)
		assert_int_equal(cv_route_mirror_fix(rig->mirror, &rig->fib[0].made[i]), 0);
	rig->mirror->hops.interface[0] = 10;
	rig->mirror->hops.interface[1] = 11;
}

static void begin(struct rig *rig, uint32_t entries)
{
	begin_with(rig, entries, entries);
}

static void end(struct rig *rig)
{
	cv_route_mirror_destroy(rig->mirror);
	cv_network_destroy(rig->network);
	cv_fib_free(&rig->fib[0]);
	cv_fib_free(&rig->fib[1]);
	cv_routes_free(&rig->routes);
	json_decref(rig->addresses);
}

static void settle(struct rig *rig)
{
	while (cv_route_mirror_step(rig->mirror))
		;
}

static struct cv_kernel_next_hop hop_to(const char *via, int interface)
{
	struct cv_kernel_next_hop hop = {.has_via = true, .weight = 1, .interface = interface};

	assert_int_equal(cv_address_parse(via, &hop.via), 0);
	return hop;
}

// One of some ways to lead a prefix.
static void lead(struct cv_kernel_route *route, unsigned way)
{
	const bool v6 = route->prefix.address.v6;

	route->hops = 1;
	route->kind = CV_KERNEL_UNICAST;
	switch (way) {
	case 0:
		route->hop[0] = hop_to(v6 ? "2001:db8:1::9" : "10.0.0.9", 10);
		break;
	case 1:
		route->hop[0] = hop_to(v6 ? "2001:db8:2::9" : "192.0.2.9", 11);
		break;
	case 2: // both
		route->hop[0] = hop_to(v6 ? "2001:db8:1::9" : "10.0.0.9", 10);
		route->hop[1] = hop_to(v6 ? "2001:db8:2::9" : "192.0.2.9", 11);
		route->hop[1].weight = 3;
		route->hops = 2;
		break;
	case 3: // on the link
		route->hop[0] = (struct cv_kernel_next_hop){.weight = 1, .interface = 11};
		break;
	case 4:
		route->kind = CV_KERNEL_BLACKHOLE;
		break;
	case 5: // by an interface that is no port's
		route->hop[0] = hop_to("203.0.113.1", 99);
		break;
	default:
		route->kind = CV_KERNEL_LOCAL;
	}
}

#define WAYS 7

// The kernel: which way each prefix leads by each metric; -1: it does not.
struct model {
	struct cv_prefix prefix[PREFIXES];
	int8_t way[PREFIXES][METRICS];
};

static struct cv_kernel_route route_of(const struct model *model, unsigned at, unsigned metric)
{
	struct cv_kernel_route route = {.prefix = model->prefix[at], .metric = 10 * (metric + 1)};

	lead(&route, (unsigned)model->way[at][metric]);
	return route;
}

// The best of a prefix's metrics, or -1.
static int best(const struct model *model, unsigned at)
{
	for (int metric = 0; metric < METRICS; metric++)
		if (model->way[at][metric] >= 0)
			return metric;
	return -1;
}

static void dump(struct rig *rig, const struct model *model)
{
	cv_route_mirror_begin(rig->mirror);
	for (unsigned at = 0; at < PREFIXES; at++) {
		for (unsigned metric = 0; metric < METRICS; metric++) {
			if (model->way[at][metric] < 0)
				continue;
			const struct cv_kernel_route route = route_of(model, at, metric);

			assert_true(cv_route_mirror_put(rig->mirror, &route));
		}
	}
	cv_route_mirror_end(rig->mirror);
}

// Prefixes of all lengths in two small parts of the address space, so that they lie in each other.
static void make_prefixes(struct model *model)
{
	memset(model->way, -1, sizeof(model->way));
	for (unsigned at = 0; at < PREFIXES;) {
		struct cv_prefix *prefix = &model->prefix[at];
		bool known = false;

		*prefix = (struct cv_prefix){.address.v6 = rand() % 2};
		prefix->address.bytes[0] = prefix->address.v6 ? 0x24 : 100;
		for (unsigned i = 1; i < (prefix->address.v6 ? 16u : 4u); i++)
			prefix->address.bytes[i] = (uint8_t)(rand() % 3);
		prefix->length = (uint8_t)(rand() % (prefix->address.v6 ? 129 : 33));
		cv_prefix_mask(prefix);
		for (unsigned i = 0; i < at; i++)
			known |= cv_prefix_compare(&model->prefix[i], prefix) == 0;
		at += !known;
	}
}

static uint32_t find(const struct cv_fib *fib, const struct cv_address *address)
{
	uint32_t v4;

	memcpy(&v4, address->bytes, 4);
	return address->v6 ? cv_fib_find_v6(fib, address->bytes)
			   : cv_fib_find_v4(fib, rte_be_to_cpu_32(v4));
}

// What the best route of the longest prefix wants: its adjacency as the mirror names it now.
static uint32_t wanted(struct rig *rig, const struct model *model, const struct cv_address *to)
{
	int longest = -1;
	uint32_t adjacency = CV_FIB_AT_NO_ROUTE;

	for (unsigned at = 0; at < PREFIXES; at++) {
		if (best(model, at) < 0 || !cv_prefix_has(&model->prefix[at], to) ||
			model->prefix[at].length <= longest)
			continue;
		const struct cv_kernel_route route = route_of(model, at, (unsigned)best(model, at));

		longest = model->prefix[at].length;
		adjacency = cv_route_hops_take(&rig->mirror->hops, &route);
		cv_route_hops_release(&rig->mirror->hops, adjacency); // the table keeps it
	}
	return adjacency;
}

static void compare(struct rig *rig, const struct model *model)
{
	for (unsigned i = 0; i < PREFIXES; i++) {
		struct cv_address to = model->prefix[i].address;

		if (rand() % 2)
			to.bytes[to.v6 ? 15 : 3] ^= 1;
		for (unsigned table = 0; table < 2; table++)
			assert_int_equal(find(&rig->fib[table], &to), wanted(rig, model, &to));
	}
}

static void changes_in_any_order(void **state)
{
	static struct model model;
	struct rig rig;
	unsigned dumps = 0;

	srand(7);
	make_prefixes(&model);
	begin(&rig, 1024);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned change = rand() % 60; change > 0; change--) {
			const unsigned at = rand() % PREFIXES, metric = rand() % METRICS;
			int8_t *way = &model.way[at][metric];
			struct cv_kernel_route route;
			bool certain;

			if (*way >= 0 && rand() % 2) {
				route = route_of(&model, at, metric);
				*way = -1;
				certain = cv_route_mirror_remove(rig.mirror, &route);
			} else {
				const bool replaces = *way >= 0;

				*way = (int8_t)(rand() % WAYS);
				route = route_of(&model, at, metric);
				route.replaces = replaces;
				certain = cv_route_mirror_put(rig.mirror, &route);
			}
			if (!certain) {
				dumps++;
				dump(&rig, &model);
			}
		}
		if (rand() % 20 == 0)
			dump(&rig, &model);
		settle(&rig);
		compare(&rig, &model);
	}
	assert_true(dumps > 10);
	assert_int_equal(rig.mirror->refused, 0);
	// All go: no next hop is kept for nothing.
	memset(model.way, -1, sizeof(model.way));
	dump(&rig, &model);
	settle(&rig);
	compare(&rig, &model);
	assert_int_equal(rig.mirror->routes, 0);
	assert_int_equal(rte_hash_count(rig.mirror->index), (int)rig.fib[0].made_count);
	for (uint32_t i = 0; i < 64 + CV_FIB_GROUPS; i++)
		assert_int_equal(rig.mirror->hops.users[i], 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_false(rig.network->table.entry[i].pinned);
	end(&rig);
}

// The table that a worker still reads is not touched before it has left.
static void a_worker_reads_one_table(void **state)
{
	struct cv_kernel_route route = {.prefix = {.length = 16}};
	struct cv_address to;
	const struct cv_fib *held;
	struct rig rig;

	begin(&rig, 1024);
	assert_int_equal(cv_prefix_parse("11.1.0.0/16", &route.prefix), 0);
	assert_int_equal(cv_address_parse("11.1.2.3", &to), 0);
	lead(&route, 1);
	cv_route_mirror_enter(rig.mirror, 0);
	held = rig.now;
	assert_true(cv_route_mirror_put(rig.mirror, &route));
	for (unsigned i = 0; i < 10; i++)
		assert_true(cv_route_mirror_step(rig.mirror));
	assert_ptr_not_equal(rig.now, held);
	assert_int_equal(find(held, &to), CV_FIB_AT_NO_ROUTE);
	assert_int_equal(rig.now->adjacency[find(rig.now, &to)].port, 1);
	cv_route_mirror_leave(rig.mirror, 0);
	assert_false(cv_route_mirror_step(rig.mirror));
	assert_int_equal(find(held, &to), find(rig.now, &to));
	end(&rig);
}

// What the router has itself is not the kernel's to change.
static void own_addresses_stay(void **state)
{
	struct cv_kernel_route route = {.metric = 0};
	struct cv_address to;
	struct rig rig;

	begin(&rig, 1024);
	assert_int_equal(cv_address_parse("192.0.2.1", &to), 0);
	assert_int_equal(cv_prefix_parse("192.0.2.1/32", &route.prefix), 0);
	lead(&route, 0);
	assert_true(cv_route_mirror_put(rig.mirror, &route));
	settle(&rig);
	for (unsigned table = 0; table < 2; table++)
		assert_int_equal(find(&rig.fib[table], &to), CV_FIB_AT_LOCAL);
	end(&rig);
}

static struct cv_prefix numbered(uint32_t i)
{
	struct cv_prefix prefix = {.length = 32};
	const uint32_t v4 = rte_cpu_to_be_32(0x0b000000 + i);

	memcpy(prefix.address.bytes, &v4, sizeof(v4));
	return prefix;
}

// As many as there is room for come and go; one more is refused, and nothing else is harmed.
static void many_routes(void **state)
{
	struct cv_kernel_route route = {.metric = 0};
	struct rig rig;
	uint32_t known;

	begin(&rig, ROUTES);
	for (unsigned again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < ROUTES; i++) {
			route.prefix = numbered(i);
			lead(&route, i % 3);
			assert_true(cv_route_mirror_put(rig.mirror, &route));
		}
		settle(&rig);
		assert_int_equal(rig.mirror->refused, 0);
		assert_int_equal(rig.mirror->routes, ROUTES);
		for (uint32_t i = 0; i < ROUTES; i += 97)
			assert_true(cv_fib_find_v4(rig.now, 0x0b000000 + i) != CV_FIB_AT_NO_ROUTE);
		known = rig.mirror->routes;
		for (uint32_t i = 0; again == 0 && i < ROUTES; i++) {
			route.prefix = numbered(i);
			lead(&route, i % 3);
			assert_true(cv_route_mirror_remove(rig.mirror, &route));
		}
		settle(&rig);
	}
	route.prefix = numbered(ROUTES + 1000000);
	for (uint32_t i = 0; i < 1000; i++) {
		route.prefix = numbered(ROUTES + i);
		assert_true(cv_route_mirror_put(rig.mirror, &route));
	}
	settle(&rig);
	assert_true(rig.mirror->refused > 0);
	assert_true(rig.mirror->routes >= known);
	assert_int_equal(cv_fib_find_v4(rig.now, 0xc0000201), CV_FIB_AT_LOCAL);
	end(&rig);
}

// Puts routes i, from one number to another, in a dump or one by one.
static void put_numbered(struct rig *rig, uint32_t from, uint32_t to, bool dumps)
{
	struct cv_kernel_route route = {.metric = 0};

	if (dumps)
		cv_route_mirror_begin(rig->mirror);
	for (uint32_t i = from; i < to; i++) {
		route.prefix = numbered(i << 8); // none shares a second-level table
		lead(&route, 0);
		assert_true(cv_route_mirror_put(rig->mirror, &route));
	}
	if (dumps)
		cv_route_mirror_end(rig->mirror);
	settle(rig);
}

static void remove_numbered(struct rig *rig, uint32_t from, uint32_t to)
{
	struct cv_kernel_route route = {.metric = 0};

	for (uint32_t i = from; i < to; i++) {
		route.prefix = numbered(i << 8);
		lead(&route, 0);
		assert_true(cv_route_mirror_remove(rig->mirror, &route));
	}
	settle(rig);
}

static uint32_t numbered_there(const struct rig *rig, uint32_t from, uint32_t to)
{
	uint32_t there = 0;

	for (uint32_t i = from; i < to; i++)
		there += cv_fib_find_v4(rig->now, 0x0b000000 + (i << 8)) != CV_FIB_AT_NO_ROUTE;
	return there;
}

// What there was no room for is counted once, and comes when there is room: entries, or tables' places.
static void room_is_found_again(void **state)
{
	for (unsigned tables = 0; tables < 2; tables++) {
		struct rig rig;
		uint32_t fit;

		begin_with(&rig, 64, tables ? 1024 : 64);
		put_numbered(&rig, 0, 200, false);
		fit = numbered_there(&rig, 0, 200);
		assert_in_range(fit, 60, 150);
		assert_int_equal(rig.mirror->refused, 200 - fit);
		for (unsigned again = 0; again < 3; again++) {
			put_numbered(&rig, 0, 200, true);
			assert_int_equal(rig.mirror->refused, 200 - fit);
			assert_false(cv_route_mirror_has_room(rig.mirror));
		}
		remove_numbered(&rig, 0, 160);
		assert_true(cv_route_mirror_has_room(rig.mirror));
		assert_false(cv_route_mirror_has_room(rig.mirror));
		put_numbered(&rig, 160, 200, true); // the dump that is wanted
		assert_int_equal(numbered_there(&rig, 0, 200), 40);
		assert_int_equal(rig.mirror->refused, 0);
		// Nothing is left out any more: what goes is no reason for a dump.
		remove_numbered(&rig, 160, 200);
		assert_false(cv_route_mirror_has_room(rig.mirror));
		end(&rig);
	}
	(void)state;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_in_any_order),
		cmocka_unit_test(a_worker_reads_one_table),
		cmocka_unit_test(own_addresses_stay),
		cmocka_unit_test(many_routes),
		cmocka_unit_test(room_is_found_again),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
