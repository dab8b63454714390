// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <sys/stat.h>
#include <unistd.h>

#include <rte_vect.h>

#include "packet/ipv4.h"
#include "tests/support/test_packets.h"

extern const struct cv_nf cv_nf_router;

// Four ports; the third has hosts of its own, 10.3.0.0/16 and 2001:db8:3::/48.
static const char config[] =
	"{'routes': ["
	"{'prefix': '10.0.0.0/8', 'via': '192.0.2.1', 'dev': 'right'},"
	"{'prefix': '10.1.0.0/16', 'via': '192.0.2.2', 'dev': 'fourth'},"
	"{'prefix': '10.1.2.0/24', 'via': '192.0.2.1', 'dev': 'left'},"
	"{'prefix': '10.1.2.128/25', 'via': '192.0.2.2', 'dev': 'third'},"
	"{'prefix': '10.1.2.129/32', 'via': '192.0.2.1', 'dev': 'right'},"
	"{'prefix': '10.3.0.0/16', 'dev': 'third'},"
	"{'prefix': '10.3.9.0/24', 'via': '192.0.2.2', 'dev': 'left'},"
	"{'prefix': '10.3.0.9/32', 'dev': 'third'},"
	"{'prefix': '2001:db8::/32', 'via': 'fe80::1', 'dev': 'right'},"
	"{'prefix': '2001:db8:1::/48', 'via': 'fe80::1', 'dev': 'left'},"
	"{'prefix': '2001:db8:1:2:3:4:5:6/128', 'via': '2001:db8::9', 'dev': 'fourth'},"
	"{'prefix': '2001:db8:3::/48', 'dev': 'third'}],"
	"'neighbours': ["
	"{'address': '192.0.2.1', 'mac': '02:00:00:00:01:01'},"
	"{'address': '192.0.2.2', 'mac': '02:00:00:00:01:02'},"
	"{'address': '10.3.0.1', 'mac': '02:00:00:00:03:01'},"
	"{'address': '10.3.0.9', 'mac': '02:00:00:00:03:09'},"
	"{'address': '10.3.0.2', 'mac': '02:00:00:00:03:02', 'dev': 'left'},"
	"{'address': '10.3.9.9', 'mac': '02:00:00:00:03:99'},"
	"{'address': 'fe80::1', 'mac': '02:00:00:00:06:01', 'dev': 'right'},"
	"{'address': 'fe80::1', 'mac': '02:00:00:00:06:02', 'dev': 'left'},"
	"{'address': '2001:db8::9', 'mac': '02:00:00:00:06:09'},"
	"{'address': '2001:db8:3::1', 'mac': '02:00:00:00:06:31'}]}";

#define VIA1_RIGHT "dst=02:00:00:00:01:01 src=02:aa:00:00:00:01 "
#define VIA2_FOURTH "dst=02:00:00:00:01:02 src=02:aa:00:00:00:03 "
#define VIA1_LEFT "dst=02:00:00:00:01:01 src=02:aa:00:00:00:00 "
#define VIA2_THIRD "dst=02:00:00:00:01:02 src=02:aa:00:00:00:02 "
#define VIA2_LEFT "dst=02:00:00:00:01:02 src=02:aa:00:00:00:00 "
#define SIX_RIGHT "dst=02:00:00:00:06:01 src=02:aa:00:00:00:01 "
#define SIX_LEFT "dst=02:00:00:00:06:02 src=02:aa:00:00:00:00 "

static const struct packet_row rows[] = {
	// Longest prefix
	{"/8", "ip4 dst=10.200.0.1 udp data=18", "next",
		VIA1_RIGHT "ip4 dst=10.200.0.1 ttl=63 udp data=18", 0, 1},
	{"/16", "ip4 dst=10.1.0.1 udp", "next", VIA2_FOURTH "ip4 dst=10.1.0.1 ttl=63 udp", 0, 3},
	{"/24, out of a port with a smaller number", "ip4 dst=10.1.2.1 udp", "next",
		VIA1_LEFT "ip4 dst=10.1.2.1 ttl=63 udp", 1, 0},
	{"/25", "ip4 dst=10.1.2.130 tcp", "next", VIA2_THIRD "ip4 dst=10.1.2.130 ttl=63 tcp", 0, 2},
	{"/32", "ip4 dst=10.1.2.129 tcp", "next", VIA1_RIGHT "ip4 dst=10.1.2.129 ttl=63 tcp", 0, 1},
	{"no route", "ip4 dst=11.0.0.1 udp", "no_route", NULL, 0, 0},
	// Connected prefixes
	{"a host on the link", "ip4 dst=10.3.0.1 udp", "next",
		"dst=02:00:00:00:03:01 src=02:aa:00:00:00:02 ip4 dst=10.3.0.1 ttl=63 udp", 0, 2},
	{"a host with a route of its own", "ip4 dst=10.3.0.9 udp", "next",
		"dst=02:00:00:00:03:09 src=02:aa:00:00:00:02 ip4 dst=10.3.0.9 ttl=63 udp", 0, 2},
	{"not a neighbour", "ip4 dst=10.3.0.3 udp", "no_neighbour", NULL, 0, 0},
	{"a neighbour on another port", "ip4 dst=10.3.0.2 udp", "no_neighbour", NULL, 0, 0},
	{"a neighbour's address behind a longer route", "ip4 dst=10.3.9.9 udp", "next",
		VIA2_LEFT "ip4 dst=10.3.9.9 ttl=63 udp", 0, 0},
	// TTL
	{"TTL 255", "ip4 dst=10.0.0.1 ttl=255", "next", VIA1_RIGHT "ip4 dst=10.0.0.1 ttl=254", 0,
		1},
	{"TTL 2", "ip4 dst=10.0.0.1 ttl=2", "next", VIA1_RIGHT "ip4 dst=10.0.0.1 ttl=1", 0, 1},
	{"TTL 1", "ip4 dst=10.0.0.1 ttl=1", "ttl_expired", NULL, 0, 0},
	{"TTL 0", "ip4 dst=10.0.0.1 ttl=0", "ttl_expired", NULL, 0, 0},
	// Header
	{"checksum wrong", "ip4 dst=10.0.0.1 sum=1234", "bad_header", NULL, 0, 0},
	{"checksum zero", "ip4 dst=10.0.0.1 sum=0000", "bad_header", NULL, 0, 0},
	{"version 5", "ip4 ver=5 dst=10.0.0.1", "bad_header", NULL, 0, 0},
	{"version 6 in an IPv4 frame", "ip4 ver=6 dst=10.0.0.1", "bad_header", NULL, 0, 0},
	{"IHL 4", "ip4 ihl=4 dst=10.0.0.1 data=20", "bad_header", NULL, 0, 0},
	{"IHL 15 in 20 bytes", "ip4 ihl=15 dst=10.0.0.1", "bad_header", NULL, 0, 0},
	{"total length behind the frame", "ip4 dst=10.0.0.1 len=39 data=18", "bad_header", NULL, 0,
		0},
	{"total length in the header", "ip4 dst=10.0.0.1 len=19 data=18", "bad_header", NULL, 0, 0},
	{"padding", "ip4 dst=10.0.0.1 pad=26", "next", VIA1_RIGHT "ip4 dst=10.0.0.1 ttl=63 pad=26",
		0, 1},
	{"no IPv4 header at all", "ip4 dst=10.0.0.1 cut=14", "bad_header", NULL, 0, 0},
	{"TOS, identification, DF and payload stay",
		"ip4 dst=10.0.0.1 tos=0xb8 id=0xbeef df=1 icmp kind=8 hex=0102030405", "next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 tos=0xb8 id=0xbeef df=1 ttl=63 icmp kind=8 "
			   "hex=0102030405",
		0, 1},
	// Options: record route, and a strict source route that is not followed
	{"options", "ip4 dst=10.0.0.1 opt=0707040000000000 udp data=4", "next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 opt=0707040000000000 ttl=63 udp data=4", 0, 1},
	{"source route", "ip4 dst=10.0.0.1 opt=8907040a01000100", "next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 opt=8907040a01000100 ttl=63", 0, 1},
	{"most options",
		"ip4 dst=10.0.0.1 opt=" // 40 bytes
		"0101010101010101010101010101010101010101"
		"0101010101010101010101010101010101010100 udp",
		"next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 ttl=63 opt="
			   "0101010101010101010101010101010101010101"
			   "0101010101010101010101010101010101010100 udp",
		0, 1},
	{"options, checksum wrong", "ip4 dst=10.0.0.1 opt=01010100 sum=1111", "bad_header", NULL, 0,
		0},
	{"options cut", "ip4 dst=10.0.0.1 opt=0101010101010100 cut=40", "bad_header", NULL, 0, 0},
	// Fragments
	{"first fragment", "ip4 dst=10.0.0.1 id=7 mf=1 udp data=8", "next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 id=7 mf=1 ttl=63 udp data=8", 0, 1},
	{"last fragment", "ip4 dst=10.0.0.1 id=7 off=2 proto=17 data=3", "next",
		VIA1_RIGHT "ip4 dst=10.0.0.1 id=7 off=2 proto=17 ttl=63 data=3", 0, 1},
	// Addresses
	{"source 0/8", "ip4 src=0.1.2.3 dst=10.0.0.1", "martian", NULL, 0, 0},
	{"source 127/8", "ip4 src=127.0.0.1 dst=10.0.0.1", "martian", NULL, 0, 0},
	{"source multicast", "ip4 src=224.0.0.5 dst=10.0.0.1", "martian", NULL, 0, 0},
	{"source 240/4", "ip4 src=240.0.0.1 dst=10.0.0.1", "martian", NULL, 0, 0},
	{"source broadcast", "ip4 src=255.255.255.255 dst=10.0.0.1", "martian", NULL, 0, 0},
	{"destination 0/8", "ip4 dst=0.0.0.0", "martian", NULL, 0, 0},
	{"destination 127/8", "ip4 dst=127.0.0.1", "martian", NULL, 0, 0},
	{"destination multicast", "ip4 dst=224.0.0.5", "multicast", NULL, 0, 0},
	{"destination broadcast", "ip4 dst=255.255.255.255", "martian", NULL, 0, 0},
	{"Ethernet broadcast", "dst=ff:ff:ff:ff:ff:ff ip4 dst=10.0.0.1", "multicast", NULL, 0, 0},
	{"Ethernet multicast", "dst=01:00:5e:00:00:01 ip4 dst=10.0.0.1", "multicast", NULL, 0, 0},
	// Tags
	{"vlan", "vlan id=10 ip4 dst=10.0.0.1 udp data=18", "next",
		VIA1_RIGHT "vlan id=10 ip4 dst=10.0.0.1 ttl=63 udp data=18", 0, 1},
	{"vlan with priority", "vlan id=0xe00a ip6 dst=2001:db8::5 udp", "next",
		SIX_RIGHT "vlan id=0xe00a ip6 dst=2001:db8::5 hop=63 udp", 0, 1},
	{"qinq", "qinq id=20 vlan id=10 ip4 dst=10.1.0.1 udp", "next",
		VIA2_FOURTH "qinq id=20 vlan id=10 ip4 dst=10.1.0.1 ttl=63 udp", 0, 3},
	{"three tags", "qinq id=20 vlan id=10 vlan id=11 ip4 dst=10.0.0.1", "not_ip", NULL, 0, 0},
	// Not IP
	{"ARP", "type=0806 hex=0001080006040001", "not_ip", NULL, 0, 0},
	{"a length, not a type", "type=0003 hex=424203", "not_ip", NULL, 0, 0},
	{"runt", "cut=13", "not_ip", NULL, 0, 0},
	{"nothing", "cut=0", "not_ip", NULL, 0, 0},
	// IPv6
	{"v6 /32", "ip6 dst=2001:db8:77::1 udp data=18", "next",
		SIX_RIGHT "ip6 dst=2001:db8:77::1 hop=63 udp data=18", 0, 1},
	{"v6 /48, the same next hop on another link", "ip6 dst=2001:db8:1::1 tcp", "next",
		SIX_LEFT "ip6 dst=2001:db8:1::1 hop=63 tcp", 0, 0},
	{"v6 /128", "ip6 dst=2001:db8:1:2:3:4:5:6", "next",
		"dst=02:00:00:00:06:09 src=02:aa:00:00:00:03 ip6 dst=2001:db8:1:2:3:4:5:6 hop=63",
		0, 3},
	{"v6 beside the /128", "ip6 dst=2001:db8:1:2:3:4:5:7", "next",
		SIX_LEFT "ip6 dst=2001:db8:1:2:3:4:5:7 hop=63", 0, 0},
	{"v6 host on the link", "ip6 dst=2001:db8:3::1", "next",
		"dst=02:00:00:00:06:31 src=02:aa:00:00:00:02 ip6 dst=2001:db8:3::1 hop=63", 0, 2},
	{"v6 not a neighbour", "ip6 dst=2001:db8:3::2", "no_neighbour", NULL, 0, 0},
	{"v6 no route", "ip6 dst=2001:db9::1", "no_route", NULL, 0, 0},
	{"hop limit 2", "ip6 dst=2001:db8::5 hop=2", "next", SIX_RIGHT "ip6 dst=2001:db8::5 hop=1",
		0, 1},
	{"hop limit 1", "ip6 dst=2001:db8::5 hop=1", "ttl_expired", NULL, 0, 0},
	{"hop limit 0", "ip6 dst=2001:db8::5 hop=0", "ttl_expired", NULL, 0, 0},
	{"extension headers",
		"ip6 dst=2001:db8::5 hbh dstopt size=16 rth frag off=3 mf=1 ah data=9", "next",
		SIX_RIGHT
		"ip6 dst=2001:db8::5 hop=63 hbh dstopt size=16 rth frag off=3 mf=1 ah data=9",
		0, 1},
	{"v6 padding", "ip6 dst=2001:db8::5 udp pad=10", "next",
		SIX_RIGHT "ip6 dst=2001:db8::5 hop=63 udp pad=10", 0, 1},
	{"v6 payload length behind the frame", "ip6 dst=2001:db8::5 len=9 udp", "bad_header", NULL,
		0, 0},
	{"v6 cut in its header", "ip6 dst=2001:db8::5 cut=53", "bad_header", NULL, 0, 0},
	{"version 4 in an IPv6 frame", "ip6 ver=4 dst=2001:db8::5", "bad_header", NULL, 0, 0},
	{"v6 source ::", "ip6 src=:: dst=2001:db8::5", "martian", NULL, 0, 0},
	{"v6 source ::1", "ip6 src=::1 dst=2001:db8::5", "martian", NULL, 0, 0},
	{"v6 source link-local", "ip6 src=fe80::5 dst=2001:db8::5", "martian", NULL, 0, 0},
	{"v6 source multicast", "ip6 src=ff02::5 dst=2001:db8::5", "martian", NULL, 0, 0},
	{"v6 destination link-local", "ip6 dst=fe80::5", "martian", NULL, 0, 0},
	{"v6 destination multicast", "dst=33:33:00:00:00:05 ip6 dst=ff02::5", "multicast", NULL, 0,
		0},
	{"v6 destination ::1", "ip6 dst=::1", "martian", NULL, 0, 0},
};

static void table(void **state)
{
	void *nf = packet_nf(&cv_nf_router, config, NULL);
	json_t *info = cv_nf_router.info(nf);

	packet_table(&cv_nf_router, nf, rows, sizeof(rows) / sizeof(rows[0]));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(info, "routes"), "ipv4")), 8);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(info, "routes"), "ipv6")), 4);
	assert_int_equal(json_integer_value(json_object_get(info, "hosts")), 3);
	json_decref(info);
	cv_nf_router.destroy(nf);
}

// As on a processor whose vectors are shorter.
static void table_short_vectors(void **state)
{
	uint16_t before = rte_vect_get_max_simd_bitwidth();

	assert_true(before >= RTE_VECT_SIMD_128); // the EAL is there
	assert_int_equal(rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_128), 0);
	table(state);
	assert_int_equal(rte_vect_set_max_simd_bitwidth(before), 0);
}

// The ports are opened after the function is made: their addresses are not known before.
static void the_ports_addresses_are_known_at_start(void **state)
{
	static const struct packet_row row = {"rewritten", "ip4 dst=10.200.0.1", "next",
		"dst=02:00:00:00:01:01 src=02:bb:00:00:00:01 ip4 dst=10.200.0.1 ttl=63", 0, 1};
	const uint8_t macs[4][6] = {[1] = {2, 0xbb, 0, 0, 0, 1}};
	struct cv_nf_env env = *packet_env();
	struct cv_error error = {""};
	json_t *json = json_pack("{s:[{s:s, s:s, s:s}], s:[{s:s, s:s}]}", "routes", "prefix",
		"10.0.0.0/8", "via", "192.0.2.1", "dev", "right", "neighbours", "address",
		"192.0.2.1", "mac", "02:00:00:00:01:01");
	void *nf;

	env.macs = NULL;
	nf = cv_nf_create(&cv_nf_router, json, &env, &error);
	json_decref(json);
	env.macs = macs;
	cv_nf_start(&cv_nf_router, nf, &env);
	packet_table(&cv_nf_router, nf, &row, 1);
	cv_nf_router.destroy(nf);
}

// A packet cut at every length, from none to all of its bytes, is forwarded whole or dropped.
static void truncated_at_every_length(void **state)
{
	static const char *const packets[] = {
		"ip4 dst=10.0.0.1 udp data=18",
		"vlan id=1 ip4 dst=10.0.0.1 opt=01010100 tcp",
		"qinq id=2 vlan id=1 ip6 dst=2001:db8::5 hbh udp data=4",
	};
	void *nf = packet_nf(&cv_nf_router, config, NULL);

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct packet whole = packet_make(packets[i]);

		for (uint16_t len = 0; len <= whole.len; len++) {
			uint8_t *exact = malloc(len + !len), verdict;
			struct cv_view view = {.in = 0, .out = 1};

			memcpy(exact, whole.bytes, len);
			cv_view_set(&view, exact, len);
			cv_nf_router.process(
				nf, &(struct cv_nf_worker){.index = 0}, &view, &verdict, 1);
			assert_true((verdict == CV_NEXT) == (len == whole.len));
			free(exact);
		}
	}
	cv_nf_router.destroy(nf);
}

static void without_routes_nothing_goes(void **state)
{
	static const struct packet_row none[] = {
		{"v4", "ip4 dst=10.0.0.1", "no_route", NULL, 0, 0},
		{"v6", "ip6 dst=2001:db8::5", "no_route", NULL, 0, 0},
		{"ARP", "type=0806", "not_ip", NULL, 0, 0},
	};
	void *nf = packet_nf(&cv_nf_router, "{'routes': []}", NULL);

	packet_table(&cv_nf_router, nf, none, 3);
	cv_nf_router.destroy(nf);
}

static void default_and_blackhole(void **state)
{
	static const struct packet_row some[] = {
		{"default", "ip4 dst=8.8.8.8", "next", VIA1_RIGHT "ip4 dst=8.8.8.8 ttl=63", 0, 1},
		{"blackhole", "ip4 dst=10.9.8.7", "no_route", NULL, 0, 0},
		{"inside the blackhole", "ip4 dst=10.9.9.7", "next",
			VIA1_RIGHT "ip4 dst=10.9.9.7 ttl=63", 0, 1},
		{"v6 default", "ip6 dst=2001:db8::5", "next",
			"dst=02:00:00:00:01:06 src=02:aa:00:00:00:00 ip6 dst=2001:db8::5 hop=63", 1,
			0},
	};
	char path[] = "/tmp/cv-routes-XXXXXX", text[400];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	dprintf(fd, "default via 192.0.2.1 dev right proto static\n"
		    "blackhole 10.9.0.0/16\n"
		    "10.9.9.0/24 via 192.0.2.1 dev right\n"
		    "default via 2001:db8::1 dev left metric 1024 pref medium\n");
	close(fd);
	snprintf(text, sizeof(text),
		"{'routes_file': '%s', 'neighbours': ["
		"{'address': '192.0.2.1', 'mac': '02:00:00:00:01:01'},"
		"{'address': '2001:db8::1', 'mac': '02:00:00:00:01:06'}]}",
		path);
	void *nf = packet_nf(&cv_nf_router, text, NULL);

	packet_table(&cv_nf_router, nf, some, sizeof(some) / sizeof(some[0]));
	cv_nf_router.destroy(nf);
	unlink(path);
}

static void bad_configurations(void **state)
{
#define A "'addresses': {'left': ['192.0.2.1/24', '2001:db8::1/64']}"
#define N "'neighbours': [{'address': '192.0.2.1', 'mac': '02:00:00:00:00:01'}]"
	static const struct {
		const char *config, *words;
	} refused[] = {
		{"{'route': []}", "nf: route: unknown; known are: addresses routes"},
		{"{'routes': {}}", "nf: routes: kernel: is missing; add it"},
		{"{'routes': 7}", "nf: routes: 7: must be a list of routes, or"},
		{"{'routes': {'kernel': 'core'}}",
			"nf: routes: kernel: the router has no addresses"},
		{"{" A ", 'routes': {'kernel': 'core', 'table': 7}}", "nf: routes: table: unknown"},
		{"{" A ", 'routes': {'kernel': 'core'}, 'routes_file': 'r.txt'}",
			"nf: routes_file: the kernel has the routes"},
		{"{'routes': [7]}", "nf: routes[0]: must be an object"},
		{"{'routes': [{'prefix': '10.0.0.0/8'}]}",
			"nf: routes[0]: the route names no port; add: dev PORT"},
		{"{" A ", 'routes': [{'prefix': '10.0.0.0/8', 'via': '203.0.113.1'}]}",
			"nf: routes[0]: via 203.0.113.1 is in no connected network; add dev PORT, "
			"or an address of its network under addresses"},
		{"{" A ", 'routes': [{'prefix': '10.0.0.0/8', 'via': '203.0.113.1', "
		 "'dev': 'left'}]}",
			"the MAC address of via 203.0.113.1 on port left is not known; add it to "
			"the neighbours, or an address of its network to the port's addresses"},
		{"{" A ", 'routes': [{'prefix': '192.0.2.0/24', 'dev': 'right'}]}",
			"nf: routes[0]: a second route to 192.0.2.0/24, the first is nf: "
			"addresses: left; remove one"},
		{"{" A ", 'routes': [{'prefix': '10.0.0.0/8', 'nexthops': []}]}",
			"nf: routes[0]: nexthops: has 0 elements; give 1 to 64"},
		{"{" A ", 'routes': [{'prefix': '10.0.0.0/8', 'via': 'fe80::1', 'dev': 'left'}]}",
			"nf: routes[0]: via fe80::1 is not of the prefix's IP version"},
		{"{'addresses': {'rigth': ['192.0.2.1/24']}}",
			"nf: addresses: no port is called \"rigth\"; the ports are left, right"},
		{"{'addresses': {'left': '192.0.2.1/24'}}",
			"nf: addresses: left: must be a list of addresses"},
		{"{'addresses': {'left': ['192.0.2.1']}}",
			"nf: addresses: left: \"192.0.2.1\" is not an address with its network's "
			"length; write one like 192.0.2.1/24 or 2001:db8::1/64"},
		{"{'addresses': {'left': ['192.0.2.0/24']}}",
			"nf: addresses: left: 192.0.2.0/24 is its network's address, not a host's"},
		{"{'addresses': {'left': ['192.0.2.255/24']}}",
			"192.0.2.255/24 is its network's broadcast address, not a host's"},
		{"{'addresses': {'left': ['127.0.0.1/8']}}",
			"nf: addresses: left: 127.0.0.1/8 is not the address of a router"},
		{"{'addresses': {'left': ['fe80::1/64']}}",
			"fe80::1/64 is not the address of a router; link-local ones it gives "
			"itself"},
		{"{'addresses': {'left': ['192.0.2.1/24', '192.0.2.1/24']}}",
			"nf: addresses: left: port left has 192.0.2.1/24 already; remove one"},
		{"{'addresses': {'left': ['192.0.2.1/24'], 'right': ['192.0.2.2/24']}}",
			"nf: addresses: right: a second route to 192.0.2.0/24, the first is nf: "
			"addresses: left; remove one"},
		{"{'neighbour_entries': 15}", "nf: neighbour_entries: 15: must be"},
		{"{'routes': [{'dev': 'left'}]}", "nf: routes[0]: prefix: is missing"},
		{"{'routes': [{'prefix': 10, 'dev': 'left'}]}", "prefix: 10: must be a string"},
		{"{'routes': [{'prefix': '10.0.0.0/8', 'dev': 'left'},"
		 "{'prefix': '10.0.0.0/9', 'dev': 'rigth'}]}",
			"nf: routes[1]: no port is called \"rigth\"; the ports are left, right"},
		{"{'routes': [{'prefix': '10.0.0.7/8', 'dev': 'left'}]}",
			"nf: routes[0]: 10.0.0.7/8 has bits set behind its length; write "
			"10.0.0.0/8"},
		{"{'routes': [{'prefix': 'ten', 'dev': 'left'}]}", "\"ten\" is not a prefix"},
		{"{'routes': [{'prefix': '10.0.0.0/8', 'via': 'x', 'dev': 'left'}]}",
			"nf: routes[0]: via \"x\" is not an address"},
		{"{'routes': [{'prefix': '10.0.0.0/8', 'via': '192.0.2.1', 'dev': 'left'}]}",
			"nf: routes[0]: the MAC address of via 192.0.2.1 on port left is not "
			"known; "
			"add it to the neighbours"},
		{"{'routes': [{'prefix': '10.0.0.0/8', 'dev': 'left', 'metric': 1}]}",
			"nf: routes[0]: metric: unknown"},
		{"{'routes': [{'prefix': '10.0.0.0/8', 'dev': 'left'},"
		 "{'prefix': '10.0.0.0/8', 'via': '192.0.2.1', 'dev': 'right'}], " N "}",
			"nf: routes[1]: a second route to 10.0.0.0/8, the first is nf: routes[0]"},
		{"{'neighbours': [{'address': '192.0.2.1', 'mac': '02:00'}]}",
			"nf: neighbours[0]: mac: \"02:00\": must be a unicast MAC"},
		{"{'neighbours': [{'address': '192.0.2.1'}]}", "neighbours[0]: mac: is missing"},
		{"{'routes_file': '/nonexistent/routes'}",
			"nf: cannot open /nonexistent/routes: No such file"},
		{"{'routes_file': '/'}", "/:1: cannot be read: Is a directory"},
		{"{'routes_file': 3}", "routes_file: 3: must be a string"},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		packet_refused(&cv_nf_router, refused[i].config, refused[i].words);
}

// A million routes, 1.0.0.0 up, /24 and longer where i says so, over two next hops; each is looked
// up at its first and last address, and compared with where the numbers say that it leads.
static void a_million_routes(void **state)
{
	enum { COUNT = 1000000 };
	char path[] = "/tmp/cv-routes-XXXXXX", text[300];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	struct packet packet = packet_make("ip4 udp data=18");

	assert_non_null(file);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t address = 0x01000000 + i * 256;

		fprintf(file, "%u.%u.%u.%u/%u via 192.0.2.%u dev %s proto bgp metric 20\n",
			address >> 24, address >> 16 & 255, address >> 8 & 255,
			i % 50 == 0 ? 128u : 0u, i % 50 == 0 ? 25u : 24u, 1 + i % 2,
			i % 3 == 0 ? "left" : "right");
	}
	assert_int_equal(fclose(file), 0);
	snprintf(text, sizeof(text),
		"{'routes_file': '%s', 'neighbours': ["
		"{'address': '192.0.2.1', 'mac': '02:00:00:00:00:11'},"
		"{'address': '192.0.2.2', 'mac': '02:00:00:00:00:12'}]}",
		path);
	void *nf = packet_nf(&cv_nf_router, text, NULL);

	unlink(path);
	for (uint32_t i = 0; i < 2 * COUNT; i++) {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)(packet.bytes + 14);
		struct cv_view view = {.in = 3, .out = 3};
		uint32_t route = i / 2;
		bool none = route % 50 == 0 && i % 2 == 0; // below the /25
		uint8_t verdict;

		ip->dst = rte_cpu_to_be_32(0x01000000 + route * 256 + (i % 2) * 255);
		ip->ttl = 64;
		ip->checksum = 0;
		ip->checksum = cv_checksum((const uint8_t *)ip, 20);
		cv_view_set(&view, packet.bytes, packet.len);
		cv_nf_router.process(nf, &(struct cv_nf_worker){.index = 1}, &view, &verdict, 1);
		if (none) {
			assert_int_equal(verdict, packet_verdict(&cv_nf_router, "no_route"));
			continue;
		}
		if (verdict != CV_NEXT || packet.bytes[5] != 0x11 + route % 2 ||
			view.out != (route % 3 == 0 ? 0 : 1))
			fail_msg("route %u: verdict %u, next hop %02x, port %u", route, verdict,
				packet.bytes[5], view.out);
	}
	cv_nf_router.destroy(nf);
}

// Two instances at once: their tables do not get in each other's way.
static void two_routers(void **state)
{
	void *one = packet_nf(&cv_nf_router, config, NULL);
	void *two = packet_nf(
		&cv_nf_router, "{'routes': [{'prefix': '10.0.0.0/8', 'dev': 'left'}]}", NULL);
	static const struct packet_row row = {"v4", "ip4 dst=10.0.0.1", "no_neighbour", NULL, 0, 0};

	packet_table(&cv_nf_router, two, &row, 1);
	cv_nf_router.destroy(two);
	packet_table(&cv_nf_router, one, rows, 3);
	cv_nf_router.destroy(one);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(table_short_vectors),
		cmocka_unit_test(the_ports_addresses_are_known_at_start),
		cmocka_unit_test(truncated_at_every_length),
		cmocka_unit_test(without_routes_nothing_goes),
		cmocka_unit_test(default_and_blackhole),
		cmocka_unit_test(bad_configurations),
		cmocka_unit_test(two_routers),
		cmocka_unit_test(a_million_routes),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
