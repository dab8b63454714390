// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	table = cv_next_hop_table_make(next_hops, 3, entries, VLANS + 1, NULL);
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
			next_hops, 2, rows[row].entries, rows[row].count, NULL);

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

	assert_null(cv_next_hop_table_make(next_hops, 1, twice, 2, &error));
	assert_string_equal(error.text, "vni 9 has two next hops");
	error.text[0] = '\0';
	assert_null(cv_next_hop_table_make(next_hops, 1, &nowhere, 1, &error));
	assert_string_equal(error.text, "next hop 1 does not exist");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(knows_where_all_go),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
