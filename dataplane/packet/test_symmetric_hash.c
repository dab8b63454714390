// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <inttypes.h>

#include "packet/symmetric_hash.h"
#include "tests/support/test_packets.h"

#define KEYS 2000u
#define KEY UINT64_C(0x243f6a8885a308d3)

static uint32_t hash_of(const char *text, uint64_t key, bool by_addresses)
{
	struct packet packet = packet_make(text);
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	return cv_symmetric_hash(&view, key, by_addresses);
}

#define V4 "ip4 src=10.0.0.1 dst=10.0.0.2 "
#define V4_BACK "ip4 src=10.0.0.2 dst=10.0.0.1 "
#define V6 "ip6 src=2001:db8::1 dst=2001:db8::2 "
#define V6_BACK "ip6 src=2001:db8::2 dst=2001:db8::1 "
#define ERROR "ip4 src=192.0.2.99 dst=10.0.0.1 icmp kind=3 code=4 "
#define ERROR6 "ip6 src=2001:db8:9::9 dst=2001:db8::1 icmp6 kind=2 "

static void tells_flows(void **state)
{
	static const struct {
		const char *description, *one, *other;
		bool same, same_by_addresses;
	} rows[] = {
		{"both directions, IPv4", V4 "tcp sport=1000 dport=80",
			V4_BACK "tcp sport=80 dport=1000", true, true},
		{"both directions, IPv6", V6 "udp sport=1000 dport=53",
			V6_BACK "udp sport=53 dport=1000", true, true},
		{"another port", V4 "tcp sport=1000 dport=80", V4 "tcp sport=1001 dport=80", false,
			true},
		{"another protocol", V4 "tcp sport=1000 dport=80", V4 "udp sport=1000 dport=80",
			false, true},
		{"another address", V4 "tcp sport=1000 dport=80",
			"ip4 src=10.0.0.1 dst=10.0.0.3 tcp sport=1000 dport=80", false, false},
		{"a VLAN tag does not count", V4 "udp sport=1 dport=2",
			"vlan id=7 " V4 "udp sport=1 dport=2", true, true},
		{"options do not count", V4 "udp sport=1 dport=2",
			"ip4 src=10.0.0.1 dst=10.0.0.2 opt=01010100 udp sport=1 dport=2", true,
			true},
		{"extension headers do not count", V6 "udp sport=1 dport=2",
			V6 "hbh dstopt size=16 udp sport=1 dport=2", true, true},
		{"the fragments of a packet", V4 "mf=1 udp sport=1 dport=2",
			V4 "off=100 proto=17 data=64", true, true},
		{"the fragments of a packet, IPv6", V6 "frag mf=1 udp sport=1 dport=2",
			V6 "frag off=100 nh=17 data=64", true, true},
		{"a fragment, and a packet of the flow that is none", V4 "mf=1 udp sport=1 dport=2",
			V4 "udp sport=1 dport=2", false, true},
		{"an ICMP error about the flow", V4 "udp sport=1 dport=2",
			ERROR V4 "udp sport=1 dport=2", true, true},
		{"an ICMP error about the other direction", V4 "udp sport=1 dport=2",
			ERROR V4_BACK "udp sport=2 dport=1", true, true},
		{"an ICMPv6 error about the flow", V6 "udp sport=1 dport=2",
			ERROR6 V6 "udp sport=1 dport=2", true, true},
		{"an ICMP echo of the same bytes is no error", V4 "udp sport=1 dport=2",
			"ip4 src=192.0.2.99 dst=10.0.0.1 icmp kind=8 " V4 "udp sport=1 dport=2",
			false, false},
		{"ping and its answer", V4 "icmp kind=8", V4_BACK "icmp kind=0", true, true},
		{"both directions, not IP", "dst=02:00:00:00:00:02 src=02:00:00:00:00:01 type=88b5",
			"dst=02:00:00:00:00:01 src=02:00:00:00:00:02 type=88b5", true, true},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		print_message("  %s\n", rows[i].description);
		assert_int_equal(
			hash_of(rows[i].one, KEY, false) == hash_of(rows[i].other, KEY, false),
			rows[i].same);
		assert_int_equal(
			hash_of(rows[i].one, KEY, true) == hash_of(rows[i].other, KEY, true),
			rows[i].same_by_addresses);
		assert_int_not_equal(
			hash_of(rows[i].one, KEY, false), hash_of(rows[i].one, KEY + 1, false));
	}
	(void)state;
}

// Nothing is read behind a packet, however short it is: under AddressSanitizer it would be told.
static void reads_no_further(void **state)
{
	static const char *const texts[] = {ERROR V4 "udp sport=1 dport=2", V4 "tcp",
		"ip4 src=10.0.0.1 dst=10.0.0.2 opt=01010100 udp", V4 "ihl=15 udp",
		ERROR6 V6 "hbh udp", V6 "hbh dstopt rth ah frag udp",
		V6 "hbh hbh hbh hbh hbh hbh hbh hbh hbh hbh udp", V6 "dstopt size=64 udp",
		"vlan id=1 vlan id=2 " V6 "udp", "type=88b5 data=20"};

	for (size_t i = 0; i < RTE_DIM(texts); i++) {
		struct packet packet = packet_make(texts[i]);

		for (uint16_t len = 0; len <= packet.len; len++) {
			uint8_t *bytes = malloc(len + 1u);
			struct cv_view view;

			assert_non_null(bytes);
			memcpy(bytes + 1, packet.bytes, len); // at no even address
			cv_view_set(&view, bytes + 1, len);
			cv_symmetric_hash(&view, KEY, false);
			free(bytes);
		}
	}
	(void)state;
}

// Whatever the key, flows whose packets differ in one byte are spread over two halves.
static void expect_spread(const char *text, uint16_t at, unsigned shift)
{
	struct packet packet = packet_make(text);
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	for (uint64_t i = 1; i <= KEYS; i++) {
		const uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15) ^ i << 7;
		unsigned second = 0;

		for (unsigned flow = 0; flow < 32; flow++) {
			packet.bytes[at] = (uint8_t)flow;
			second += cv_symmetric_hash(&view, key, false) >> shift & 1;
		}
		if (second == 0 || second == 32)
			fail_msg("key %#" PRIx64 ", byte %u, bit %u: all flows alike", key, at,
				shift);
	}
}

static void flows_alike_are_spread(void **state)
{
	static const char v4[] = "ip4 src=10.0.0.2 dst=10.8.1.1 udp",
			  v6[] = "ip6 src=2001:db8::2 dst=2001:db8:8::1 udp";
	static const uint16_t in_v4[] = {12, 15, 16, 19, 20, 21, 22, 23},
			      in_v6[] = {8, 15, 23, 31, 39, 41, 43};

	for (unsigned shift = 0; shift < 32; shift += 5) {
		for (size_t i = 0; i < RTE_DIM(in_v4); i++)
			expect_spread(v4, CV_ETHER_LEN + in_v4[i], shift);
		for (size_t i = 0; i < RTE_DIM(in_v6); i++)
			expect_spread(v6, CV_ETHER_LEN + in_v6[i], shift);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_flows),
		cmocka_unit_test(reads_no_further),
		cmocka_unit_test(flows_alike_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
