// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/support/test_packets.h"

#include <rte_cycles.h>

#include "flow/path.h"

extern const struct cv_nf cv_nf_policer;

static const struct cv_nf *const nf = &cv_nf_policer;

// Passes so many copies of a packet at a time; returns how many got the verdict.
static unsigned pass(void *instance, unsigned worker, uint64_t now, const char *text, unsigned n,
	const char *verdict_name)
{
	struct packet_row row = {.in = text};
	struct cv_nf_worker at = {.index = worker, .now = now};
	unsigned with = 0;

	for (unsigned i = 0; i < n; i++) {
		struct cv_view view;
		uint8_t verdict = 0xa5;
		uint16_t others;

		packet_views(&view, 1, &row, 1);
		others = nf->process(instance, &at, &view, &verdict, 1);
		assert_int_equal(others, verdict != CV_NEXT);
		with += verdict == packet_verdict(nf, verdict_name);
		free(view.data);
	}
	return with;
}

// A rate that no test reaches, and marks for all: what is not measured, and what marks look like.
static void marks_what_it_measures(void **state)
{
	static const struct packet_row rows[] = {
		{"IPv4", "ip4 udp data=18", "next", "ip4 tos=48 udp data=18", 0, 1},
		{"ECN stays", "ip4 tos=3 udp", "next", "ip4 tos=51 udp", 0, 1},
		{"another DSCP", "ip4 tos=184 tcp", "next", "ip4 tos=48 tcp", 0, 1},
		{"options", "ip4 opt=01010101 udp", "next", "ip4 tos=48 opt=01010101 udp", 0, 1},
		{"a fragment", "ip4 off=100 data=8", "next", "ip4 tos=48 off=100 data=8", 0, 1},
		{"padding", "ip4 udp pad=18", "next", "ip4 tos=48 udp pad=18", 0, 1},
		{"two tags", "qinq vlan ip4 udp", "next", "qinq vlan ip4 tos=48 udp", 0, 1},
		{"ARP", "type=0806 data=28", "next", NULL, 0, 1},
		{"three tags", "vlan vlan vlan ip4", "bad_header", NULL, 0, 1},
		{"an old tag", "type=9100 data=40", "bad_header", NULL, 0, 1},
		{"no whole Ethernet header", "cut=13", "bad_header", NULL, 0, 1},
		{"a byte of IPv4 is missing", "ip4 cut=33", "bad_header", NULL, 0, 1},
		{"a byte of IPv6 is missing", "ip6 cut=53", "bad_header", NULL, 0, 1},
		{"longer than the frame", "ip4 len=21", "bad_header", NULL, 0, 1},
		{"shorter than its header", "ip4 len=19", "bad_header", NULL, 0, 1},
		{"IHL 4", "ip4 ihl=4", "bad_header", NULL, 0, 1},
		{"IPv6 in IPv4's EtherType", "ip4 ver=6", "bad_header", NULL, 0, 1},
		{"IPv6 longer than the frame", "ip6 len=1", "bad_header", NULL, 0, 1},
	};
	void *instance = packet_nf(nf, "{'cir_bps': 400000000000, 'green': {'dscp': 12}}", NULL);
	struct packet_row ipv6 = {.in = "vlan ip6 udp data=9"};
	struct cv_view view;
	uint8_t verdict;

	packet_table(nf, instance, rows, RTE_DIM(rows));
	packet_views(&view, 1, &ipv6, 1);
	view.data[18] = 0x6f; // class and flow label all ones
	memset(view.data + 19, 0xff, 3);
	nf->process(instance, &(struct cv_nf_worker){0}, &view, &verdict, 1);
	assert_int_equal(verdict, CV_NEXT);
	assert_memory_equal(view.data + 18, ((uint8_t[]){0x63, 0x3f, 0xff, 0xff}), 4);
	free(view.data);
	cv_nf_destroy(nf, instance);
}

static void what_is_not_ip_can_be_dropped(void **state)
{
	void *instance = packet_nf(nf, "{'cir_pps': 1, 'non_ip': 'drop'}", NULL);

	assert_int_equal(pass(instance, 0, 1, "type=0806 data=28", 3, "non_ip"), 3);
	cv_nf_destroy(nf, instance);
}

// The burst at once, then the rate, exactly.
static void counts_packets(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'cir_pps': 1000, 'cbs_packets': 10, 'ebs_packets': 5, 'yellow': 'drop'}", NULL);
	uint64_t now = 100 * hz;

	assert_int_equal(pass(instance, 0, now, "ip4 udp", 10, "next"), 10);
	assert_int_equal(pass(instance, 0, now, "ip4 udp", 5, "policed_yellow"), 5);
	assert_int_equal(pass(instance, 0, now, "ip6 udp", 7, "policed_red"), 7);
	for (unsigned i = 0; i < 100; i++) { // 3 ms, of which each is one packet
		now += 3 * hz / 1000 + hz / 1000000;
		assert_int_equal(pass(instance, 0, now, "ip4 udp", 9, "next"), 3);
	}
	cv_nf_destroy(nf, instance);
}

// 80 bytes of IP; Ethernet and padding do not count.
static void counts_bytes_of_ip(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'meter': 'trtcm', 'cir_bps': 640000, 'cbs_bytes': 800, 'pir_bps': 1280000, "
		"'pbs_bytes': 1600, 'yellow': {'dscp': 1}}",
		NULL);
	json_t *info, *green;
	uint64_t now = 7 * hz;

	assert_int_equal(
		pass(instance, 0, now, "vlan ip4 udp data=52 pad=100", 21, "policed_red"), 1);
	now += hz / 1000 + hz / 1000000; // 1 ms: 80 and 160 bytes
	assert_int_equal(pass(instance, 0, now, "ip6 udp data=32", 3, "policed_red"), 1);
	info = nf->info(instance);
	green = json_object_get(json_object_get(info, "colours"), "green");
	assert_int_equal(json_integer_value(json_object_get(green, "packets")), 11);
	assert_int_equal(json_integer_value(json_object_get(green, "bytes")), 880);
	json_decref(info);
	cv_nf_destroy(nf, instance);
}

static void packets_come_with_colours(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'meter': 'trtcm-4115', 'colour_aware': true, 'cir_pps': 1, 'cbs_packets': 4, "
		"'eir_pps': 1, 'ebs_packets': 4, 'yellow': 'drop'}",
		NULL);

	assert_int_equal(pass(instance, 0, hz, "ip4 tos=56 udp", 3, "policed_red"), 3); // AF13
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=152 udp", 3, "policed_red"), 3); // AF43
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=48 udp", 3, "policed_yellow"), 3); // AF12
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=40 udp", 1, "next"), 1); // AF11
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=184 udp", 1, "next"), 1); // EF
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=16 udp", 1, "next"), 1); // class 0
	assert_int_equal(pass(instance, 0, hz, "ip4 tos=60 udp", 1, "next"), 1); // DSCP 15
	assert_int_equal(pass(instance, 0, hz, "ip4 udp", 1, "policed_yellow"), 1);
	assert_int_equal(pass(instance, 0, hz, "ip4 udp", 1, "policed_red"), 1);
	cv_nf_destroy(nf, instance);
}

static void hosts_have_meters_of_their_own(void **state)
{
	static const char *const others[] = {"ip4 src=10.0.0.2 udp", "ip4 src=10.0.1.1 udp",
		"vlan ip6 src=2001:db8:0:1::1 udp", "ip6 src=2001:db8:0:2::1 udp"};
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'cir_pps': 1, 'cbs_packets': 3, 'ebs_packets': 1, 'per': 'host', "
		"'yellow': 'drop'}",
		NULL);

	assert_int_equal(pass(instance, 0, hz, "ip4 src=10.0.0.1 udp", 9, "next"), 3);
	for (unsigned i = 0; i < RTE_DIM(others); i++)
		assert_int_equal(pass(instance, 0, hz, others[i], 9, "next"), 3);
	// The same /64.
	assert_int_equal(pass(instance, 0, hz, "ip6 src=2001:db8:0:2::2 udp", 9, "next"), 0);
	cv_nf_destroy(nf, instance);

	instance = packet_nf(nf,
		"{'cir_pps': 1, 'cbs_packets': 3, 'per': 'host', 'host': 'dst', 'ipv4_prefix': 24, "
		"'ipv6_prefix': 128, 'yellow': 'drop'}",
		NULL);
	assert_int_equal(pass(instance, 0, hz, "ip4 dst=10.0.0.1 udp", 2, "next"), 2);
	assert_int_equal(pass(instance, 0, hz, "ip4 dst=10.0.0.9 udp", 2, "next"), 1);
	assert_int_equal(pass(instance, 0, hz, "ip6 dst=::ffff:10.0.0.1 udp", 3, "next"), 3);
	assert_int_equal(pass(instance, 0, hz, "ip6 dst=::ffff:10.0.0.2 udp", 3, "next"), 3);
	cv_nf_destroy(nf, instance);
}

// 64 places: the others are dropped by name, and those that are known keep their rate.
static void a_full_table_drops_by_name(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'cir_pps': 1, 'cbs_packets': 2, 'ebs_packets': 1, 'per': 'host', 'entries': 64}",
		NULL);
	unsigned full = 0;
	char text[64];

	assert_int_equal(pass(instance, 0, hz, "ip4 src=192.0.2.7 udp", 2, "next"), 2);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "ip4 src=10.0.%u.%u udp", i >> 8, i & 255);
		full += pass(instance, 0, hz, text, 1, "table_full");
	}
	assert_int_equal(full, 1000 - 63);
	assert_int_equal(pass(instance, 0, hz, "ip4 src=192.0.2.7 udp", 1, "next"), 1); // yellow
	assert_int_equal(pass(instance, 0, hz, "ip4 src=192.0.2.7 udp", 1, "policed_red"), 1);
	// Once buckets are full again, others have their turn.
	assert_int_equal(pass(instance, 0, 30 * hz, "ip4 src=10.9.9.9 udp", 1, "next"), 1);
	cv_nf_destroy(nf, instance);
}

// Each of the workers that have seen packets has an equal part of the rate.
static void workers_share_a_rate(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();
	void *instance =
		packet_nf(nf, "{'cir_pps': 1000, 'cbs_packets': 200, 'ebs_packets': 1}", NULL);
	uint64_t now = hz;
	unsigned passed = 0;

	pass(instance, 0, now, "ip4 udp", 300, "next");
	now += hz / 10 + hz / 10000;
	assert_int_equal(pass(instance, 0, now, "ip4 udp", 300, "next"), 100);
	pass(instance, 1, now, "ip4 udp", 300, "next");
	now += hz / 10 + hz / 10000;
	for (unsigned worker = 0; worker < 2; worker++)
		passed += pass(instance, worker, now, "ip4 udp", 300, "next");
	assert_int_equal(passed, 100);
	cv_nf_destroy(nf, instance);
}

static const struct cv_flow_limits limits = {
	.max = 256, .max_ipv6 = 256, .timeouts_s = {10, 10, 10, 10, 10, 10, 10, 10}};

enum { PLAIN_BURST = 40, PLAIN_ROUNDS = 30 };

// Passes the same bursts of three flows through a policer. Returns what it counts by colour.
static json_t *colours_of(const char *config, uint8_t verdicts[PLAIN_ROUNDS][PLAIN_BURST])
{
	static const char *const flows[] = {"ip4 udp sport=1 dport=2 data=200",
		"ip4 tcp sport=1 dport=2", "ip6 udp sport=1 dport=2 data=30"};
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf, config, NULL);
	const struct cv_flow_member member = {nf, instance};
	struct cv_nf_counters counters = {0}, *list = &counters;
	struct cv_nf_worker worker = {.now = 5 * hz};
	struct cv_error error = {""};
	struct cv_flow_zone *zone = cv_flow_zone_create(&member, 1, &limits, hz, &error);
	struct cv_flow_group *group;
	json_t *info, *colours;

	assert_non_null(zone);
	group = cv_flow_group_create(zone, (const uint8_t[]){0}, &list);
	for (unsigned round = 0; round < PLAIN_ROUNDS; round++) {
		struct packet_row rows[PLAIN_BURST];
		struct cv_view views[PLAIN_BURST];

		for (unsigned i = 0; i < PLAIN_BURST; i++)
			rows[i] = (struct packet_row){.in = flows[(round + i * i) % 3]};
		packet_views(views, PLAIN_BURST, rows, PLAIN_BURST);
		cv_flow_process(group, &worker, views, verdicts[round], PLAIN_BURST);
		for (unsigned i = 0; i < PLAIN_BURST; i++)
			free(views[i].data);
		worker.now += hz / 50;
	}
	info = nf->info(instance);
	colours = json_incref(json_object_get(info, "colours"));
	json_decref(info);
	cv_flow_zone_destroy(zone);
	cv_nf_destroy(nf, instance);
	return colours;
}

// The fast way of what most policers are, beside the one of those that mark: the same of each packet.
static void plain_ones_are_as_others(void **state)
{
#define METERED \
	"'cir_bps': 160000, 'cbs_bytes': 3000, 'ebs_bytes': 2000, 'per': 'flow', 'entries': 64"
	static uint8_t plain[PLAIN_ROUNDS][PLAIN_BURST], marks[PLAIN_ROUNDS][PLAIN_BURST];
	json_t *a = colours_of("{" METERED ", 'yellow': 'drop'}", plain);
	json_t *b = colours_of("{" METERED ", 'yellow': 'drop', 'green': {'dscp': 0}}", marks);
	static const char *const names[] = {"green", "yellow", "red"};
	json_int_t passed = 0, all = 0;

	assert_memory_equal(plain, marks, sizeof(plain));
	assert_true(json_equal(a, b));
	for (unsigned round = 0; round < PLAIN_ROUNDS; round++)
		for (unsigned i = 0; i < PLAIN_BURST; i++)
			passed += plain[round][i] == CV_NEXT;
	for (unsigned colour = 0; colour < RTE_DIM(names); colour++) {
		const json_t *packets =
			json_object_get(json_object_get(a, names[colour]), "packets");

		assert_true(json_integer_value(packets) > 0);
		all += json_integer_value(packets);
		if (colour == 0)
			assert_int_equal(json_integer_value(packets), passed);
	}
	assert_int_equal(all, PLAIN_ROUNDS * PLAIN_BURST);
	json_decref(a);
	json_decref(b);
}

static void flows_have_meters_of_their_own(void **state)
{
	static const char *const rows[] = {"ip4 udp sport=1 dport=2", "ip4 udp sport=1 dport=3",
		"ip6 udp sport=1 dport=2", "ip4 tcp sport=1 dport=2"};
	const uint64_t hz = rte_get_tsc_hz();
	void *instance = packet_nf(nf,
		"{'cir_pps': 1, 'cbs_packets': 4, 'ebs_packets': 1, 'per': 'flow', 'entries': 64, "
		"'yellow': 'drop', 'green': {'dscp': 12}}",
		NULL);
	const struct cv_flow_member member = {nf, instance};
	struct cv_nf_counters counters = {0}, *list = &counters;
	struct cv_nf_worker worker = {.now = 5 * hz};
	struct cv_error error = {""};
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	unsigned full = 0;

	assert_true(cv_flow_is_stateful(nf, instance));
	zone = cv_flow_zone_create(&member, 1, &limits, hz, &error);
	assert_non_null(zone);
	group = cv_flow_group_create(zone, (const uint8_t[]){0}, &list);
	for (unsigned i = 0; i < 200; i++) {
		struct packet_row row = {.in = i < 4 * 9 ? rows[i % 4] : NULL};
		struct cv_view view;
		uint8_t verdict;
		char text[64];

		if (i >= 36) { // others, until its meters are all in use
			snprintf(text, sizeof(text), "ip4 udp sport=%u dport=9", i);
			row.in = text;
		}
		packet_views(&view, 1, &row, 1);
		cv_flow_process(group, &worker, &view, &verdict, 1);
		assert_int_equal(verdict == CV_NEXT, i < 16 || (i >= 36 && i < 36 + 60));
		if (verdict == CV_NEXT && view.proto == CV_PROTO_IPV4)
			assert_int_equal(view.data[15], 48);
		full += i >= 36 && verdict != CV_NEXT;
		free(view.data);
	}
	assert_int_equal(counters.drops[packet_verdict(nf, "policed_yellow") - 1], 4);
	assert_int_equal(counters.drops[packet_verdict(nf, "policed_red") - 1], 16);
	assert_int_equal(counters.drops[packet_verdict(nf, "table_full") - 1], full);
	assert_int_equal(full, 104);
	// When flows have ended there is room for others.
	for (unsigned i = 0; i < 100; i++) {
		worker.now += hz;
		cv_flow_tick(group, &worker);
	}
	{
		struct packet_row row = {.in = "ip4 udp sport=7 dport=7"};
		struct cv_view view;
		uint8_t verdict;

		packet_views(&view, 1, &row, 1);
		cv_flow_process(group, &worker, &view, &verdict, 1);
		assert_int_equal(verdict, CV_NEXT);
		free(view.data);
	}
	cv_flow_zone_destroy(zone);
	cv_nf_destroy(nf, instance);
}

static void a_colour_can_take_another_chain(void **state)
{
	void *instance = packet_nf(nf,
		"{'cir_pps': 1, 'cbs_packets': 1, 'ebs_packets': 1, 'yellow': {'output': 'rest'}, "
		"'red': {'output': 'voice'}}",
		NULL);
	const uint8_t want[3] = {CV_NEXT, CV_OUTPUT(1), CV_OUTPUT(0)};
	struct packet_row row = {.in = "ip6 udp"};
	struct cv_view views[3];
	uint8_t verdict[3];

	packet_views(views, 3, &row, 1);
	assert_int_equal(nf->process(instance, &(struct cv_nf_worker){0}, views, verdict, 3), 2);
	assert_memory_equal(verdict, want, sizeof(want));
	for (unsigned i = 0; i < 3; i++)
		free(views[i].data);
	cv_nf_destroy(nf, instance);
	packet_refused(nf, "{'cir_pps': 1, 'red': {'output': 'up'}}",
		"red: output: \"up\": no output has that name");
	packet_refused(nf, "{'cir_pps': 1, 'per': 'flow', 'red': {'output': 'rest'}}",
		"is not possible per flow");
}

static void refuses_what_makes_no_sense(void **state)
{
	packet_refused(nf, "{}", "nf: cir_bps is missing; add it, or cir_pps");
	packet_refused(nf, "{'cir_bps': 1, 'cbs_packets': 1}", "in bits and in packets");
	packet_refused(nf, "{'cir_bps': 0}", "must be a whole number from 1 to 400000000000");
	packet_refused(nf, "{'cir_bps': 9, 'meter': 'trtcm'}", "pir_bps: is missing; trtcm needs");
	packet_refused(nf, "{'cir_bps': 9, 'pir_bps': 8, 'meter': 'trtcm'}", "less than cir");
	packet_refused(nf, "{'cir_pps': 9, 'meter': 'trtcm-4115'}", "eir_pps: is missing");
	packet_refused(nf, "{'cir_bps': 9, 'pir_bps': 10}", "pir_bps: is for meter trtcm;");
	packet_refused(nf, "{'cir_bps': 9, 'eir_bps': 10}", "eir_bps: is for meter trtcm-4115;");
	packet_refused(nf, "{'cir_bps': 9, 'pbs_bytes': 10}", "pbs_bytes: is for meter trtcm;");
	packet_refused(nf, "{'cir_bps': 9, 'pir_bps': 9, 'ebs_bytes': 1, 'meter': 'trtcm'}",
		"ebs_bytes: is for meters srtcm and trtcm-4115;");
	packet_refused(nf, "{'cir_bps': 9, 'red': 'paint'}",
		"red: \"paint\": must be pass, drop, {\"dscp\": 0 to 63} or");
	packet_refused(nf, "{'cir_bps': 9, 'red': {'dscp': 64}}",
		"red: dscp: 64: must be a whole number from 0 to 63");
	packet_refused(nf, "{'cir_bps': 9, 'red': {}}", "red: has dscp and output, or none");
	packet_refused(nf, "{'cir_bps': 9, 'per': 'host', 'entries': 63}", "entries: 63:");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_what_it_measures),
		cmocka_unit_test(what_is_not_ip_can_be_dropped),
		cmocka_unit_test(counts_packets),
		cmocka_unit_test(counts_bytes_of_ip),
		cmocka_unit_test(packets_come_with_colours),
		cmocka_unit_test(plain_ones_are_as_others),
		cmocka_unit_test(hosts_have_meters_of_their_own),
		cmocka_unit_test(a_full_table_drops_by_name),
		cmocka_unit_test(workers_share_a_rate),
		cmocka_unit_test(flows_have_meters_of_their_own),
		cmocka_unit_test(a_colour_can_take_another_chain),
		cmocka_unit_test(refuses_what_makes_no_sense),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
