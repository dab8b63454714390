// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The firewall behind the flow path: sequences of packets, each in a fresh table.
#include "tests/support/test_packets.h"

#include "flow/path.h"

extern const struct cv_nf cv_nf_firewall;

#define HZ 1000000000u

static const struct cv_flow_limits limits = {
	.max = 64, .max_ipv6 = 64, .timeouts_s = {240, 7440, 240, 120, 300, 60, 600, 5}};

#define OUT "src=10.0.0.1 dst=198.51.100.7"
#define BACK "src=198.51.100.7 dst=10.0.0.1"

// A packet and its verdict. FLAGS of TCP stand before the text: "S", "SA", "R" ... "!", in place of
// a packet: the same rules are applied again.
struct step {
	const char *flags, *packet, *verdict;
};

static void run(const char *config, const struct step *steps)
{
	void *instance = packet_nf(&cv_nf_firewall, config, NULL);
	const struct cv_flow_member member = {&cv_nf_firewall, instance};
	struct cv_nf_counters counters = {0}, *list = &counters;
	struct cv_nf_worker worker = {.now = 5ull * HZ};
	struct cv_error error = {""};
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;

	assert_true(cv_flow_is_stateful(&cv_nf_firewall, instance));
	zone = cv_flow_zone_create(&member, 1, &limits, HZ, &error);
	assert_non_null(zone);
	group = cv_flow_group_create(zone, (const uint8_t[]){0}, &list);
	for (; steps->packet != NULL; steps++) {
		if (steps->flags[0] == '!') {
			void *before = instance;

			instance = packet_nf(&cv_nf_firewall, config, NULL);
			cv_flow_zone_replace(zone, 0, instance);
			cv_nf_destroy(&cv_nf_firewall, before);
			continue;
		}
		struct packet packet = packet_make(steps->packet);
		const unsigned reason = packet_verdict(&cv_nf_firewall, steps->verdict);
		const uint64_t before = reason == CV_NEXT ? 0 : counters.drops[reason - 1];
		struct cv_view view = {.out = 1};
		uint8_t verdict;

		for (const char *flag = steps->flags; *flag != '\0'; flag++)
			packet.bytes[14 + 20 + 13] |= *flag == 'S'   ? 2
						      : *flag == 'A' ? 16
						      : *flag == 'F' ? 1
								     : 4;
		cv_view_set(&view, packet.bytes, packet.len);
		cv_flow_process(group, &worker, &view, &verdict, 1);
		if ((verdict == CV_NEXT) != (reason == CV_NEXT) ||
			(reason != CV_NEXT && counters.drops[reason - 1] != before + 1))
			fail_msg("%s %s: not %s", steps->flags, steps->packet, steps->verdict);
	}
	cv_flow_zone_destroy(zone);
	cv_nf_destroy(&cv_nf_firewall, instance);
}

static const char *const from_inside =
	"{'stateful': true, 'rules': [{'action': 'allow', 'src': '10.0.0.0/8'},"
	" {'action': 'allow', 'src': '2001:db8::/64'}]}";

static void answers_pass(void **state)
{
	run(from_inside,
		(const struct step[]){{"", "ip4 " BACK " udp sport=53 dport=9", "default_denied"},
			{"", "ip4 " OUT " udp sport=9 dport=53", "next"},
			{"", "ip4 " BACK " udp sport=53 dport=9", "next"},
			{"", "ip4 " BACK " udp sport=54 dport=9", "default_denied"},
			{"", "ip4 " BACK " udp sport=53 dport=10", "default_denied"},
			{"", "vlan id=7 ip4 " BACK " udp sport=53 dport=9", "next"},
			{"", "ip6 src=2001:db8::1 dst=2001:db8:1::1 udp sport=9 dport=53", "next"},
			{"", "ip6 src=2001:db8:1::1 dst=2001:db8::1 udp sport=53 dport=9", "next"},
			{"", "ip6 src=2001:db8:1::1 dst=2001:db8::1 udp sport=1 dport=9",
				"default_denied"},
			{"", "ip4 " OUT " proto=50 data=20", "next"},
			{"", "ip4 " BACK " proto=50 data=20", "next"},
			{"", "ip4 " BACK " proto=47 data=20", "default_denied"}, {0}});
}

static void tcp_begins_with_a_syn(void **state)
{
	static const struct step strict[] = {{"A", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"SA", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"SF", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"R", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"S", "ip4 " OUT " tcp sport=9 dport=80", "next"},
		{"SA", "ip4 " BACK " tcp sport=80 dport=9", "next"},
		{"A", "ip4 " OUT " tcp sport=9 dport=80", "next"},
		{"A", "ip4 " BACK " tcp sport=80 dport=9", "next"},
		{"S", "ip4 " BACK " tcp sport=81 dport=9", "default_denied"},
		{"R", "ip4 " BACK " tcp sport=80 dport=9", "next"},
		{"S", "ip4 " BACK " tcp sport=80 dport=9", "default_denied"}, // another connection
		{"S", "ip4 " OUT " tcp sport=9 dport=80", "next"}, {0}};
	static const struct step loose[] = {{"R", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
		{"A", "ip4 " OUT " tcp sport=9 dport=80", "next"},
		{"A", "ip4 " BACK " tcp sport=80 dport=9", "next"},
		{"A", "ip4 " BACK " tcp sport=81 dport=9", "default_denied"}, {0}};

	run(from_inside, strict);
	run("{'stateful': true, 'tcp_loose': true, 'rules': [{'action': 'allow', 'src': "
	    "'10.0.0.0/8'}]}",
		loose);
}

// A connection that is over is not opened again from outside, also if rules changed meanwhile.
static void who_opens_again_is_asked_for(void **state)
{
	run(from_inside,
		(const struct step[]){{"S", "ip4 " OUT " tcp sport=9 dport=80", "next"},
			{"SA", "ip4 " BACK " tcp sport=80 dport=9", "next"},
			{"A", "ip4 " OUT " tcp sport=9 dport=80", "next"},
			{"FA", "ip4 " OUT " tcp sport=9 dport=80", "next"},
			{"FA", "ip4 " BACK " tcp sport=80 dport=9", "next"}, {"!", "", ""},
			{"S", "ip4 " BACK " tcp sport=80 dport=9", "default_denied"},
			{"SA", "ip4 " OUT " tcp sport=9 dport=80", "invalid"},
			{"A", "ip4 " BACK " tcp sport=80 dport=9", "default_denied"}, {0}});
}

static void related_errors_pass(void **state)
{
	// The packet inside: 10.0.0.1:9 > 198.51.100.7:53, UDP.
#define INSIDE                                         \
	"hex=4500002000000000401100000a000001c6336407" \
	"00090035000c0000"
	run(from_inside,
		(const struct step[]){
			{"", "ip4 src=203.0.113.1 dst=10.0.0.1 icmp kind=3 code=1 " INSIDE,
				"invalid"},
			{"", "ip4 " OUT " udp sport=9 dport=53", "next"},
			{"", "ip4 src=203.0.113.1 dst=10.0.0.1 icmp kind=3 code=1 " INSIDE, "next"},
			{"", "ip4 src=203.0.113.1 dst=10.0.0.2 icmp kind=3 code=1 " INSIDE,
				"invalid"},
			{"", "ip4 " OUT " proto=1 hex=0800000000070001", "next"},
			{"", "ip4 " BACK " proto=1 hex=0000000000070001", "next"},
			{"", "ip4 " BACK " proto=1 hex=0000000000080001", "default_denied"},
			{"", "ip4 " BACK " proto=1 hex=0800000000070001", "default_denied"}, {0}});
}

static void what_is_no_flow(void **state)
{
	static const struct step steps[] = {{"", "type=0806 data=28", "non_ip"},
		{"", "ip4 " OUT " udp cut=38", "bad_header"},
		{"", "ip4 " OUT " mf=1 proto=17 data=2", "bad_header"},
		{"", "vlan vlan vlan ip4 " OUT, "bad_header"}, {0}};

	run("{'stateful': true, 'default': 'allow', 'non_ip': 'drop'}", steps);
}

// A rule's counter counts flows: it decided so many.
static void rules_see_first_packets(void **state)
{
	void *instance = packet_nf(&cv_nf_firewall,
		"{'stateful': true, 'rules': [{'action': 'deny', 'proto': 'udp', 'dport': 23},"
		"{'action': 'allow', 'proto': 'icmp'}, {'action': 'allow', 'dst': '10.0.0.0/8', "
		"'proto': 'tcp'}]}",
		NULL);
	const struct cv_flow_packet packet = {.tcp_flags = 2, .why = CV_FLOW_NEW};
	static const struct {
		struct cv_flow_tuple tuple;
		uint8_t verdict; // as of a first packet
	} rows[] = {
		{{.family = 4, .proto = 17, .dport = RTE_BE16(23)}, CV_DROP(0)},
		{{.family = 6, .proto = 17, .dport = RTE_BE16(23)}, CV_DROP(0)},
		{{.family = 6, .proto = 17, .sport = RTE_BE16(23)}, CV_DROP(1)},
		// An identifier is no port.
		{{.family = 4, .proto = 1, .sport = RTE_BE16(23)}, CV_NEXT},
		{{.family = 4, .proto = 6, .dst.ipv4 = RTE_BE32(0x0a010203)}, CV_NEXT},
		{{.family = 4, .proto = 6, .src.ipv4 = RTE_BE32(0x0a010203)}, CV_DROP(1)},
	};
	json_t *info;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_nf_worker worker = {.index = 1};
		struct cv_flow_actions actions = {.tuple = rows[i].tuple};

		assert_int_equal(
			cv_nf_firewall.flow->decide(instance, &worker, &packet, &actions, NULL),
			rows[i].verdict);
	}
	info = cv_nf_firewall.info(instance);
	assert_int_equal(json_integer_value(json_object_get(info, "default_packets")), 2);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(info, "rules"), 0), "packets")),
		2);
	json_decref(info);
	cv_nf_destroy(&cv_nf_firewall, instance);
}

// Rules ask for what the flow's first packet has; what follows needs none of it.
static void fields_of_first_packets(void **state)
{
	static const struct step steps[] = {{"", "ip4 " OUT " tcp flags=2", "default_denied"},
		{"", "ip4 " OUT " tos=184 tcp flags=2 sport=9 dport=80", "next"},
		{"", "ip4 " BACK " tcp flags=0x12 sport=80 dport=9", "next"},
		{"", "ip4 " OUT " tcp flags=0x10 sport=9 dport=80", "next"},
		{"", "vlan id=7 ip6 udp dport=9 data=9", "next"},
		{"", "vlan id=8 ip6 udp dport=8 data=9", "default_denied"},
		{"", "ip4 " OUT " proto=1 hex=0800000000070001", "next"},
		{"", "ip4 " BACK " proto=1 hex=0000000000070001", "next"},
		{"", "ip4 " BACK " proto=1 hex=0d00000000070001", "default_denied"},
		{"", "ip4 " OUT " udp dport=9 data=80", "denied"},
		{"", "ip4 " OUT " udp dport=8 data=8", "default_denied"}, {0}};

	run("{'stateful': true, 'rules': ["
	    "{'action': 'allow', 'proto': 'tcp', 'tcp_flags': 'syn', 'dscp': 46},"
	    "{'action': 'allow', 'proto': 'icmp', 'icmp_type': 8},"
	    "{'action': 'deny', 'proto': 'udp', 'length': '60-1500'},"
	    "{'action': 'allow', 'vlan': 7}]}",
		steps);
}

// So they do when the same rules are applied again, whichever packet comes next.
static void first_packets_are_remembered(void **state)
{
	run("{'stateful': true, 'rules': [{'action': 'allow', 'vlan': 7}]}",
		(const struct step[]){{"", "vlan id=7 ip4 " OUT " udp sport=9 dport=53", "next"},
			{"!", "", ""}, {"", "ip4 " BACK " udp sport=53 dport=9", "next"},
			{"", "vlan id=7 ip4 " OUT " udp sport=9 dport=53", "next"}, {0}});
	run("{'stateful': true, 'default': 'allow', 'rules': [{'action': 'deny', 'length': "
	    "'60-1500'}, {'action': 'deny', 'dscp': 46}]}",
		(const struct step[]){{"", "ip4 " OUT " udp sport=9 dport=53", "next"},
			{"!", "", ""},
			{"", "ip4 " BACK " tos=184 udp sport=53 dport=9 data=99", "next"},
			{"!", "", ""}, {"", "ip4 " OUT " udp sport=9 dport=53 data=99", "next"},
			{"", "ip4 " OUT " udp sport=8 dport=53 data=99", "denied"},
			{"", "ip4 " OUT " tos=184 udp sport=7 dport=53", "denied"}, {0}});
}

// Of a segment in fragments only the first one's end is seen; it is acknowledged as a whole.
static void segments_in_fragments(void **state)
{
	// Ports, number, acknowledgement, offset.
#define THERE(seq, ack) "hex=00090050" seq ack "50"
#define FROM_THERE(seq, ack) "hex=00500009" seq ack "50"
#define REST "040000000000"
	run("{'stateful': true, 'default': 'allow', 'tcp_window': 'all'}",
		(const struct step[]){
			{"", "ip4 " OUT " proto=6 " THERE("00000fff", "00000000") "02" REST,
				"next"},
			{"", "ip4 " BACK " proto=6 " FROM_THERE("00001fff", "00001000") "12" REST,
				"next"},
			{"", "ip4 " OUT " proto=6 " THERE("00001000", "00002000") "10" REST,
				"next"},
			{"",
				"ip4 " OUT " id=9 mf=1 proto=6 " THERE(
					"00001000", "00002000") "10" REST "00000000",
				"next"},
			{"", "ip4 " OUT " id=9 off=3 proto=6 data=16", "next"},
			{"", "ip4 " BACK " proto=6 " FROM_THERE("00002000", "00001014") "10" REST,
				"next"},
			{0}});
}

// More rules than are scanned: the trie says the same.
static void many_rules(void **state)
{
	char config[4096];
	int n = snprintf(config, sizeof(config), "{'stateful': true, 'rules': [");
	static const struct step steps[] = {{"", "ip4 " OUT " udp sport=9 dport=1109", "next"},
		{"", "ip4 " BACK " udp sport=1109 dport=9", "next"},
		{"", "ip4 " OUT " udp sport=9 dport=1111", "default_denied"}, {0}};

	for (unsigned i = 0; i < 110; i++)
		n += snprintf(config + n, sizeof(config) - (size_t)n,
			"%s{'action':'allow','dport':%u}", i > 0 ? "," : "", 1000 + i);
	snprintf(config + n, sizeof(config) - (size_t)n, "]}");
	run(config, steps);
}

// Flows of one burst are asked about together: each has the verdict that it has alone.
static void flows_that_begin_together(void **state)
{
	static const char *const configs[] = {
		"{'stateful': true, 'rules': [{'action': 'deny', 'proto': 'udp', 'dport': 20},"
		" {'action': 'allow', 'src': '10.0.0.0/8'},"
		" {'action': 'allow', 'src': '2001:db8::/64'}]}",
		"{'stateful': true, 'rules': [{'action': 'deny', 'dscp': 5},"
		" {'action': 'deny', 'dport': '20-21'}, {'action': 'allow', 'src': '10.0.0.0/8'}]}",
	};
	enum { FLOWS = 24 };

	for (unsigned c = 0; c < RTE_DIM(configs); c++) {
		void *instance = packet_nf(&cv_nf_firewall, configs[c], NULL);
		const struct cv_flow_member member = {&cv_nf_firewall, instance};
		struct cv_nf_counters counters[2] = {0};
		struct cv_nf_worker worker = {.now = 5ull * HZ};
		struct cv_flow_group *group[2];
		struct cv_flow_zone *zone[2];
		struct packet packets[FLOWS];
		struct cv_view views[FLOWS];
		uint8_t verdicts[FLOWS + 1], alone;
		struct cv_error error = {""};

		for (unsigned i = 0; i < 2; i++) {
			struct cv_nf_counters *list = &counters[i];

			zone[i] = cv_flow_zone_create(&member, 1, &limits, HZ, &error);
			assert_non_null(zone[i]);
			group[i] = cv_flow_group_create(zone[i], (const uint8_t[]){0}, &list);
		}
		for (unsigned i = 0; i < FLOWS; i++) {
			char text[96];

			snprintf(text, sizeof(text), "%s %s %s sport=%u dport=%u",
				i % 5 == 0 ? "ip6 src=2001:db8::1" : "ip4 src=10.0.0.1",
				i % 5 != 0 && i % 3 == 0 ? "tos=20" : "",
				i % 4 == 0 ? "tcp" : "udp", 1 + i, 19 + i % 4);
			packets[i] = packet_make(text);
			if (i % 20 == 4) // the other TCP begins without
				packets[i].bytes[14 + 20 + 13] |= 2;
			views[i] = (struct cv_view){.out = 1};
			cv_view_set(&views[i], packets[i].bytes, packets[i].len);
		}
		cv_flow_process(group[0], &worker, views, verdicts, FLOWS);
		for (unsigned i = 0; i < FLOWS; i++) {
			cv_flow_process(group[1], &worker, &views[i], &alone, 1);
			assert_int_equal(verdicts[i], alone);
		}
		assert_memory_equal(
			counters[0].drops, counters[1].drops, sizeof(counters[0].drops));
		for (unsigned i = 0; i < 2; i++)
			cv_flow_zone_destroy(zone[i]);
		cv_nf_destroy(&cv_nf_firewall, instance);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_pass),
		cmocka_unit_test(tcp_begins_with_a_syn),
		cmocka_unit_test(who_opens_again_is_asked_for),
		cmocka_unit_test(related_errors_pass),
		cmocka_unit_test(what_is_no_flow),
		cmocka_unit_test(rules_see_first_packets),
		cmocka_unit_test(fields_of_first_packets),
		cmocka_unit_test(first_packets_are_remembered),
		cmocka_unit_test(segments_in_fragments),
		cmocka_unit_test(many_rules),
		cmocka_unit_test(flows_that_begin_together),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
