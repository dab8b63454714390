// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The tests' own packet writer against packets written by hand.
#include "tests/support/test_packets.h"

#define MACS "020000000002020000000001"

static void packets_are_as_written(void **state)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
		{"", MACS "0000"},
		{"type=0806 hex=0001", MACS "08060001"},
		{"dst=ff:ff:ff:ff:ff:ff src=02:00:00:00:00:09", "ffffffffffff020000000009"
								"0000"},
		// The header of RFC 1071's kind of example, summed by hand:
		// 4500+0014+0000+0000+4000+0000+c000+0201+c633+6401 = 27149 -> 714b -> ~ 8eb4
		{"ip4", MACS "0800"
			     "4500001400000000"
			     "40008eb4c0000201c6336401"},
		{"ip4 udp sport=1 dport=53 data=2", MACS "0800"
							 "4500001e00000000"
							 "40118e99c0000201c6336401"
							 "00010035000a00000001"},
		{"vlan id=10 type=1234", MACS "8100000a1234"},
		{"qinq id=20 vlan id=10 ip6", MACS "88a80014"
						   "8100000a"
						   "86dd"
						   "6000000000003b40"
						   "20010db8000000000000000000000001"
						   "20010db8000000000000000000000002"},
		{"ip6 frag off=1 mf=1 udp cut=64", MACS "86dd"
							"6000000000102c40"
							"20010db8000000000000000000000001"
							"20010db8000000000000000000000002"
							"11000009000000000000"},
		{"ip6 ah tcp cut=70", MACS "86dd"
					   "6000000000203340"
					   "20010db8000000000000000000000001"
					   "20010db8000000000000000000000002"
					   "060100000000000000000000"
					   "00000000"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet packet = packet_make(rows[i].text);
		char hex[2 * sizeof(packet.bytes) + 1] = "";

		for (uint16_t b = 0; b < packet.len; b++)
			sprintf(hex + 2 * b, "%02x", packet.bytes[b]);
		assert_string_equal(hex, rows[i].hex);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(packets_are_as_written)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
