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
	assert_string_equal(error.text, "vni 9 has the same next hop twice");
	error.text[0] = '\0';
	assert_null(cv_next_hop_table_make(next_hops, 1, &nowhere, 1, 0, &error));
	assert_string_equal(error.text, "next hop 1 does not exist");
}

#define FLOWS 1000u

// A packet of VLAN 5 that leaves by port 1: a UDP packet of one of many flows.
static void make_flow(uint8_t bytes[64], struct cv_view *view, unsigned flow)
{
	static const uint8_t begin[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0,
		0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};

	memset(bytes, 0, 64);
	memcpy(bytes, begin, sizeof(begin));
	bytes[38] = (uint8_t)(flow >> 8);
	bytes[39] = (uint8_t)flow;
	cv_view_set(view, bytes, 64);
	view->out = 1;
}

// The next hop of a flow of VLAN 5.
static uint16_t next_hop_of_flow(const struct cv_next_hop_table *table, unsigned flow)
{
	uint8_t bytes[64];
	struct cv_view view;
	uint16_t next_hop;
	uint32_t key;

	make_flow(bytes, &view, flow);
	key = cv_next_hop_key_of(&view);
	cv_next_hop_find(table, &key, &next_hop, 1);
	if (cv_next_hop_spreads(table))
		cv_next_hop_choose(table, &view, &next_hop, 1);
	return next_hop;
}

#define VLAN5 (1u << 26 | 1u << 24 | 5)
#define REST (1u << 26)

// A key with several next hops spreads its flows over them, by weight; other keys are as they were.
static void spreads_flows(void **state)
{
	static struct cv_next_hop next_hops[4] = {
		{.id = 11, .weight = 1}, {.id = 22, .weight = 3}, {.id = 33}, {.id = 44}};
	const struct cv_next_hop_entry entries[] = {
		{VLAN5, 1}, {VLAN5, 0}, {VLAN5 + 1, 2}, {REST, 3}};
	const uint32_t others[] = {VLAN5 + 1, VLAN5 + 2};
	struct cv_next_hop_table *table = cv_next_hop_table_make(next_hops, 4, entries, 4, 0, NULL);
	unsigned flows[4] = {0};
	uint16_t other[2];

	assert_non_null(table);
	assert_true(cv_next_hop_spreads(table));
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	for (unsigned i = 0; i < FLOWS; i++) {
		const uint16_t next_hop = next_hop_of_flow(table, i);

		assert_in_range(next_hop, 0, 1);
		assert_int_equal(next_hop_of_flow(table, i), next_hop);
		flows[next_hop]++;
	}
	assert_in_range(flows[0], FLOWS / 4 - 80, FLOWS / 4 + 80);
	cv_next_hop_find(table, others, other, 2);
	assert_int_equal(other[0], 2);
	assert_int_equal(other[1], 3);
	cv_next_hop_table_free(table);
}

// A whole port whose packets are spread has no single next hop, also after changes in place.
static void a_port_may_be_spread(void **state)
{
	static struct cv_next_hop next_hops[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
	const struct cv_next_hop_entry entries[] = {{REST, 0}, {REST, 1}};
	struct cv_next_hop_table *table = cv_next_hop_table_make(next_hops, 3, entries, 2, 8, NULL);
	const uint16_t both = cv_next_hop_of_key(table, REST);

	assert_non_null(cv_next_hop_spread_at(table, both));
	assert_int_equal(cv_next_hop_spread_at(table, both)->group.members_count, 2);
	assert_null(cv_next_hop_spread_at(table, 0));
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	assert_true(cv_next_hop_of_port_exists(table, 1));
	assert_in_range(next_hop_of_flow(table, 1), 0, 1);
	assert_int_equal(cv_next_hop_table_change(table, REST, 2), 0);
	assert_int_equal(cv_next_hop_of_port(table, 1), 2);
	assert_int_equal(next_hop_of_flow(table, 1), 2);
	assert_int_equal(cv_next_hop_table_change(table, REST, both), 0);
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	assert_in_range(next_hop_of_flow(table, 1), 0, 1);
	assert_int_equal(cv_next_hop_table_change(table, REST, 2), 0);
	assert_int_equal(cv_next_hop_table_change(table, VLAN5, both), 0);
	assert_int_equal(cv_next_hop_table_change(table, VLAN5, both + 1), -ENOSPC);
	assert_int_equal(cv_next_hop_table_change(table, VLAN5, CV_NEXT_HOP_GROUP), -ENOSPC);
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	assert_in_range(next_hop_of_flow(table, 1), 0, 1);
	assert_int_equal(cv_next_hop_table_change(table, REST, both), 0);
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	cv_next_hop_table_free(table);
}

// A table like another one has its sets by the same number, whether it has keys of them or not.
static void sets_keep_their_number(void **state)
{
	static struct cv_next_hop next_hops[4] = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}};
	const struct cv_next_hop_entry entries[] = {
		{VLAN5 + 1, 0}, {VLAN5 + 1, 1}, {VLAN5, 2}, {VLAN5, 3}, {VLAN5, 1}};
	struct cv_next_hop_table *own = cv_next_hop_table_make(next_hops, 4, entries, 5, 0, NULL);
	const uint16_t set = cv_next_hop_of_key(own, VLAN5);
	struct cv_spread_group group = {
		.members_count = 1, .members = {{.next_hop = 3, .weight = 1}}};
	const struct cv_next_hop_entry others[] = {
		{VLAN5 + 7, CV_NEXT_HOP_GROUP + 1}, {REST, CV_NEXT_HOP_GROUP + 1}};
	const struct cv_spread_group groups[] = {{0}, group};
	const struct cv_next_hop_spec spec = {.next_hops = next_hops,
		.next_hops_count = 4,
		.entries = others,
		.entries_count = 2,
		.room = 10,
		.groups = groups,
		.groups_count = 2,
		.like = own};
	struct cv_next_hop_table *table = cv_next_hop_table_build(&spec, NULL);

	assert_non_null(table);
	assert_int_equal(cv_next_hop_of_key(table, VLAN5 + 7), CV_NEXT_HOP_GROUP + 1);
	assert_int_equal(cv_next_hop_of_port(table, 1), CV_NEXT_HOP_NONE);
	assert_int_equal(cv_next_hop_table_change(table, VLAN5, set), 0);
	for (unsigned i = 0; i < FLOWS; i++)
		assert_int_equal(next_hop_of_flow(table, i), next_hop_of_flow(own, i));
	assert_int_equal(cv_next_hop_table_change(table, VLAN5, CV_NEXT_HOP_GROUP + 1), 0);
	assert_int_equal(next_hop_of_flow(table, 1), 3);
	cv_next_hop_table_free(table);
	cv_next_hop_table_free(own);
}

static void refuses_what_cannot_be_spread(void **state)
{
	static struct cv_next_hop next_hops[CV_NEXT_HOPS_MAX];
	static struct cv_next_hop_entry entries[2 * 2000];
	const struct cv_next_hop_entry group = {VLAN5, CV_NEXT_HOP_GROUP},
				       set = {VLAN5, CV_NEXT_HOP_SPREAD};
	struct cv_error error = {0};
	uint32_t count = 0;

	for (uint16_t i = 0; i <= CV_SPREAD_MEMBERS_MAX; i++)
		entries[i] = (struct cv_next_hop_entry){REST, i};
	assert_null(cv_next_hop_table_make(
		next_hops, CV_NEXT_HOPS_MAX, entries, CV_SPREAD_MEMBERS_MAX + 1, 0, &error));
	assert_string_equal(error.text, "everything else has more than 64 next hops");
	error.text[0] = '\0';
	for (uint16_t a = 0; count < 2 * 2000; a++)
		for (uint16_t b = 0; b < a && count < 2 * 2000; b++) {
			entries[count] = (struct cv_next_hop_entry){VLAN5 + count / 2, a};
			entries[count + 1] = (struct cv_next_hop_entry){VLAN5 + count / 2, b};
			count += 2;
		}
	assert_null(cv_next_hop_table_make(next_hops, CV_NEXT_HOPS_MAX, entries, count, 0, &error));
	assert_non_null(strstr(error.text, "too many different sets of next hops"));
	error.text[0] = '\0';
	assert_null(cv_next_hop_table_make(next_hops, 1, &group, 1, 0, &error));
	assert_string_equal(error.text, "next hop 5120 does not exist");
	error.text[0] = '\0';
	assert_null(cv_next_hop_table_make(next_hops, 1, &set, 1, 0, &error));
	assert_string_equal(error.text, "next hop 4096 does not exist");
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

// Before what functions are shown of a packet, of a tunnel; each in VLAN 100.
#define ETHERNET(type) 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 100, (type) >> 8, (type)&0xff
#define IPV4_UDP(port)                                                                           \
	0x45, 0, 0, 200, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 99, (port) >> 8, \
		(port)&0xff, 0, 180, 0, 0
#define METADATA 0, 0, 0, 99, 0x12, 0xb5, 0, 16, 8, 0, 0, 0, 0, 0, 5, 0 // looks like VXLAN

// The VNI is the SC-ID of what is in VXLAN; what another tunnel has there is its own affair.
static void a_vni_is_that_of_vxlan(void **state)
{
	static const struct {
		const char *description;
		uint8_t before[96];
		uint8_t len;
		uint32_t key;
	} rows[] = {
		{"VXLAN", {ETHERNET(0x0800), IPV4_UDP(4789), 8, 0, 0, 0, 0, 0, 5, 0}, 54,
			1u << 26 | 2u << 24 | 5},
		{"NSH behind Ethernet",
			{ETHERNET(0x894f), 0x0f, 0xc6, 1, 3, 0, 0, 42, 254, METADATA}, 42,
			1u << 26 | 1u << 24 | 100},
		{"NSH in VXLAN-GPE",
			{ETHERNET(0x0800), IPV4_UDP(4790), 12, 0, 0, 4, 0, 0, 7, 0, 0x0f, 0xc6, 1,
				3, 0, 0, 42, 254, METADATA},
			78, 1u << 26 | 1u << 24 | 100},
		{"NSH in VXLAN-GPE, without metadata",
			{ETHERNET(0x0800), IPV4_UDP(4790), 12, 0, 0, 4, 0, 0, 7, 0, 0x0f, 0xc2, 2,
				3, 0, 0, 42, 254},
			62, 1u << 26 | 1u << 24 | 100},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		uint8_t bytes[96 + 60] = {0};
		struct cv_view view = {.out = 1};

		print_message("  %s\n", rows[row].description);
		memcpy(bytes, rows[row].before, rows[row].len);
		cv_view_set(&view, bytes + rows[row].len, 60);
		view.before = rows[row].len;
		assert_int_equal(cv_next_hop_key_of(&view), rows[row].key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(knows_where_all_go),
		cmocka_unit_test(refuses),
		cmocka_unit_test(spreads_flows),
		cmocka_unit_test(a_port_may_be_spread),
		cmocka_unit_test(sets_keep_their_number),
		cmocka_unit_test(refuses_what_cannot_be_spread),
		cmocka_unit_test(changes_in_place),
		cmocka_unit_test(is_read_while_it_changes),
		cmocka_unit_test(a_vni_is_that_of_vxlan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
