// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Addresses: RFC 6052's and RFC 7757's own examples, and every length in both directions.
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nf/nat64/address.h"

static struct cv_nat64_ipv6 ipv6(const char *text)
{
	uint8_t bytes[16];

	assert_int_equal(inet_pton(AF_INET6, text, bytes), 1);
	return cv_nat64_load(bytes);
}

static uint32_t ipv4(const char *text)
{
	struct in_addr address;

	assert_int_equal(inet_pton(AF_INET, text, &address), 1);
	return ntohl(address.s_addr);
}

static void same(struct cv_nat64_ipv6 address, const char *text)
{
	uint8_t bytes[16];
	char got[INET6_ADDRSTRLEN];

	cv_nat64_store(bytes, address);
	assert_string_equal(inet_ntop(AF_INET6, bytes, got, sizeof(got)), text);
}

static int set(struct cv_nat64_prefix *prefix, const char *text)
{
	struct cv_prefix parsed;

	assert_int_equal(cv_prefix_parse(text, &parsed), 0);
	return cv_nat64_prefix_set(prefix, &parsed);
}

// RFC 6052 sections 2.4 and 2.3.
static void embeds(void **state)
{
	static const struct {
		const char *prefix, *address;
	} rows[] = {
		{"2001:db8::/32", "2001:db8:c000:221::"},
		{"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
		{"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
		{"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
		{"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100:0"},
		{"2001:db8:122:344::/96", "2001:db8:122:344::c000:221"},
		{"64:ff9b::/96", "64:ff9b::c000:221"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_nat64_prefix prefix;
		struct cv_nat64_ipv6 address;

		assert_int_equal(set(&prefix, rows[i].prefix), 0);
		assert_int_equal(prefix.well_known, i == 6);
		address = cv_nat64_embed(&prefix, ipv4("192.0.2.33"));
		same(address, rows[i].address);
		for (unsigned bit = 0; bit < 1000; bit++) {
			const uint32_t any = (uint32_t)rand() * 3u;

			address = cv_nat64_embed(&prefix, any);
			assert_true(cv_nat64_has(&prefix, address));
			assert_int_equal(cv_nat64_extract(&prefix, address), any);
		}
		address.high ^= UINT64_C(1) << 32; // of each prefix
		assert_false(cv_nat64_has(&prefix, address));
	}
}

static void refuses_other_lengths(void **state)
{
	static const char *const wrong[] = {"2001:db8::/31", "2001:db8::/33", "2001:db8::/72",
		"2001:db8::/128", "10.0.0.0/8", "2001:db8:0:0:100::/96", "::/0"};
	struct cv_nat64_prefix prefix;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(set(&prefix, wrong[i]), -EINVAL);
}

static void knows_global_addresses(void **state)
{
	static const char *const others[] = {"0.1.2.3", "10.255.255.255", "100.64.0.0",
		"100.127.255.255", "127.0.0.1", "169.254.9.9", "172.16.0.0", "172.31.255.255",
		"192.0.0.9", "192.0.2.1", "192.168.255.1", "198.18.0.0", "198.19.255.255",
		"198.51.100.9", "203.0.113.0", "224.0.0.1", "255.255.255.255"};
	static const char *const global[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
		"192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.114.0", "223.255.255.255"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(cv_nat64_is_global(ipv4(others[i])));
	for (size_t i = 0; i < sizeof(global) / sizeof(global[0]); i++)
		assert_true(cv_nat64_is_global(ipv4(global[i])));
}

static struct cv_nat64_row row(const char *v4, const char *v6)
{
	struct cv_prefix a, b;

	assert_int_equal(cv_prefix_parse(v4, &a), 0);
	assert_int_equal(cv_prefix_parse(v6, &b), 0);
	return (struct cv_nat64_row){
		.ipv4 = (uint32_t)(cv_nat64_load(a.address.bytes).high >> 32),
		.ipv4_length = a.length,
		.ipv6 = cv_nat64_load(b.address.bytes),
		.ipv6_length = b.length,
	};
}

// The table of RFC 7757 section 3.2, and addresses of each row; one has both sides' longest prefixes.
static void maps_explicitly(void **state)
{
	static const struct {
		const char *v4, *v6;
	} table[] =
		{
			{"192.0.2.1/32", "2001:db8:aaaa::/128"},
			{"192.0.2.2/32", "2001:db8:bbbb::b/128"},
			{"192.0.2.16/28", "2001:db8:cccc::/124"},
			{"192.0.2.128/26", "2001:db8:dddd::/64"},
			{"192.0.2.192/29", "2001:db8:eeee:8::/62"},
			{"192.0.2.224/31", "64:ff9b::/127"},
			{"192.0.2.0/24", "2001:db8:ffff::/120"},
			{"0.0.0.0/0", "2001:db9::/96"},
		},
	  same_of[] = {
		  {"192.0.2.1", "2001:db8:aaaa::"},
		  {"192.0.2.2", "2001:db8:bbbb::b"},
		  {"192.0.2.16", "2001:db8:cccc::"},
		  {"192.0.2.24", "2001:db8:cccc::8"},
		  {"192.0.2.128", "2001:db8:dddd::"},
		  {"192.0.2.152", "2001:db8:dddd:0:6000::"},
		  {"192.0.2.183", "2001:db8:dddd:0:dc00::"},
		  {"192.0.2.192", "2001:db8:eeee:8::"},
		  {"192.0.2.195", "2001:db8:eeee:9:8000::"},
		  {"192.0.2.225", "64:ff9b::1"},
		  {"192.0.2.77", "2001:db8:ffff::4d"},
		  {"8.8.4.4", "2001:db9::808:404"},
	  };
	struct cv_nat64_row rows[sizeof(table) / sizeof(table[0])];
	struct cv_nat64_map map = {.rows = sizeof(table) / sizeof(table[0])};
	struct cv_nat64_ipv6 address;
	uint32_t twice, back;

	for (size_t i = 0; i < map.rows; i++)
		rows[i] = row(table[i].v4, table[i].v6);
	map.row = malloc(sizeof(rows));
	memcpy(map.row, rows, sizeof(rows));
	assert_int_equal(cv_nat64_map_finish(&map, &twice), 0);
	assert_true(map.few.are_all);
	for (size_t i = 0; i < sizeof(same_of) / sizeof(same_of[0]); i++) {
		for (unsigned few = 0; few < 2; few++) { // as of more rows, too
			map.few.are_all = few;
			assert_true(cv_nat64_to_ipv6(&map, ipv4(same_of[i].v4), &address));
			same(address, same_of[i].v6);
		}
		assert_true(cv_nat64_to_ipv4(&map, ipv6(same_of[i].v6), &back));
		assert_int_equal(back, ipv4(same_of[i].v4));
	}
	assert_false(cv_nat64_to_ipv4(&map, ipv6("2001:dba::1"), &back));
	// What is behind a row's suffix says nothing.
	assert_true(cv_nat64_to_ipv4(&map, ipv6("2001:db8:dddd:0:6000::9"), &back));
	assert_int_equal(back, ipv4("192.0.2.152"));
	cv_nat64_map_free(&map);
}

static void refuses_rows_that_are_there_twice(void **state)
{
	static const char *const pairs[][2] = {
		{"192.0.2.1/32", "2001:db8::2/128"}, {"192.0.2.2/32", "2001:db8::1/128"}};

	for (size_t i = 0; i < 2; i++) {
		struct cv_nat64_map map = {.rows = 2, .row = calloc(2, sizeof(*map.row))};
		uint32_t twice = 9;

		map.row[0] = row("192.0.2.1/32", "2001:db8::1/128");
		map.row[1] = row(pairs[i][0], pairs[i][1]);
		assert_int_equal(cv_nat64_map_finish(&map, &twice), -EEXIST);
		assert_int_equal(twice, 1);
		cv_nat64_map_free(&map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embeds),
		cmocka_unit_test(refuses_other_lengths),
		cmocka_unit_test(knows_global_addresses),
		cmocka_unit_test(maps_explicitly),
		cmocka_unit_test(refuses_rows_that_are_there_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
