// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_ttl_limit;

static void drops_what_is_under_the_bound(void **state)
{
	// description, packet in, verdict, packet out (NULL: unchanged), port in, port out
	static const struct packet_row rows[] = {
		{"at the bound", "ip4 ttl=5 udp data=18", "next", NULL, 0, 1},
		{"under it", "ip4 ttl=4 udp", "ttl_below_min", NULL, 0, 1},
		{"zero", "ip4 ttl=0", "ttl_below_min", NULL, 0, 1},
		{"most", "ip4 ttl=255", "next", NULL, 0, 1},
		{"options", "ip4 ttl=4 opt=01010101", "ttl_below_min", NULL, 0, 1},
		{"a fragment", "ip4 ttl=5 off=100 data=8", "next", NULL, 0, 1},
		{"IPv6 at the bound", "ip6 hop=5 udp", "next", NULL, 0, 1},
		{"IPv6 under it", "ip6 hop=4 udp", "ttl_below_min", NULL, 0, 1},
		{"two tags", "qinq vlan ip6 hop=4", "ttl_below_min", NULL, 0, 1},
		{"ARP", "type=0806 data=28", "next", NULL, 0, 1},
		{"three tags", "vlan vlan vlan ip4 ttl=4", "next", NULL, 0, 1},
		{"a byte of IPv4 is missing", "ip4 ttl=9 cut=33", "bad_header", NULL, 0, 1},
		{"a byte of IPv6 is missing", "ip6 hop=9 cut=53", "bad_header", NULL, 0, 1},
		{"no whole Ethernet header", "cut=13", "bad_header", NULL, 0, 1},
	};
	void *nf = packet_nf(&cv_nf_ttl_limit, "{'min': 5}", NULL);

	packet_table(&cv_nf_ttl_limit, nf, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_destroy(&cv_nf_ttl_limit, nf);
}

static void what_is_not_ip_can_be_dropped(void **state)
{
	static const struct packet_row rows[] = {
		{"ARP", "type=0806 data=28", "non_ip", NULL, 0, 1},
		{"three tags", "vlan vlan vlan ip4 ttl=9", "non_ip", NULL, 0, 1},
		{"the default bound", "ip4 ttl=2", "next", NULL, 0, 1},
		{"under the default bound", "ip4 ttl=1", "ttl_below_min", NULL, 0, 1},
	};
	void *nf = packet_nf(&cv_nf_ttl_limit, "{'non_ip': 'drop'}", NULL);

	packet_table(&cv_nf_ttl_limit, nf, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_destroy(&cv_nf_ttl_limit, nf);
}

static void refuses_what_is_out_of_range(void **state)
{
	packet_refused(&cv_nf_ttl_limit, "{'min': 256}", "must be a whole number from 1 to 255");
	packet_refused(&cv_nf_ttl_limit, "{'max': 1}", "max: unknown; known are: min non_ip");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_what_is_under_the_bound),
		cmocka_unit_test(what_is_not_ip_can_be_dropped),
		cmocka_unit_test(refuses_what_is_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
