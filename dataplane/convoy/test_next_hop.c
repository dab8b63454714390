// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "convoy/next_hop.h"

#define VLANS 4096u

// Every VLAN of port 1 has a next hop, port 2 has one for the rest, port 3 none.
static void finds_what_is_there(void **state)
{
	static struct cv_next_hop_entry entries[VLANS + 1];
	static struct cv_next_hop next_hops[3];
	struct cv_next_hop_table *table;

	for (uint32_t i = 0; i < VLANS; i++)
		entries[i] = (struct cv_next_hop_entry){
			cv_next_hop_key(1, CV_SCID_VLAN, i), (uint16_t)(i % 2)};
	entries[VLANS] = (struct cv_next_hop_entry){cv_next_hop_key(2, CV_SCID_NONE, 0), 2};
	table = cv_next_hop_table_make(next_hops, 3, entries, VLANS + 1, 0, NULL);
	assert_non_null(table);
	for (uint32_t i = 0; i < VLANS; i++) {
		const uint32_t keys[] = {cv_next_hop_key(1, CV_SCID_VLAN, i),
			cv_next_hop_key(1, CV_SCID_VNI, i), cv_next_hop_key(2, CV_SCID_VLAN, i),
			cv_next_hop_key(3, CV_SCID_VLAN, i), cv_next_hop_key(0, CV_SCID_NONE, 0)};
		uint16_t indices[5];

		cv_next_hop_find(table, keys, indices, 5);
		assert_int_equal(indices[0], i % 2);
		assert_int_equal(indices[1], CV_NEXT_HOP_NONE);
		assert_int_equal(indices[2], 2);
		assert_int_equal(indices[3], CV_NEXT_HOP_NONE);
		assert_int_equal(indices[4], CV_NEXT_HOP_NONE);
	}
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	assert_int_equal(cv_next_hop_of_port(table, 2), 2);
	assert_int_equal(cv_next_hop_of_port(table, 3), CV_NEXT_HOP_NONE);
	assert_true(cv_next_hop_of_port_exists(table, 1));
	assert_false(cv_next_hop_of_port_exists(table, 3));
	cv_next_hop_table_free(table);
}

// Everything that leaves by a port goes to one next hop: its SC-IDs all have that of the rest.
static void knows_where_all_go(void **state)
{
	static const struct {
		const char *description;
		struct cv_next_hop_entry entries[2];
		uint32_t count;
		uint16_t only;
	} rows[] = {
		{"the rest alone", {{.key = 1u << 26, .next_hop = 1}}, 1, 1},
		{"a VLAN and nothing else", {{.key = 1u << 26 | 1u << 24 | 5}}, 1,
			CV_NEXT_HOP_NONE},
		{"a VLAN goes where the rest goes",
			{{.key = 1u << 26 | 1u << 24 | 5, .next_hop = 1},
				{.key = 1u << 26, .next_hop = 1}},
			2, 1},
		{"a VLAN goes elsewhere",
			{{.key = 1u << 26 | 1u << 24 | 5}, {.key = 1u << 26, .next_hop = 1}}, 2,
			CV_NEXT_HOP_NONE},
		{"another port's VLAN",
			{{.key = 2u << 26 | 1u << 24}, {.key = 1u << 26, .next_hop = 1}}, 2, 1},
	};
	static struct cv_next_hop next_hops[2];

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct cv_next_hop_table *table = cv_next_hop_table_make(
			next_hops, 2, rows[row].entries, rows[row].count, 0, NULL);

		print_message("  %s\n", rows[row].description);
		assert_non_null(table);
		assert_int_equal(cv_next_hop_of_port(table, 1), rows[row].only);
		cv_next_hop_table_free(table);
	}
}

static void refuses(void **state)
{
	static struct cv_next_hop next_hops[1];
	const struct cv_next_hop_entry twice[] = {
		{cv_next_hop_key(1, CV_SCID_VNI, 9), 0}, {cv_next_hop_key(1, CV_SCID_VNI, 9), 0}};
	const struct cv_next_hop_entry nowhere = {cv_next_hop_key(1, CV_SCID_VNI, 9), 1};
	struct cv_error error = {0};

	assert_null(cv_next_hop_table_make(next_hops, 1, twice, 2, 0, &error));
	assert_string_equal(error.text, "vni 9 has two next hops");
	error.text[0] = '\0';
	assert_null(cv_next_hop_table_make(next_hops, 1, &nowhere, 1, 0, &error));
	assert_string_equal(error.text, "next hop 1 does not exist");
}

#define MODEL_IDS 300u

// What a packet's look-up finds, by the model: its own, or that of the rest.
static uint16_t expected(const uint16_t *own, uint16_t rest, uint32_t id)
{
	return own[id] != CV_NEXT_HOP_NONE ? own[id] : rest;
}

static struct cv_next_hop_table *make_larger(
	struct cv_next_hop_table *table, const uint16_t *own, uint16_t rest)
{
	struct cv_next_hop_entry entries[MODEL_IDS + 1];
	struct cv_next_hop next_hops[3] = {0};
	uint32_t count = 0;

	for (uint32_t id = 0; id < MODEL_IDS; id++)
		if (own[id] != CV_NEXT_HOP_NONE)
			entries[count++] = (struct cv_next_hop_entry){
				cv_next_hop_key(0, CV_SCID_VNI, id), own[id]};
	if (rest != CV_NEXT_HOP_NONE)
		entries[count++] =
			(struct cv_next_hop_entry){cv_next_hop_key(0, CV_SCID_NONE, 0), rest};
	cv_next_hop_table_free(table);
	table = cv_next_hop_table_make(next_hops, 3, entries, count, 20, NULL);
	assert_non_null(table);
	return table;
}

// Changes drawn, in place and into larger tables; after each, everything is where it should be.
static void changes_in_place(void **state)
{
	uint16_t own[MODEL_IDS], rest = CV_NEXT_HOP_NONE;
	struct cv_next_hop_table *table;
	unsigned made = 0;

	srand(1);
	memset(own, 0xff, sizeof(own));
	table = make_larger(NULL, own, rest);
	for (unsigned step = 0; step < 20000; step++) {
		const bool whole = rand() % 50 == 0;
		const uint32_t id = whole ? 0 : (uint32_t)rand() % MODEL_IDS;
		const uint16_t to = rand() % 3 == 0 ? CV_NEXT_HOP_NONE : (uint16_t)(rand() % 3);
		const uint32_t key = cv_next_hop_key(0, whole ? CV_SCID_NONE : CV_SCID_VNI, id);
		const int rc = cv_next_hop_table_change(table, key, to);
		bool leads = false;

		*(whole ? &rest : &own[id]) = to;
		if (rc != 0) {
			assert_int_equal(rc, -ENOSPC);
			table = make_larger(table, own, rest);
			made++;
		}
		assert_int_equal(cv_next_hop_of_key(table, key), to);
		for (uint32_t i = step % 7; i < MODEL_IDS; i += 7) {
			const uint32_t requested = cv_next_hop_key(0, CV_SCID_VNI, i);
			const uint16_t of_port = cv_next_hop_of_port(table, 0);
			uint16_t entry;

			cv_next_hop_find(table, &requested, &entry, 1);
			assert_int_equal(entry, expected(own, rest, i));
			if (of_port != CV_NEXT_HOP_NONE)
				assert_int_equal(entry, of_port);
			leads |= entry != CV_NEXT_HOP_NONE;
		}
		assert_true(cv_next_hop_of_port_exists(table, 0) || !leads);
	}
	assert_in_range(made, 10, 10000);
	cv_next_hop_table_free(table);
}

struct reader {
	const struct cv_next_hop_table *table;
	bool ends;
	unsigned wrong;
};

// Looks up what changes: every other SC-ID is there at times, and goes to the next hop of its parity.
static void *read_on(void *argument)
{
	struct reader *reader = argument;

	while (!__atomic_load_n(&reader->ends, __ATOMIC_RELAXED)) {
		uint32_t keys[64];
		uint16_t entry[64];

		for (unsigned i = 0; i < 64; i++)
			keys[i] = cv_next_hop_key(0, CV_SCID_VLAN, i * 5);
		cv_next_hop_find(reader->table, keys, entry, 64);
		for (unsigned i = 0; i < 64; i++)
			reader->wrong += entry[i] != i * 5 % 2 && entry[i] != 2;
	}
	return NULL;
}

static void is_read_while_it_changes(void **state)
{
	const struct cv_next_hop_entry rest = {cv_next_hop_key(0, CV_SCID_NONE, 0), 2};
	const struct cv_next_hop next_hops[3] = {0};
	struct cv_next_hop_table *table = cv_next_hop_table_make(next_hops, 3, &rest, 1, 320, NULL);
	struct reader reader = {.table = table};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
	for (uint32_t step = 0; step < 1000000; step++) {
		const uint32_t id = step * 7 % 320;

		assert_int_equal(
			cv_next_hop_table_change(table, cv_next_hop_key(0, CV_SCID_VLAN, id),
				step / 320 % 2 == 0 ? (uint16_t)(id % 2) : CV_NEXT_HOP_NONE),
			0);
	}
	__atomic_store_n(&reader.ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(reader.wrong, 0);
	cv_next_hop_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(knows_where_all_go),
		cmocka_unit_test(refuses),
		cmocka_unit_test(changes_in_place),
		cmocka_unit_test(is_read_while_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
