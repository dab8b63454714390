// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The table of mappings: one is found by either end from when it is added until it is removed, however many
// came since, also by the process that goes on with the table.
#include "tests/support/test_packets.h"

#include "nf/nat/mappings.h"

#define MAX 40
#define PORT 1000

static const rte_be32_t outside = RTE_BE32(0xc6336401);

static void *memory_for(uint32_t max)
{
	void *memory = aligned_alloc(64, cv_nat_mappings_bytes(max));

	assert_non_null(memory);
	memset(memory, 0, cv_nat_mappings_bytes(max));
	return memory;
}

static struct cv_nat_mapping mapping_of(unsigned i)
{
	return (struct cv_nat_mapping){
		.key = {.internal = rte_cpu_to_be_32(0x0a000001 + i), .proto = 17},
		.external = outside,
		.external_port = rte_cpu_to_be_16((uint16_t)(PORT + i)),
	};
}

static uint32_t by_external(const struct cv_nat_mappings *mappings, unsigned i)
{
	const struct cv_nat_mapping mapping = mapping_of(i);

	return cv_nat_mappings_by_external(
		mappings, mapping.external, mapping.external_port, mapping.key.proto);
}

// Those from begin on, and no others, are found.
static void expect_found(
	const struct cv_nat_mappings *mappings, const uint32_t *index, unsigned begin, unsigned end)
{
	for (unsigned i = 0; i < MAX; i++) {
		const struct cv_nat_mapping mapping = mapping_of(i);
		const uint32_t expected = i >= begin && i < end ? index[i] : CV_NAT_NONE;

		assert_int_equal(by_external(mappings, i), expected);
		assert_int_equal(cv_nat_mappings_by_key(mappings, &mapping.key), expected);
	}
}

static void add(struct cv_nat_mappings *mappings, uint32_t *index, unsigned i)
{
	const struct cv_nat_mapping mapping = mapping_of(i);

	assert_true(cv_nat_mappings_have_room(mappings, 1));
	index[i] = cv_nat_mappings_add(mappings, &mapping, true);
}

static void each_is_found_from_when_it_is_added(void **state)
{
	void *memory = memory_for(MAX);
	struct cv_nat_mappings *mappings = cv_nat_mappings_create(MAX, memory);
	uint32_t index[MAX];

	assert_non_null(mappings);
	for (unsigned i = 0; i < MAX; i++) {
		add(mappings, index, i);
		expect_found(mappings, index, 0, i + 1);
	}
	assert_false(cv_nat_mappings_have_room(mappings, 1));
	for (unsigned i = 0; i < MAX; i++) {
		cv_nat_mappings_remove(mappings, index[i]);
		expect_found(mappings, index, i + 1, MAX);
	}
	assert_int_equal(cv_nat_mappings_count(mappings), 0);
	cv_nat_mappings_destroy(mappings);
	free(memory);
}

// As short flows have it: the newest are removed before others have been added behind them.
static void those_that_live_shortly_leave_nothing(void **state)
{
	void *memory = memory_for(MAX);
	struct cv_nat_mappings *mappings = cv_nat_mappings_create(MAX, memory);
	uint32_t index[MAX];

	assert_non_null(mappings);
	for (unsigned turn = 0; turn < 100; turn++) {
		const unsigned many = turn % 20 + 1;

		for (unsigned i = 0; i < many; i++)
			add(mappings, index, i);
		for (unsigned i = 0; i < many; i++) {
			cv_nat_mappings_remove(mappings, index[i]);
			expect_found(mappings, index, i + 1, many);
		}
	}
	cv_nat_mappings_settle(mappings);
	expect_found(mappings, index, 0, 0);
	assert_true(cv_nat_mappings_lead_inside(mappings));
	cv_nat_mappings_destroy(mappings);
	free(memory);
}

static void who_goes_on_finds_the_newest_as_well(void **state)
{
	void *memory = memory_for(MAX);
	struct cv_nat_mappings *mappings = cv_nat_mappings_create(MAX, memory);
	struct cv_nat_mappings *next;
	void *copy = memory_for(MAX);
	uint32_t index[MAX];

	assert_non_null(mappings);
	for (unsigned i = 0; i < 30; i++)
		add(mappings, index, i);
	cv_nat_mappings_freeze(mappings);
	next = cv_nat_mappings_create(MAX, copy);
	assert_non_null(next);
	memcpy(copy, memory, cv_nat_mappings_bytes(MAX));
	assert_true(cv_nat_mappings_lead_inside(next));
	assert_true(cv_nat_mappings_thaw(next));
	expect_found(next, index, 0, 30);
	add(next, index, 30);
	cv_nat_mappings_remove(next, index[0]);
	expect_found(next, index, 1, 31);
	cv_nat_mappings_destroy(next);
	cv_nat_mappings_destroy(mappings);
	free(copy);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_from_when_it_is_added),
		cmocka_unit_test(those_that_live_shortly_leave_nothing),
		cmocka_unit_test(who_goes_on_finds_the_newest_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
