// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_l2fwd;

static void registered(void **state)
{
	assert_ptr_equal(cv_nf_find("l2fwd"), &cv_nf_l2fwd);
	assert_null(cv_nf_find("l2fw"));
	assert_null(cv_nf_find(""));
	for (const struct cv_nf *const *nf = cv_nfs; *nf != NULL; nf++) {
		unsigned drops = 0;

		while ((*nf)->drops[drops] != NULL)
			drops++;
		assert_true(drops <= CV_DROPS_MAX);
		assert_ptr_equal(cv_nf_find((*nf)->name), *nf);
	}
}

static void rewrite(void **state)
{
	static const struct packet_row rows[] = {
		{"source is that of the port it leaves by", "ip4 udp data=18", "next",
			"src=02:aa:00:00:00:01 ip4 udp data=18", 0, 1},
		{"by another port", "ip4 udp data=18", "next",
			"src=02:aa:00:00:00:03 ip4 udp data=18", 2, 3},
		{"vlan", "vlan id=10 ip4", "next", "src=02:aa:00:00:00:01 vlan id=10 ip4", 0, 1},
		{"qinq", "qinq id=9 vlan id=10 ip6", "next",
			"src=02:aa:00:00:00:01 qinq id=9 vlan id=10 ip6", 0, 1},
		{"only an Ethernet header", "", "next", "src=02:aa:00:00:00:01", 0, 1},
		{"a byte short", "cut=13", "bad_header", NULL, 0, 0},
		{"nothing", "cut=0", "bad_header", NULL, 0, 0},
	};
	static const struct packet_row both[] = {
		{"both", "ip4", "next", "dst=02:00:00:00:00:99 src=02:00:00:00:00:98 ip4", 0, 1},
	};
	void *nf = packet_nf(&cv_nf_l2fwd, "{}", NULL);

	packet_table(&cv_nf_l2fwd, nf, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_l2fwd.destroy(nf);
	nf = packet_nf(&cv_nf_l2fwd,
		"{'mode': 'rewrite', 'src': '02:00:00:00:00:98', 'dst': '02:00:00:00:00:99'}",
		NULL);
	packet_table(&cv_nf_l2fwd, nf, both, 1);
	cv_nf_l2fwd.destroy(nf);
}

// The ports are opened after the function is made: their addresses are not known before.
static void the_ports_addresses_are_known_at_start(void **state)
{
	static const struct packet_row row = {
		"rewritten", "ip4", "next", "src=02:bb:00:00:00:01 ip4", 0, 1};
	const uint8_t macs[4][6] = {[1] = {2, 0xbb, 0, 0, 0, 1}};
	struct cv_nf_env env = *packet_env();
	struct cv_error error = {""};
	json_t *config = json_object();
	void *nf;

	env.macs = NULL;
	nf = cv_nf_create(&cv_nf_l2fwd, config, &env, &error);
	env.macs = macs;
	cv_nf_start(&cv_nf_l2fwd, nf, &env);
	packet_table(&cv_nf_l2fwd, nf, &row, 1);
	cv_nf_l2fwd.destroy(nf);
	json_decref(config);
}

static void swap(void **state)
{
	static const struct packet_row rows[] = {
		{"swapped", "ip4 udp data=1", "next",
			"dst=02:00:00:00:00:01 src=02:00:00:00:00:02 ip4 udp data=1", 0, 1},
		{"vlan", "vlan id=1 type=1234", "next",
			"dst=02:00:00:00:00:01 src=02:00:00:00:00:02 vlan id=1 type=1234", 0, 1},
		{"a byte short", "cut=13", "bad_header", NULL, 0, 0},
	};
	void *nf = packet_nf(&cv_nf_l2fwd, "{'mode': 'swap'}", NULL);

	packet_table(&cv_nf_l2fwd, nf, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_l2fwd.destroy(nf);
}

static void bad_configurations(void **state)
{
	packet_refused(&cv_nf_l2fwd, "{'mode': 'swap', 'src': '02:00:00:00:00:01'}",
		"nf: src and dst are for mode rewrite, and this is mode swap");
	packet_refused(&cv_nf_l2fwd, "{'dst': '01:00:5e:00:00:01'}",
		"dst: \"01:00:5e:00:00:01\": must be a unicast MAC");
	packet_refused(
		&cv_nf_l2fwd, "{'mod': 'swap'}", "nf: mod: unknown; known are: mode src dst");
	packet_refused(&cv_nf_l2fwd, "{'mode': 'bridge'}",
		"mode: \"bridge\": must be one of: rewrite swap");
	packet_refused(&cv_nf_l2fwd, "{'mode': 1}", "mode: 1: must be one of: rewrite swap");
	packet_refused(&cv_nf_l2fwd, "{'src': '02:00'}", "src: \"02:00\": must be a unicast MAC");
	packet_refused(&cv_nf_l2fwd, "{'dst': null}", "dst: null: must be a unicast MAC");
	packet_refused(&cv_nf_l2fwd, "[]", "must be an object");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered),
		cmocka_unit_test(rewrite),
		cmocka_unit_test(the_ports_addresses_are_known_at_start),
		cmocka_unit_test(swap),
		cmocka_unit_test(bad_configurations),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
