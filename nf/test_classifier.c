// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What rules match is the firewall's, and tested there.
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_classifier;

static void marks_and_sends(void **state)
{
	// description, packet in, verdict, packet out (NULL: unchanged), port in, port out
	static const struct packet_row rows[] = {
		{"marked", "ip4 src=10.1.2.3 udp dport=53", "next",
			"ip4 src=10.1.2.3 tos=184 udp dport=53", 0, 1},
		{"ECN stays", "ip4 src=10.1.2.3 tos=3 udp dport=53 data=9", "next",
			"ip4 src=10.1.2.3 tos=187 udp dport=53 data=9", 0, 1},
		{"marked and sent", "ip4 udp dport=5061", "output 0", "ip4 tos=136 udp dport=5061",
			0, 1},
		{"IPv6", "ip6 udp dport=5060 data=3", "output 0", NULL, 0, 1},
		{"the first rule decides", "ip4 src=10.0.0.1 udp dport=5060", "next",
			"ip4 src=10.0.0.1 tos=184 udp dport=5060", 0, 1},
		{"tagged: another id", "vlan id=7 ip4 tcp dport=80", "next",
			"vlan id=10 ip4 tcp dport=80", 0, 1},
		{"the outer tag", "qinq id=7 vlan id=8 ip4 tcp dport=80", "next",
			"qinq id=10 vlan id=8 ip4 tcp dport=80", 0, 1},
		{"TCP flags", "vlan id=7 ip4 tcp flags=2", "next", "vlan id=9 ip4 tcp flags=2", 0,
			1},
		{"flags cut off", "ip4 proto=6 data=13", "output 1", NULL, 0, 1},
		{"nothing matches", "ip4 tcp dport=81", "output 1", NULL, 0, 1},
		{"a non-first fragment", "ip4 off=8 proto=17 data=16", "output 1", NULL, 0, 1},
		{"not IP", "type=0806 data=28", "output 1", NULL, 0, 1},
		{"cut short", "ip4 udp cut=30", "output 1", NULL, 0, 1},
	};
	void *nf = packet_nf(&cv_nf_classifier,
		"{'rules': [{'match': {'proto': 'tcp', 'tcp_flags': 'syn,!ack'}, 'vlan': 9},"
		"           {'match': {'src': '10.0.0.0/8'}, 'dscp': 46},"
		"           {'match': {'proto': 'udp', 'dport': '5060-5090', 'src': '0.0.0.0/0'},"
		"            'dscp': 34, 'output': 'voice'},"
		"           {'match': {'proto': 'udp', 'dport': 5060, 'src': '::/0'},"
		"            'output': 'voice'},"
		"           {'match': {'proto': 'tcp', 'dport': 80}, 'vlan': 10}],"
		" 'rest': 'rest'}",
		NULL);

	packet_table(&cv_nf_classifier, nf, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_destroy(&cv_nf_classifier, nf);
}

static void the_traffic_class_of_ipv6_is_split(void **state)
{
	struct packet packet = packet_make("ip6 src=2001:db8::1 udp");
	struct cv_view view = {.in = 0, .out = 1};
	void *nf = packet_nf(&cv_nf_classifier, "{'rules': [{'match': {}, 'dscp': 46}]}", NULL);
	struct cv_nf_worker worker = {0};
	uint8_t verdict;

	packet.bytes[15] = 0x3a; // ECN 3 and the flow label's first bits
	cv_view_set(&view, packet.bytes, packet.len);
	assert_int_equal(cv_nf_classifier.process(nf, &worker, &view, &verdict, 1), 0);
	assert_int_equal(verdict, CV_NEXT);
	assert_int_equal(packet.bytes[14], 0x6b); // 46 is 101110: 6, 1011
	assert_int_equal(packet.bytes[15], 0xba); // 10, 11, 1010
	cv_nf_destroy(&cv_nf_classifier, nf);
}

static void refuses_what_leads_nowhere(void **state)
{
	const struct cv_nf *nf = &cv_nf_classifier;

	packet_refused(nf, "{'rest': 'bulk'}", "rest: no output is called \"bulk\"");
	packet_refused(nf, "{'rules': [{'match': {}}, {'match': {}, 'output': 'x'}]}",
		"rules[1]: output: no output is called \"x\"; add it");
	packet_refused(nf,
		"{'rules': [{'match': {'dport': 80}}, {'match': {'src': '10.0.0.1/8'}}]}",
		"rules[1]: src: \"10.0.0.1/8\": host bits are set");
	packet_refused(nf, "{'rules': [{'dscp': 3}]}", "rules[0]: match: is missing");
	packet_refused(nf, "{'rules': [{'match': {}, 'dscp': 64}]}", "whole number from 0 to 63");
	packet_refused(nf, "{'rules': [{'match': {'action': 'deny'}, 'to': 1}]}", "to: unknown");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_and_sends),
		cmocka_unit_test(the_traffic_class_of_ipv6_is_split),
		cmocka_unit_test(refuses_what_leads_nowhere),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
