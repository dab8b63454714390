// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows of a nat that was killed: they keep their external ports, and others get other ones. Whatever is in
// its memory, ports and mappings are all given back when the flows have ended.
#include "nf/nat/test_flows.h"

#include <stdlib.h>

#include "flow/restore.h"

#define ROUNDS 150u
#define REST                                                                    \
	"\"ports\": \"1024-1535\", \"block_size\": 64, \"block_rest_s\": 100, " \
	"\"blocks_per_subscriber\": 2, \"mappings\": 96, "
#define LISTS \
	"{\"inside\": [\"10.0.0.0/8\"], \"outside\": [\"right\"], \"pool\": [\"198.51.100.1\"], "

static const char by_address[] = LISTS REST "\"filtering\": \"address-dependent\"}";
static const char anywhere[] = LISTS REST "\"forwards\": [{\"proto\": \"udp\", \"external\": "
					  "\"198.51.100.1\", \"port\": 99, \"to\": \"10.0.0.9\"}]}";
static const char each[] = LISTS REST "\"mapping\": "
				      "\"address-and-port-dependent\", \"filtering\": "
				      "\"address-and-port-dependent\"}";

static void make(struct net *net, const char *config)
{
	net_make_of(net, packet_nf_alone(&cv_nf_nat, config), 0, 64);
	if (can(net))
		assert_true(cv_flow_zone_store(net->zone) >= 0);
}

// Another process, some time later: what is known again there.
static struct cv_flow_restored restart(const struct net *old, struct net *new, const char *config)
{
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};

	make(new, config);
	new->worker.now = old->worker.now + 2ull * TSC_HZ;
	if (cv_nat_kept.restore_begin(new->nat, cv_nat_kept.store(old->nat), &error) != 0 ||
		cv_flow_zone_restore(new->zone, &new->worker, old->zone->memory.fd, CV_FLOW_KEPT,
			&restored, &error) != 0)
		fail_msg("%s", error.text);
	cv_nat_kept.restore_end(new->nat, &new->worker);
	return restored;
}

// splitmix64
static uint64_t next_random(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

// The same, but that flows come back as packets ask for them, in any order.
static struct cv_flow_restored restart_later(
	const struct net *old, struct net *new, const char *config, const struct flows *flows)
{
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};
	uint64_t seed = old->worker.now;

	make(new, config);
	new->worker.now = old->worker.now + 2ull * TSC_HZ;
	assert_int_equal(
		cv_flow_zone_restores_later(new->zone, old->zone->memory.fd), CV_FLOW_LATER_ALONE);
	if (cv_nat_kept.restore_begin(new->nat, cv_nat_kept.store(old->nat), &error) != 0 ||
		cv_flow_zone_restore_later(new->zone, &new->worker, old->zone->memory.fd, &error) !=
			0)
		fail_msg("%s", error.text);
	for (unsigned i = 0; i < FLOWS; i++) {
		const unsigned flow = next_random(&seed) % FLOWS;
		uint16_t port = flows->port[flow];

		transmit(new, flow, &port, next_random(&seed) % 2 == 0);
		transmit(new, 100 + i, &port, false); // new: it has no port yet
	}
	for (unsigned i = 0; i < 100 && !cv_flow_zone_is_restored(new->zone, &restored); i++)
		cv_flow_tick(new->group, &new->worker);
	assert_true(cv_flow_zone_is_restored(new->zone, &restored));
	cv_nat_kept.restore_end(new->nat, &new->worker);
	cv_flow_zone_accept(new->zone);
	return restored;
}

static void is_empty_at_last(struct net *net)
{
	net_wait(net, 440);
	assert_int_equal(net->zone->table[0].used, 0);
	assert_int_equal(net_info(net, "mappings"), 0);
	assert_int_equal(net_info(net, "subscribers"), 0);
	assert_int_equal(net_info(net, "used"), 0);
}

static void flows_keep_their_ports(void **state)
{
	static const char *const configs[] = {by_address, anywhere, each};

	for (unsigned turn = 0; turn < 2 * RTE_DIM(configs); turn++) {
		const unsigned c = turn / 2;
		struct cv_flow_restored restored;
		struct flows flows, again;
		struct net old, new;
		uint16_t port;

		make(&old, configs[c]);
		if (!can(&old))
			skip();
		open_flows(&old, &flows);
		restored = turn % 2 == 0 ? restart(&old, &new, configs[c])
					 : restart_later(&old, &new, configs[c], &flows);
		assert_int_equal(restored.flows, FLOWS);
		assert_int_equal(restored.lost, 0);
		net_free(&old);
		for (unsigned i = 0; i < FLOWS; i++) {
			assert_string_equal(transmit(&new, i, &flows.port[i], true), "next");
			assert_string_equal(transmit(&new, i, &again.port[i], false), "next");
		}
		assert_memory_equal(&flows, &again, sizeof(flows));
		assert_int_equal(cv_flow_zone_counters(new.zone)->created, 0);
		assert_int_equal(net_info(&new, "mappings"), c == 0 ? 2 * FLOWS : FLOWS);
		// Whoever is new gets a port that nobody has; what nobody has is refused.
		assert_string_equal(transmit(&new, 8, &port, false), "next");
		assert_string_equal(transmit(&new, 41, &port, false), "next");
		for (unsigned i = 0; i < FLOWS; i++)
			assert_int_not_equal(port, flows.port[i]);
		port = 1;
		assert_string_equal(transmit(&new, 0, &port, true), "no_mapping");
		is_empty_at_last(&new);
		net_free(&new);
	}
}

// One that begins outside, and goes to a mapping or a forward.
static void flows_from_outside_are_known_again(void **state)
{
	struct flows flows;
	struct net old, new;
	uint16_t port = 99;

	make(&old, anywhere);
	if (!can(&old))
		skip();
	open_flows(&old, &flows);
	assert_string_equal(transmit(&old, 0, &port, true), "next");
	assert_int_equal(restart(&old, &new, anywhere).flows, FLOWS + 1);
	net_free(&old);
	assert_string_equal(transmit(&new, 0, &port, true), "next");
	assert_int_equal(cv_flow_zone_counters(new.zone)->created, 0);
	is_empty_at_last(&new);
	net_free(&new);
}

// From an address that was sent to: the permit is the flow's also if what was sent is forgotten.
static void flows_from_outside_keep_their_permits(void **state)
{
	struct net old, new;
	struct packet came, packet;
	uint8_t at = OUTSIDE;
	uint16_t port;
	char text[128];

	make(&old, by_address);
	if (!can(&old))
		skip();
	assert_string_equal(transmit(&old, 0, &port, false), "next");
	snprintf(text, sizeof(text), "ip4 src=203.0.113.9 dst=198.51.100.1 udp sport=77 dport=%u",
		port);
	packet = came = net_packet(text);
	assert_string_equal(net_pass(&old, &packet, &at), "next");
	old.zone->table[0].deadlines[0] = 0; // the one from inside is lost
	assert_int_equal(restart(&old, &new, by_address).flows, 1);
	net_free(&old);
	packet = came;
	at = OUTSIDE;
	assert_string_equal(net_pass(&new, &packet, &at), "next");
	assert_int_equal(cv_flow_zone_counters(new.zone)->created, 0);
	assert_int_equal(net_info(&new, "mappings"), 2);
	is_empty_at_last(&new);
	net_free(&new);
}

// Blocks whose flows are lost are nobody's until they have rested.
static void blocks_of_lost_flows_rest(void **state)
{
	struct flows flows;
	struct net old, new;

	make(&old, anywhere);
	if (!can(&old))
		skip();
	open_flows(&old, &flows);
	memset(old.zone->table[0].deadlines, 0, FLOWS * sizeof(uint32_t)); // their flows are lost
	assert_int_equal(restart(&old, &new, anywhere).flows, 0);
	assert_int_equal(net_info(&new, "used"), 0);
	assert_int_equal(net_info(&new, "resting"), 5);
	net_free(&old);
	is_empty_at_last(&new);
	open_flows(&new, &flows); // which wakes them
	net_free(&new);
}

static struct cv_nat_mapping *mapping_of(const struct net *net, uint32_t index)
{
	return cv_nat_mapping_at(
		((const struct cv_nat *)net->nat)->state->workers[0].mappings, index);
}

static void break_external(struct cv_nat_mapping *mapping)
{
	mapping->external++;
}

static void break_port(struct cv_nat_mapping *mapping)
{
	mapping->external_port ^= RTE_BE16(1);
}

static void break_internal(struct cv_nat_mapping *mapping)
{
	mapping->key.internal++;
}

static void break_proto(struct cv_nat_mapping *mapping)
{
	mapping->key.proto++;
}

static void break_kind_of_port(struct cv_nat_mapping *mapping)
{
	mapping->key.proto = 6;
}

static void break_zero(struct cv_nat_mapping *mapping)
{
	mapping->key.zero[1]++;
}

static void break_kind(struct cv_nat_mapping *mapping)
{
	mapping->is_permit = 2;
}

static void make_permit(struct cv_nat_mapping *mapping)
{
	mapping->is_permit = 1;
	mapping->block = UINT32_MAX;
}

static void make_permit_of_itself(struct cv_nat_mapping *mapping)
{
	mapping->is_permit = 1;
	mapping->block = 7;
}

static void make_twice(struct cv_nat_mapping *mapping)
{
	*mapping = mapping[1];
}

static void a_half_written_mapping_costs_its_flow_alone(void **state)
{
	void (*const breaks[])(struct cv_nat_mapping *) = {break_external, break_port,
		break_internal, break_proto, break_kind_of_port, break_zero, break_kind,
		make_permit, make_permit_of_itself, make_twice};

	for (unsigned i = 0; i < 2 * RTE_DIM(breaks); i++) {
		struct cv_flow_restored restored;
		struct flows flows;
		struct net old, new;

		make(&old, anywhere);
		if (!can(&old))
			skip();
		open_flows(&old, &flows);
		breaks[i / 2](mapping_of(&old, 7));
		restored = i % 2 == 0 ? restart(&old, &new, anywhere)
				      : restart_later(&old, &new, anywhere, &flows);
		if (restored.lost != 1 || restored.flows != FLOWS - 1)
			fail_msg("%u: %lu lost", i, (unsigned long)restored.lost);
		is_empty_at_last(&new);
		net_free(&new);
		net_free(&old);
	}
}

static void another_memory_is_refused(void **state)
{
	struct cv_error error = {""};
	struct net net;

	make(&net, anywhere);
	if (!can(&net))
		skip();
	assert_true(cv_nat_kept.restore_begin(net.nat, -1, &error) < 0);
	error.text[0] = '\0';
	assert_true(
		cv_nat_kept.restore_begin(net.nat, net.zone->memory.fd, &error) < 0 ||
		net.zone->memory.bytes == ((const struct cv_nat *)net.nat)->state->memory.bytes);
	net_free(&net);
}

// Random bytes in some words of a memory.
static void scramble(uint8_t *at, size_t bytes, unsigned share, uint64_t *seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (next_random(seed) % 4096 < share)
			at[i] = (uint8_t)next_random(seed);
}

// Small numbers, which lead to other mappings and blocks than before.
static void confuse(struct net *net, unsigned share, uint64_t *seed)
{
	for (uint32_t i = 0; i < 96; i++) {
		struct cv_nat_mapping *mapping = mapping_of(net, i);

		if (next_random(seed) % 4096 >= share)
			continue;
		mapping->is_permit = next_random(seed) % 2;
		mapping->block = next_random(seed) % 8 ? next_random(seed) % 100
						       : (uint32_t)next_random(seed);
		if (next_random(seed) % 2)
			mapping->key = mapping_of(net, next_random(seed) % 96)->key;
		if (next_random(seed) % 2)
			mapping->external_port =
				mapping_of(net, next_random(seed) % 96)->external_port;
	}
	for (uint32_t i = 0; i < 64; i++) {
		struct cv_nat_slot *slot = cv_flow_slot(net->zone, false, i, 0);

		if (next_random(seed) % 4096 >= share)
			continue;
		slot->source = next_random(seed) % 8 ? next_random(seed) % 100
						     : (uint32_t)next_random(seed);
		slot->destination = next_random(seed) % 3 == 0 ? next_random(seed) % 100 : 0;
		slot->is_hairpin = next_random(seed) % 2;
		slot->to_forward = next_random(seed) % 8 == 0;
		slot->from_forward = next_random(seed) % 8 == 0;
		slot->is_address = next_random(seed) % 8 == 0;
	}
}

// Packets of all flows, and new ones, and time until all have ended.
static void use(struct net *net, const struct flows *flows)
{
	uint16_t port;

	for (unsigned i = 0; i < FLOWS; i++) {
		port = flows->port[i];
		transmit(net, i, &port, true);
		transmit(net, i, &port, false);
		transmit(net, 100 + i, &port, false);
	}
	is_empty_at_last(net);
}

static void any_bytes_make_mappings_as_any_others(void **state)
{
	static const unsigned shares[] = {4, 64, 512, 4096};
	static const char *const configs[] = {by_address, anywhere, each};

	for (unsigned i = 0; i < ROUNDS; i++) {
		const char *config = configs[i % 3];
		const unsigned share = shares[i % 4];
		uint64_t seed = i;
		struct flows flows;
		struct net old, new;
		struct cv_flow_memory *memory;

		make(&old, config);
		if (!can(&old))
			skip();
		open_flows(&old, &flows);
		memory = &((struct cv_nat *)old.nat)->state->memory;
		if (i % 2 == 0)
			scramble(memory->start, cv_nat_mappings_bytes(96) + 16384, share, &seed);
		else
			confuse(&old, share, &seed);
		if (i % 5 < 3)
			restart_later(&old, &new, config, &flows);
		else
			restart(&old, &new, config);
		use(&new, &flows);
		net_free(&new);
		net_free(&old);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bytes_make_mappings_as_any_others),
		cmocka_unit_test(a_half_written_mapping_costs_its_flow_alone),
		cmocka_unit_test(flows_keep_their_ports),
		cmocka_unit_test(flows_from_outside_are_known_again),
		cmocka_unit_test(flows_from_outside_keep_their_permits),
		cmocka_unit_test(blocks_of_lost_flows_rest),
		cmocka_unit_test(another_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
