// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ARP and neighbour discovery: bytes as scapy writes them, and what is to be discarded.
#include "packet/arp.h"
#include "packet/icmp.h"
#include "packet/ipv6.h"
#include "packet/neighbour_discovery.h"
#include "tests/support/test_bytes.h"

static const uint8_t mac[CV_MAC_LEN] = {2, 0, 0, 0, 0, 1};

static void arp_is_read(void **state)
{
	static const struct {
		const char *name, *hex;
		bool good;
	} rows[] = {
		{"request", "0001080006040001020000000007c0000207000000000000c0000201", true},
		{"reply", "0001080006040002020000000007c0000207020000000001c0000201", true},
		{"padding", "0001080006040001020000000007c0000207000000000000c00002010000000000",
			true},
		{"probe", "000108000604000102000000000700000000000000000000c0000201", true},
		{"cut", "0001080006040001020000000007c0000207000000000000c00002", false},
		{"nothing", "", false},
		{"hardware 6", "0006080006040001020000000007c0000207000000000000c0000201", false},
		{"for IPv6", "000186dd06040001020000000007c0000207000000000000c0000201", false},
		{"hardware length", "0001080007040001020000000007c0000207000000000000c0000201",
			false},
		{"protocol length", "0001080006100001020000000007c0000207000000000000c0000201",
			false},
		{"RARP", "0001080006040003020000000007c0000207000000000000c0000201", false},
		{"from a group", "0001080006040001010000000007c0000207000000000000c0000201", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_arp arp;
		uint16_t len;
		uint8_t *bytes = bytes_make(rows[i].hex, &len);

		if (cv_arp_read(bytes, len, &arp) != rows[i].good)
			fail_msg("%s", rows[i].name);
		free(bytes);
	}
}

static void arp_is_written(void **state)
{
	const uint8_t peer[CV_MAC_LEN] = {2, 0, 0, 0, 0, 7};
	uint8_t out[CV_ARP_LEN];

	cv_arp_write(out, CV_ARP_REPLY, mac, RTE_BE32(0xc0000201), peer, RTE_BE32(0xc0000207));
	bytes_expect("reply", out, sizeof(out),
		"0001080006040002020000000001c0000201020000000007c0000207");
	cv_arp_write(out, CV_ARP_REQUEST, mac, RTE_BE32(0xc0000201), NULL, RTE_BE32(0xc0000207));
	bytes_expect("request", out, sizeof(out),
		"0001080006040001020000000001c0000201000000000000c0000207");
}

#define SOLICIT                                                                                    \
	"6000000000203afffe800000000000000000000000000007ff0200000000000000000001ff00000187004b55" \
	"0000000020010db80000000000000000000000010101020000000007"
#define PROBE                                                                                      \
	"6000000000183aff00000000000000000000000000000000ff0200000000000000000001ff00000187004ced" \
	"0000000020010db8000000000000000000000001"
#define ADVERTISE                                                                                  \
	"6000000000203aff20010db8000000000000000000000001fe800000000000000000000000000007880039a6" \
	"e000000020010db80000000000000000000000010201020000000001"

// Changes one byte of a message and makes its checksum good again; at 0: none.
struct change {
	const char *name, *hex;
	uint16_t at;
	uint8_t byte;
	bool good;
};

static void messages_are_read(void **state)
{
	static const struct change rows[] = {
		{"solicitation", SOLICIT, 0, 0, true},
		{"probe", PROBE, 0, 0, true},
		{"advertisement", ADVERTISE, 0, 0, true},
		{"hop limit 254", SOLICIT, 7, 254, false},
		{"hop limit 254", ADVERTISE, 7, 254, false},
		{"code 1", SOLICIT, 41, 1, false},
		{"router solicitation", SOLICIT, 40, 133, false},
		{"group as target", SOLICIT, 48, 0xff, false},
		{"group as target", ADVERTISE, 48, 0xff, false},
		{"from a group", SOLICIT, 8, 0xff, false},
		{"option of length 0", SOLICIT, 65, 0, false},
		{"option behind the end", SOLICIT, 65, 2, false},
		{"another option", SOLICIT, 64, 14, true},
		{"group as link-layer address", SOLICIT, 66, 3, true},
		{"probe to a unicast address", PROBE, 24, 0xfe, false},
		{"probe to another group", PROBE, 36, 0, false},
		{"solicited, to a group", ADVERTISE, 24, 0xff, false},
		{"reserved bits", ADVERTISE, 44, 0xff, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_nd nd;
		uint16_t len;
		uint8_t *ip = bytes_make(rows[i].hex, &len);

		if (rows[i].at != 0) {
			ip[rows[i].at] = rows[i].byte;
			cv_icmpv6_checksum_set(ip);
		}
		if (cv_nd_read(ip, len, &nd) != rows[i].good)
			fail_msg("%s, row %zu", rows[i].name, i);
		free(ip);
	}
}

static void messages_are_bounded(void **state)
{
	static const char *const whole[] = {SOLICIT, PROBE, ADVERTISE};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		struct cv_nd nd;
		uint16_t len, payload;
		uint8_t *ip = bytes_make(whole[i], &len);

		// As many bytes are there as the header says, but for the last.
		assert_false(cv_nd_read(ip, len - 1u, &nd));
		for (payload = 0; payload < len - CV_IPV6_LEN; payload++) {
			uint8_t *cut = malloc(CV_IPV6_LEN + payload);

			memcpy(cut, ip, CV_IPV6_LEN + payload);
			((struct cv_ipv6 *)cut)->payload_len = rte_cpu_to_be_16(payload);
			if (payload >= 4)
				cv_icmpv6_checksum_set(cut);
			if (cv_nd_read(cut, CV_IPV6_LEN + payload, &nd) != (payload == 24))
				fail_msg("%zu cut to %u", i, payload);
			free(cut);
		}
		ip[42] ^= 1;
		assert_false(cv_nd_read(ip, len, &nd));
		free(ip);
	}
}

static void messages_say_what_was_written(void **state)
{
	struct cv_nd nd;
	uint16_t len;
	uint8_t *ip = bytes_make(ADVERTISE, &len), out[CV_ND_LEN];

	assert_true(cv_nd_read(ip, len, &nd));
	assert_int_equal(nd.flags, CV_ND_ROUTER | CV_ND_SOLICITED | CV_ND_OVERRIDE);
	assert_true(nd.has_mac);
	assert_memory_equal(nd.mac, mac, sizeof(mac));
	bytes_expect("advertisement", out, cv_nd_write(out, &nd), ADVERTISE);
	free(ip);
	ip = bytes_make(SOLICIT, &len);
	assert_true(cv_nd_read(ip, len, &nd));
	bytes_expect("solicitation", out, cv_nd_write(out, &nd), SOLICIT);
	free(ip);
	ip = bytes_make(PROBE, &len);
	assert_true(cv_nd_read(ip, len, &nd));
	assert_false(nd.has_mac);
	bytes_expect("probe", out, cv_nd_write(out, &nd), PROBE);
	free(ip);
}

static void groups_and_link_local(void **state)
{
	const uint8_t address[16] = {0x20, 1, 0xd, 0xb8, [13] = 0xab, 0xcd, 0xef};
	uint8_t group[16], group_mac[CV_MAC_LEN], local[16];

	cv_nd_group(address, group);
	bytes_expect("group", group, 16, "ff0200000000000000000001ffabcdef");
	cv_ipv6_group_mac(group, group_mac);
	bytes_expect("its MAC", group_mac, CV_MAC_LEN, "3333ffabcdef");
	cv_ipv6_link_local(mac, local);
	bytes_expect("link-local", local, 16, "fe80000000000000000000fffe000001");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_is_read),
		cmocka_unit_test(arp_is_written),
		cmocka_unit_test(messages_are_read),
		cmocka_unit_test(messages_are_bounded),
		cmocka_unit_test(messages_say_what_was_written),
		cmocka_unit_test(groups_and_link_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
