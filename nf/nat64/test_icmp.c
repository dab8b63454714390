// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// RFC 7915's tables of types, codes and pointers, each line of them; and the packet inside of errors.
#include "nf/nat64/test_net.h"

#define ABOUT4 "ip4 src=192.0.2.1 dst=8.8.8.8 ttl=9 " // what host 1 sent, as IPv4 saw it
#define ABOUT6 "ip6 src=2001:db8::1 dst=2001:db8:64::808:808 hop=9 "
#define SENT4 "ip4 src=8.8.8.8 dst=192.0.2.1 ttl=9 " // what was sent to it
#define SENT6 "ip6 src=2001:db8:64::808:808 dst=2001:db8::1 hop=9 "

// An error of this type and code, with the 4 bytes behind the checksum, about a packet.
static struct packet error_about(
	const char *outer, uint8_t type, uint8_t code, uint32_t value, const char *about)
{
	const struct packet inside = whole(about);
	struct packet packet = packet_make(outer);
	uint8_t *ip = packet.bytes + 14, *icmp = packet.bytes + packet.len;
	const unsigned len = 8u + inside.len - 14u;
	const bool v6 = ip[0] >> 4 == 6;

	icmp[0] = type;
	icmp[1] = code;
	memset(icmp + 2, 0, 2);
	packet_put16(icmp + 4, value >> 16);
	packet_put16(icmp + 6, value);
	memcpy(icmp + 8, inside.bytes + 14, inside.len - 14u);
	packet.len += (uint16_t)len;
	packet_put16(ip + (v6 ? 4 : 2), len + (v6 ? 0 : 20));
	ip[v6 ? 6 : 9] = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	if (!v6) {
		memset(ip + 10, 0, 2);
		memcpy(ip + 10, &(rte_be16_t){cv_checksum(ip, 20)}, 2);
	}
	put_checksum(ip);
	return packet;
}

struct line {
	uint8_t type, code;
	uint32_t value;
	uint8_t to_type, to_code; // 0xff: none
	uint32_t to_value;
};

#define NONE 0xff

static void to_icmpv6(void **state)
{
	static const struct line lines[] = {{3, 0, 0, 1, 0, 0}, {3, 1, 0, 1, 0, 0},
		{3, 2, 0, 4, 1, 6}, {3, 3, 0, 1, 4, 0}, {3, 4, 1400, 2, 0, 1420},
		{3, 4, 1000, 2, 0, 1280}, {3, 4, 9000, 2, 0, 1500}, {3, 4, 0, 2, 0, 1280},
		{3, 5, 0, 1, 0, 0}, {3, 6, 0, 1, 0, 0}, {3, 7, 0, 1, 0, 0}, {3, 8, 0, 1, 0, 0},
		{3, 9, 0, 1, 1, 0}, {3, 10, 0, 1, 1, 0}, {3, 11, 0, 1, 0, 0}, {3, 12, 0, 1, 0, 0},
		{3, 13, 0, 1, 1, 0}, {3, 14, 0, NONE, 0, 0}, {3, 15, 0, 1, 1, 0},
		{3, 16, 0, NONE, 0, 0}, {4, 0, 0, NONE, 0, 0}, {5, 0, 0, NONE, 0, 0},
		{5, 1, 0, NONE, 0, 0}, {6, 0, 0, NONE, 0, 0}, {9, 0, 0, NONE, 0, 0},
		{10, 0, 0, NONE, 0, 0}, {11, 0, 0, 3, 0, 0}, {11, 1, 0, 3, 1, 0},
		{12, 0, 0, 4, 0, 0}, {12, 0, 1u << 24, 4, 0, 1}, {12, 0, 2u << 24, 4, 0, 4},
		{12, 0, 3u << 24, 4, 0, 4}, {12, 0, 4u << 24, NONE, 0, 0},
		{12, 0, 5u << 24, NONE, 0, 0}, {12, 0, 6u << 24, NONE, 0, 0},
		{12, 0, 7u << 24, NONE, 0, 0}, {12, 0, 8u << 24, 4, 0, 7},
		{12, 0, 9u << 24, 4, 0, 6}, {12, 0, 10u << 24, NONE, 0, 0},
		{12, 0, 11u << 24, NONE, 0, 0}, {12, 0, 12u << 24, 4, 0, 8},
		{12, 0, 15u << 24, 4, 0, 8}, {12, 0, 16u << 24, 4, 0, 24},
		{12, 0, 19u << 24, 4, 0, 24}, {12, 0, 20u << 24, NONE, 0, 0},
		{12, 1, 0, NONE, 0, 0}, {12, 2, 8u << 24, 4, 0, 7}, {12, 3, 0, NONE, 0, 0},
		{13, 0, 0, NONE, 0, 0}, {14, 0, 0, NONE, 0, 0}, {15, 0, 0, NONE, 0, 0},
		{16, 0, 0, NONE, 0, 0}, {17, 0, 0, NONE, 0, 0}, {18, 0, 0, NONE, 0, 0},
		{42, 0, 0, NONE, 0, 0}};
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);

	for (size_t i = 0; i < RTE_DIM(lines); i++) {
		const struct line *line = &lines[i];
		const struct packet packet = error_about("ip4 src=9.9.9.9 dst=192.0.2.1",
			line->type, line->code, line->value, ABOUT4 "udp sport=5 dport=53 data=30");
		const struct packet want = error_about(
			"ip6 src=2001:db8:64::909:909 dst=2001:db8::1 hop=63", line->to_type,
			line->to_code, line->to_value, ABOUT6 "udp sport=5 dport=53 data=30");

		translate(nf, &packet);
		if (line->to_type == NONE)
			assert_string_equal(dropped_as(), "untranslatable");
		else
			same("ICMP to ICMPv6", &rig.out[0], &want);
	}
	cv_nf_destroy(&cv_nf_nat64, nf);
}

static void to_icmp(void **state)
{
	static const struct line lines[] = {{1, 0, 0, 3, 1, 0}, {1, 1, 0, 3, 10, 0},
		{1, 2, 0, 3, 1, 0}, {1, 3, 0, 3, 1, 0}, {1, 4, 0, 3, 3, 0}, {1, 5, 0, NONE, 0, 0},
		{2, 0, 1400, 3, 4, 1380}, {2, 0, 9000, 3, 4, 1480}, {2, 0, 20, 3, 4, 68},
		{3, 0, 0, 11, 0, 0}, {3, 1, 0, 11, 1, 0}, {4, 0, 0, 12, 0, 0},
		{4, 0, 1, 12, 0, 1u << 24}, {4, 0, 2, NONE, 0, 0}, {4, 0, 3, NONE, 0, 0},
		{4, 0, 4, 12, 0, 2u << 24}, {4, 0, 5, 12, 0, 2u << 24}, {4, 0, 6, 12, 0, 9u << 24},
		{4, 0, 7, 12, 0, 8u << 24}, {4, 0, 8, 12, 0, 12u << 24},
		{4, 0, 23, 12, 0, 12u << 24}, {4, 0, 24, 12, 0, 16u << 24},
		{4, 0, 39, 12, 0, 16u << 24}, {4, 0, 40, NONE, 0, 0},
		{4, 0, 0x10000000, NONE, 0, 0}, {4, 1, 6, 3, 2, 0}, {4, 2, 0, NONE, 0, 0},
		{5, 0, 0, NONE, 0, 0}, {100, 0, 0, NONE, 0, 0}, {127, 0, 0, NONE, 0, 0},
		{130, 0, 0, NONE, 0, 0}, {133, 0, 0, NONE, 0, 0}, {136, 0, 0, NONE, 0, 0},
		{137, 0, 0, NONE, 0, 0}, {255, 0, 0, NONE, 0, 0}};

	for (size_t i = 0; i < RTE_DIM(lines); i++) {
		const struct line *line = &lines[i];
		void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);
		const struct packet packet =
			error_about("ip6 src=2001:db8::1 dst=2001:db8:64::808:808", line->type,
				line->code, line->value, SENT6 "udp sport=5 dport=53 data=30");
		const struct packet want = error_about("ip4 id=1 src=192.0.2.1 dst=8.8.8.8 ttl=63",
			line->to_type, line->to_code, line->to_value,
			SENT4 "udp sport=5 dport=53 data=30");

		translate(nf, &packet);
		if (line->to_type == NONE)
			assert_string_equal(dropped_as(), "untranslatable");
		else
			same("ICMPv6 to ICMP", &rig.out[0], &want);
		cv_nf_destroy(&cv_nf_nat64, nf);
	}
}

struct inside {
	const char *name, *in, *out; // out NULL: dropped
};

static void about_packets_to_ipv6(void **state)
{
	static const struct inside rows[] = {
		{"TCP", ABOUT4 "tcp sport=5 data=9", ABOUT6 "tcp sport=5 data=9"},
		{"echo", ABOUT4 "icmp kind=8 data=9", ABOUT6 "icmp6 kind=128 data=9"},
		{"a fragment", ABOUT4 "off=5 id=7 proto=17 data=9",
			ABOUT6 "frag off=5 id=7 nh=17 data=9"},
		{"options", ABOUT4 "opt=01010101 tcp", ABOUT6 "tcp"},
		{"UDP without a checksum", "none " ABOUT4 "udp data=9",
			"none " ABOUT6 "udp data=9"},
		{"an error about an error", ABOUT4 "icmp kind=3 data=9", NULL},
		{"cut short", ABOUT4 "cut=30", NULL},
		{"not IP", "hex=00000000000000000000000000000000000000000000", NULL},
	};
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet packet =
			error_about("ip4 src=9.9.9.9 dst=192.0.2.1", 11, 0, 0, rows[i].in);

		translate(nf, &packet);
		if (rows[i].out == NULL) {
			if (strcmp(dropped_as(), "untranslatable") != 0)
				fail_msg("%s: dropped as %s", rows[i].name, dropped_as());
		} else {
			const struct packet want =
				error_about("ip6 src=2001:db8:64::909:909 dst=2001:db8::1 hop=63",
					3, 0, 0, rows[i].out);

			same(rows[i].name, &rig.out[0], &want);
		}
	}
	cv_nf_destroy(&cv_nf_nat64, nf);
}

static void about_packets_to_ipv4(void **state)
{
	static const struct inside rows[] = {
		{"TCP", SENT6 "tcp sport=5 data=9", SENT4 "tcp sport=5 data=9"},
		{"echo", SENT6 "icmp6 kind=129 data=9", SENT4 "icmp kind=0 data=9"},
		{"a fragment", SENT6 "frag off=5 id=7 nh=17 data=9",
			SENT4 "off=5 id=7 proto=17 data=9"},
		{"options", SENT6 "hbh size=8 tcp", SENT4 "tcp"},
		{"an error about an error", SENT6 "icmp6 kind=3 data=9", NULL},
		{"no address", "ip6 src=2001:db8:64::808:808 dst=2001:db8::7 udp", NULL},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);
		// A router that no IPv4 address stands for.
		const struct packet packet = error_about(
			"ip6 src=2001:db8:77::1 dst=2001:db8:64::808:808", 3, 0, 0, rows[i].in);

		translate(nf, &packet);
		if (rows[i].out == NULL) {
			if (strcmp(dropped_as(), "untranslatable") != 0)
				fail_msg("%s: dropped as %s", rows[i].name, dropped_as());
		} else {
			const struct packet want =
				error_about("ip4 id=1 src=203.0.113.1 dst=8.8.8.8 ttl=63", 11, 0, 0,
					rows[i].out);

			same(rows[i].name, &rig.out[0], &want);
		}
		cv_nf_destroy(&cv_nf_nat64, nf);
	}
}

// Errors are no longer than they may be, and what RFC 4884 puts behind the packet does not go over.
static void are_cut(void **state)
{
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);
	struct packet packet =
		error_about("ip4 src=9.9.9.9 dst=192.0.2.1", 11, 0, 0, ABOUT4 "udp data=1300");

	translate(nf, &packet);
	assert_int_equal(rig.out[0].len, 14 + 1280);
	assert_int_equal(checksum_of(rig.out[0].bytes + 14), 0);
	packet = error_about(
		"ip6 src=2001:db8::1 dst=2001:db8:64::808:808", 3, 0, 0, SENT6 "udp data=1100");
	translate(nf, &packet);
	assert_int_equal(rig.out[0].len, 14 + 576);
	assert_int_equal(checksum_of(rig.out[0].bytes + 14), 0);
	packet = error_about(
		"ip4 src=9.9.9.9 dst=192.0.2.1", 11, 0, 32 << 16, ABOUT4 "udp data=300");
	translate(nf, &packet);
	assert_int_equal(rig.out[0].len, 14 + 40 + 8 + 20 + 128);
	packet = error_about("ip6 src=2001:db8::1 dst=2001:db8:64::808:808", 3, 0, 16 << 24,
		SENT6 "udp data=300");
	translate(nf, &packet);
	assert_int_equal(rig.out[0].len, 14 + 20 + 8 - 20 + 128);
	cv_nf_destroy(&cv_nf_nat64, nf);
}

static void wrong_checksums_are_dropped(void **state)
{
	void *nf = packet_nf(&cv_nf_nat64, CONFIG(""), NULL);
	struct packet packet =
		error_about("ip4 src=9.9.9.9 dst=192.0.2.1", 11, 0, 0, ABOUT4 "udp data=30");

	packet.bytes[60] ^= 1;
	translate(nf, &packet);
	assert_string_equal(dropped_as(), "bad_header");
	packet = error_about(
		"ip6 src=2001:db8::1 dst=2001:db8:64::808:808", 3, 0, 0, SENT6 "udp data=30");
	packet.bytes[80] ^= 1;
	translate(nf, &packet);
	assert_string_equal(dropped_as(), "bad_header");
	cv_nf_destroy(&cv_nf_nat64, nf);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_icmpv6),
		cmocka_unit_test(to_icmp),
		cmocka_unit_test(about_packets_to_ipv6),
		cmocka_unit_test(about_packets_to_ipv4),
		cmocka_unit_test(are_cut),
		cmocka_unit_test(wrong_checksums_are_dropped),
	};

	return nat64_tests(argv[0], tests, RTE_DIM(tests));
}
