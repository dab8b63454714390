// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Blocks of ports: what a subscriber gets, what is kept, what is given back.
#include <errno.h>

#include "tests/support/test_packets.h"

#include "nf/nat/count.h"
#include "nf/nat/blocks.h"

static const rte_be32_t addresses[] = {RTE_BE32(0xc6336401), RTE_BE32(0xc6336402)};

struct events {
	struct cv_nat_block_event last;
	unsigned taken, given;
};

static void on_block(void *argument, const struct cv_nat_block_event *event)
{
	struct events *events = argument;

	events->last = *event;
	*(event->taken ? &events->taken : &events->given) += 1;
}

static void *memory; // of what was made last

static struct cv_nat_blocks *make(unsigned addresses_count, unsigned blocks,
	unsigned per_subscriber, uint64_t rest, struct events *events)
{
	const struct cv_nat_blocks_config config = {
		.addresses = addresses,
		.addresses_count = addresses_count,
		.first_port = 1024,
		.blocks_per_address = (uint16_t)blocks,
		.block_size = 64,
		.blocks_per_subscriber = (uint16_t)per_subscriber,
		.rest = rest,
		.seed = 7,
		.on_block = events == NULL ? NULL : on_block,
		.argument = events,
	};
	free(memory);
	memory = aligned_alloc(64, cv_nat_blocks_bytes(&config));
	assert_non_null(memory);
	memset(memory, 0, cv_nat_blocks_bytes(&config));
	struct cv_nat_blocks *made = cv_nat_blocks_create(&config, memory);

	assert_non_null(made);
	return made;
}

static int take(struct cv_nat_blocks *blocks, uint32_t subscriber, enum cv_nat_kind kind,
	uint16_t wanted, uint64_t now, struct cv_nat_port *port)
{
	return cv_nat_blocks_take(
		blocks, rte_cpu_to_be_32(subscriber), kind, rte_cpu_to_be_16(wanted), now, port);
}

static void a_port_is_preserved_or_its_parity(void **state)
{
	struct cv_nat_blocks *blocks = make(1, 4, 4, 0, NULL);
	struct cv_nat_port first, port;

	assert_int_equal(take(blocks, 1, CV_NAT_UDP, 1100, 0, &first), 0);
	assert_int_equal(first.port, RTE_BE16(1100));
	// Another subscriber: that block is not its own.
	assert_int_equal(take(blocks, 2, CV_NAT_UDP, 1100, 0, &port), 0);
	assert_true(port.block != first.block);
	assert_int_equal(rte_be_to_cpu_16(port.port) % 2, 0);
	// The same, for another protocol, is free.
	assert_int_equal(take(blocks, 1, CV_NAT_TCP, 1100, 0, &port), 0);
	assert_int_equal(port.port, RTE_BE16(1100));
	// 31 more even ones in the block, 32 odd ones, then what there is.
	for (unsigned i = 0; i < 63; i++) {
		assert_int_equal(take(blocks, 1, CV_NAT_UDP, 40000, 0, &port), 0);
		assert_int_equal(port.block, first.block);
		assert_int_equal(rte_be_to_cpu_16(port.port) % 2, i < 31 ? 0 : 1);
	}
	assert_int_equal(take(blocks, 1, CV_NAT_UDP, 40000, 0, &port), 0);
	assert_true(port.block != first.block);
	cv_nat_blocks_destroy(blocks);
}

static void a_subscriber_keeps_to_one_address_and_its_limit(void **state)
{
	struct events events = {.taken = 0};
	struct cv_nat_blocks *blocks = make(2, 4, 2, 0, &events);
	struct cv_nat_port port;
	rte_be32_t address = 0;

	for (unsigned i = 0; i < 128; i++) {
		assert_int_equal(take(blocks, 9, CV_NAT_TCP, 5000, 0, &port), 0);
		assert_true(i == 0 || port.address == address);
		address = port.address;
	}
	assert_int_equal(take(blocks, 9, CV_NAT_TCP, 5000, 0, &port), -EDQUOT);
	assert_int_equal(take(blocks, 9, CV_NAT_UDP, 5000, 0, &port), 0); // has all of its own
	assert_int_equal(cv_nat_blocks_address(blocks, RTE_BE32(9)), address);
	assert_int_equal(events.taken, 2);
	assert_int_equal(events.last.subscriber, RTE_BE32(9));
	assert_int_equal(events.last.last_port - events.last.first_port, 63);
	cv_nat_blocks_destroy(blocks);
}

// All ports of all blocks, each once; then a named end; then all again.
static void exhaustion_ends_when_ports_come_back(void **state)
{
	enum { ALL = 2 * 4 * 64 };
	struct events events = {.taken = 0};
	struct cv_nat_blocks *blocks = make(2, 4, 1, 0, &events);
	const struct cv_nat_blocks_counters *counters = cv_nat_blocks_counters(blocks);
	static struct cv_nat_port ports[ALL];
	struct cv_nat_port more;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < ALL; i++) {
			assert_int_equal(
				take(blocks, 100 * round + i / 64, CV_NAT_ICMP, 1, 0, &ports[i]),
				0);
			for (unsigned j = 0; j < i; j++)
				assert_false(ports[j].address == ports[i].address &&
					     ports[j].port == ports[i].port);
		}
		assert_int_equal(cv_nat_counted(&counters->blocks_used), 8);
		assert_int_equal(cv_nat_counted(&counters->subscribers), 8);
		assert_int_equal(take(blocks, 1000, CV_NAT_ICMP, 1, 0, &more), -ENOSPC);
		for (unsigned i = 0; i < ALL; i++)
			cv_nat_blocks_give(blocks, CV_NAT_ICMP, &ports[i], 0);
		assert_int_equal(cv_nat_counted(&counters->blocks_used), 0);
		assert_int_equal(cv_nat_counted(&counters->subscribers), 0);
		assert_int_equal(events.taken, events.given);
	}
	cv_nat_blocks_destroy(blocks);
}

static void a_block_rests(void **state)
{
	struct cv_nat_blocks *blocks = make(1, 1, 1, 100, NULL);
	struct cv_nat_port port;

	assert_int_equal(take(blocks, 1, CV_NAT_UDP, 1, 1000, &port), 0);
	cv_nat_blocks_give(blocks, CV_NAT_UDP, &port, 2000);
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_resting), 1);
	assert_int_equal(take(blocks, 2, CV_NAT_UDP, 1, 2099, &port), -ENOSPC);
	assert_int_equal(take(blocks, 2, CV_NAT_UDP, 1, 2100, &port), 0);
	cv_nat_blocks_destroy(blocks);
}

// Takes and gives by chance, against arrays that say who has what.
static void as_a_model_says(void **state)
{
	enum { PORTS = 2 * 8 * 64, SUBSCRIBERS = 12, STEPS = 200000 };
	struct cv_nat_blocks *blocks = make(2, 8, 2, 0, NULL);
	static struct {
		struct cv_nat_port port;
		uint32_t subscriber;
		enum cv_nat_kind kind;
	} held[CV_NAT_KINDS * PORTS];
	static uint32_t owner[CV_NAT_KINDS][2][4096]; // subscriber + 1
	uint32_t block_owner[16] = {0};
	unsigned count = 0, refused = 0;
	uint64_t chance = 1;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned which, blocks_of = 0;

		chance = chance * 6364136223846793005u + 1442695040888963407u;
		which = (unsigned)(chance >> 33);
		if ((step / 5000 % 2 == 0 ? which % 4 != 0 : which % 4 == 0) || count == 0) {
			const uint32_t subscriber = which / 4 % SUBSCRIBERS;
			const enum cv_nat_kind kind = which / 64 % CV_NAT_KINDS;
			struct cv_nat_port port;
			const int rc = take(blocks, subscriber, kind,
				(uint16_t)(1000 + which / 256 % 1100), step, &port);
			uint32_t *at;

			if (rc != 0) {
				refused++;
				continue;
			}
			at = &owner[kind][port.address == addresses[1]]
				   [rte_be_to_cpu_16(port.port)];
			assert_int_equal(*at, 0);
			*at = subscriber + 1;
			assert_true(port.block < 16);
			assert_true(block_owner[port.block] == 0 ||
				    block_owner[port.block] == subscriber + 1);
			block_owner[port.block] = subscriber + 1;
			for (unsigned i = 0; i < 16; i++)
				blocks_of += block_owner[i] == subscriber + 1;
			assert_true(blocks_of <= 2);
			held[count].port = port;
			held[count].subscriber = subscriber;
			held[count++].kind = kind;
		} else {
			const unsigned i = which / 4 % count;
			bool used = false;

			owner[held[i].kind][held[i].port.address == addresses[1]]
			     [rte_be_to_cpu_16(held[i].port.port)] = 0;
			cv_nat_blocks_give(blocks, held[i].kind, &held[i].port, step);
			for (unsigned j = 0; j < count; j++)
				used |= j != i && held[j].port.block == held[i].port.block;
			if (!used)
				block_owner[held[i].port.block] = 0;
			held[i] = held[--count];
		}
	}
	assert_true(refused > 100);
	while (count > 0) {
		count--;
		cv_nat_blocks_give(blocks, held[count].kind, &held[count].port, STEPS);
	}
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_used), 0);
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->subscribers), 0);
	cv_nat_blocks_destroy(blocks);
}

static bool claim(struct cv_nat_blocks *blocks, uint32_t subscriber, rte_be32_t address,
	enum cv_nat_kind kind, uint16_t wanted, struct cv_nat_port *port)
{
	*port = (struct cv_nat_port){.address = address, .port = rte_cpu_to_be_16(wanted)};
	return cv_nat_blocks_claim(blocks, rte_cpu_to_be_32(subscriber), kind, port);
}

// What subscribers had in a process before is theirs, and only what they can have had.
static void ports_are_claimed(void **state)
{
	struct events events = {.taken = 0};
	struct cv_nat_blocks *blocks = make(2, 4, 2, 10, &events);
	const rte_be32_t a = addresses[0], b = addresses[1];
	struct cv_nat_port first, port;

	cv_nat_blocks_restore(blocks);
	assert_true(claim(blocks, 1, b, CV_NAT_UDP, 1100, &first));
	assert_int_equal(first.block, 4 + 1);
	assert_false(claim(blocks, 1, b, CV_NAT_UDP, 1100, &port)); // it has it
	assert_true(claim(blocks, 1, b, CV_NAT_TCP, 1100, &port));
	cv_nat_blocks_give(blocks, CV_NAT_TCP, &port, 0);
	assert_false(claim(blocks, 2, b, CV_NAT_UDP, 1101, &port)); // another's block
	assert_false(claim(blocks, 1, a, CV_NAT_UDP, 1100, &port)); // of two addresses
	assert_false(claim(blocks, 1, RTE_BE32(1), CV_NAT_UDP, 1100, &port));
	assert_false(claim(blocks, 3, b, CV_NAT_UDP, 1023, &port));
	assert_false(claim(blocks, 3, b, CV_NAT_UDP, 1024 + 4 * 64, &port));
	assert_true(claim(blocks, 1, b, CV_NAT_UDP, 1024, &port));
	assert_false(claim(blocks, 1, b, CV_NAT_UDP, 1024 + 3 * 64, &port)); // one too many
	assert_true(claim(blocks, 2, a, CV_NAT_UDP, 1024, &port));
	cv_nat_blocks_give(blocks, CV_NAT_UDP, &port, 0); // does not rest: another may claim it
	assert_true(claim(blocks, 3, a, CV_NAT_UDP, 1024, &port));
	assert_int_equal(events.taken + events.given, 0); // they were taken before
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_used), 3);
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->subscribers), 2);
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_resting), 0);
	cv_nat_blocks_destroy(blocks);
}

// Of the blocks of a process before, those that are not claimed rest: not what nobody had.
static void what_is_not_claimed_rests(void **state)
{
	struct cv_nat_blocks *before = make(1, 4, 2, 1000, NULL), *blocks;
	struct cv_nat_port used, rests, port;
	void *its = memory;

	assert_int_equal(take(before, 1, CV_NAT_UDP, 1024, 0, &used), 0);
	assert_int_equal(take(before, 2, CV_NAT_UDP, 1024 + 64, 0, &port), 0);
	assert_int_equal(take(before, 3, CV_NAT_UDP, 1024 + 128, 0, &rests), 0);
	cv_nat_blocks_give(before, CV_NAT_UDP, &rests, 0);
	memory = NULL;
	blocks = make(1, 4, 2, 1000, NULL);
	cv_nat_blocks_restore(blocks);
	assert_true(claim(blocks, 1, addresses[0], CV_NAT_UDP, 1024, &used));
	cv_nat_blocks_rest(blocks, its, 500);
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_resting), 2);
	assert_int_equal(take(blocks, 4, CV_NAT_UDP, 1100, 600, &port), 0);
	assert_int_equal(port.block, 3);
	assert_int_equal(take(blocks, 5, CV_NAT_UDP, 1100, 1499, &port), -ENOSPC);
	assert_int_equal(take(blocks, 5, CV_NAT_UDP, 1100, 1500, &port), 0);
	cv_nat_blocks_destroy(blocks);
	blocks = make(1, 4, 2, 1000, NULL);
	cv_nat_blocks_rest(blocks, its, 5000); // one has rested
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_resting), 2);
	cv_nat_blocks_destroy(blocks);
	blocks = make(1, 4, 2, 1000, NULL);
	memset(its, 0xff, 512);
	cv_nat_blocks_rest(blocks, its, 500); // that was nobody's
	assert_int_equal(cv_nat_counted(&cv_nat_blocks_counters(blocks)->blocks_resting), 0);
	cv_nat_blocks_destroy(blocks);
	cv_nat_blocks_destroy(before);
	free(its);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_preserved_or_its_parity),
		cmocka_unit_test(a_subscriber_keeps_to_one_address_and_its_limit),
		cmocka_unit_test(exhaustion_ends_when_ports_come_back),
		cmocka_unit_test(a_block_rests),
		cmocka_unit_test(ports_are_claimed),
		cmocka_unit_test(what_is_not_claimed_rests),
		cmocka_unit_test(as_a_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
