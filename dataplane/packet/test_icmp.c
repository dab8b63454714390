// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ICMP errors and echo replies: bytes as scapy writes them, and what no error is sent about.
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/support/test_bytes.h"

// UDP that traceroute sends: 198.51.100.7 > 203.0.113.9, 2001:db8::7 > 2001:db8:9::9, "hello".
#define UDP_V4 "450000210001000001115387c6336407cb007109829a829b000d508768656c6c6f"
#define UDP_V6                                                                                     \
	"60000000000d110120010db800000000000000000000000720010db8000900000000000000000009829a829b" \
	"000d5b4168656c6c6f"
#define ERROR_V4 "45c0003dbeef00004001ced4c0000201c6336407"
#define ERROR_V6 "60000000003d3a4020010db800000000000000000000000120010db8000000000000000000000007"

static const uint8_t router_v6[16] = {0x20, 1, 0x0d, 0xb8, [15] = 1};

static const struct {
	const char *name;
	struct cv_icmp_error error;
	const char *v4, *v6; // what stands before the packet itself
} errors[] = {
	{"time exceeded", {CV_ICMP_TIME_EXCEEDED, 0}, "0b005b6300000000", "0300301e00000000"},
	{"no route", {CV_ICMP_NO_ROUTE, 0}, "0300636300000000", "0100321e00000000"},
	{"host unreachable", {CV_ICMP_HOST_UNREACHABLE, 0}, "0301636200000000", "0103321b00000000"},
	{"prohibited", {CV_ICMP_PROHIBITED, 0}, "030d635600000000", "0101321d00000000"},
	{"port unreachable", {CV_ICMP_PORT_UNREACHABLE, 0}, "0303636000000000", "0104321a00000000"},
	{"protocol unreachable", {CV_ICMP_PROTOCOL_UNREACHABLE, 6}, "0302636100000000",
		"04012f1700000006"},
	{"too big", {CV_ICMP_TOO_BIG, 1400}, "03045de700000578", "02002ba600000578"},
	{"parameter problem", {CV_ICMP_PARAMETER, 20}, "0c00466314000000", "04002f0a00000014"},
};

static void errors_are_as_written(void **state)
{
	uint16_t len;
	uint8_t *v4 = bytes_make(UDP_V4, &len), *v6 = bytes_make(UDP_V6, &len);

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		char want[400];
		uint8_t *out;

		len = cv_icmpv4_error_len(v4);
		out = malloc(len);
		cv_icmpv4_error(out, v4, &errors[i].error, RTE_BE32(0xc0000201), 0xbeef);
		snprintf(want, sizeof(want), "%s%s%s", ERROR_V4, errors[i].v4, UDP_V4);
		bytes_expect(errors[i].name, out, len, want);
		free(out);

		len = cv_icmpv6_error_len(v6);
		out = malloc(len);
		cv_icmpv6_error(out, v6, &errors[i].error, router_v6);
		snprintf(want, sizeof(want), "%s%s%s", ERROR_V6, errors[i].v6, UDP_V6);
		bytes_expect(errors[i].name, out, len, want);
		free(out);
	}
	free(v4);
	free(v6);
}

// Of a long packet an error has as much as fits: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4 (c).
static void errors_are_bounded(void **state)
{
	static const struct {
		uint16_t payload, v4, v6;
	} rows[] = {{0, 48, 88}, {8, 56, 96}, {528, 576, 616}, {529, 576, 617}, {1192, 576, 1280},
		{1193, 576, 1280}, {1460, 576, 1280}};
	const struct cv_icmp_error error = {.reason = CV_ICMP_TIME_EXCEEDED};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint16_t header;
		uint8_t *v4 = bytes_make(UDP_V4, &header), *v6 = bytes_make(UDP_V6, &header), *out;

		v4 = realloc(v4, CV_IPV4_LEN + rows[i].payload);
		v6 = realloc(v6, CV_IPV6_LEN + rows[i].payload);
		memset(v4 + CV_IPV4_LEN, 0x5a, rows[i].payload);
		memset(v6 + CV_IPV6_LEN, 0x5a, rows[i].payload);
		((struct cv_ipv4 *)v4)->total_len = rte_cpu_to_be_16(CV_IPV4_LEN + rows[i].payload);
		((struct cv_ipv6 *)v6)->payload_len = rte_cpu_to_be_16(rows[i].payload);
		assert_int_equal(cv_icmpv4_error_len(v4), rows[i].v4);
		assert_int_equal(cv_icmpv6_error_len(v6), rows[i].v6);
		out = malloc(rows[i].v4);
		cv_icmpv4_error(out, v4, &error, 1, 0);
		assert_memory_equal(out + 28, v4, rows[i].v4 - 28);
		assert_int_equal(cv_checksum(out + 20, rows[i].v4 - 20), 0);
		free(out);
		out = malloc(rows[i].v6);
		cv_icmpv6_error(out, v6, &error, router_v6);
		assert_memory_equal(out + 48, v6, rows[i].v6 - 48);
		assert_true(cv_icmpv6_checksum_ok(out));
		free(out);
		free(v4);
		free(v6);
	}
}

#define IP4(fragment, proto) "4500001c0000" fragment "40" proto "0000c6336407cb007109"
#define IP6(next) \
	"600000000010" next "4020010db800000000000000000000000720010db8000900000000000000000009"
#define IP6_TO(dst)        \
	"6000000000001140" \
	"20010db8000000000000000000000007" dst
#define IP6_FROM(src) "6000000000001140" src "20010db8000000000000000000000007"

static void no_errors_about_errors(void **state)
{
	static const struct {
		const char *name, *hex;
		bool allowed;
	} v4[] = {
		{"UDP", IP4("0000", "11") "0000000000000000", true},
		{"first fragment", IP4("2000", "11") "0000000000000000", true},
		{"non-first fragment", IP4("2001", "11") "0000000000000000", false},
		{"last fragment", IP4("0001", "11") "0000000000000000", false},
		{"echo request", IP4("0000", "01") "0800000000000000", true},
		{"echo reply", IP4("0000", "01") "0000000000000000", true},
		{"timestamp", IP4("0000", "01") "0d00000000000000", true},
		{"unreachable", IP4("0000", "01") "0301000000000000", false},
		{"source quench", IP4("0000", "01") "0400000000000000", false},
		{"redirect", IP4("0000", "01") "0500000000000000", false},
		{"time exceeded", IP4("0000", "01") "0b00000000000000", false},
		{"parameter problem", IP4("0000", "01") "0c00000000000000", false},
		{"ICMP of an unknown type", IP4("0000", "01") "2c00000000000000", false},
		{"ICMP without a type", "4500001400000000400100000a0000010a000002", false},
		{"from a group", "450000140000000040110000e00000010a000002", false},
		{"from 0.0.0.0", "450000140000000040110000000000000a000002", false},
		{"from loopback", "4500001400000000401100007f0000010a000002", false},
		{"from broadcast", "450000140000000040110000ffffffff0a000002", false},
		{"to a group", "4500001400000000401100000a000002e0000001", false},
		{"to broadcast", "4500001400000000401100000a000002ffffffff", false},
	};
	static const struct {
		const char *name, *hex;
		bool allowed, too_big;
	} v6[] = {
		{"UDP", IP6("11") "00000000000000000000000000000000", true, true},
		{"echo request", IP6("3a") "80000000000000000000000000000000", true, true},
		{"error", IP6("3a") "01000000000000000000000000000000", false, false},
		{"unknown error", IP6("3a") "7f000000000000000000000000000000", false, false},
		{"redirect", IP6("3a") "89000000000000000000000000000000", false, false},
		{"error behind options", IP6("3c") "3a000104000000000100000000000000", false,
			false},
		{"query behind options", IP6("00") "3a000104000000008000000000000000", true, true},
		{"first fragment of an error", IP6("2c") "3a000001000000000100000000000000", false,
			false},
		{"first fragment", IP6("2c") "11000001000000000100000000000000", true, true},
		{"non-first fragment", IP6("2c") "11000008000000000100000000000000", false, false},
		{"headers that end too early", IP6("3c") "3a020104000000000100000000000000", false,
			false},
		{"ICMPv6 without a type", IP6("3c") "3a010104000000000000000000000000", false,
			false},
		{"from ::", IP6_FROM("00000000000000000000000000000000"), false, false},
		{"from a group", IP6_FROM("ff020000000000000000000000000001"), false, false},
		{"from link-local", IP6_FROM("fe800000000000000000000000000001"), false, false},
		{"to a group", IP6_TO("ff0e0000000000000000000000000001"), false, true},
		{"to link-local", IP6_TO("fe800000000000000000000000000001"), false, false},
	};
	uint16_t len;

	for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
		uint8_t *ip = bytes_make(v4[i].hex, &len);

		((struct cv_ipv4 *)ip)->total_len = rte_cpu_to_be_16(len);
		if (cv_icmpv4_allowed(ip) != v4[i].allowed)
			fail_msg("%s", v4[i].name);
		free(ip);
	}
	for (size_t i = 0; i < sizeof(v6) / sizeof(v6[0]); i++) {
		const struct cv_icmp_error too_big = {CV_ICMP_TOO_BIG, 1280};
		const struct cv_icmp_error other = {.reason = CV_ICMP_NO_ROUTE};
		uint8_t *ip = bytes_make(v6[i].hex, &len);

		((struct cv_ipv6 *)ip)->payload_len = rte_cpu_to_be_16(len - CV_IPV6_LEN);
		if (cv_icmpv6_allowed(ip, &other) != v6[i].allowed ||
			cv_icmpv6_allowed(ip, &too_big) != v6[i].too_big)
			fail_msg("v6 %s", v6[i].name);
		free(ip);
	}
}

#define REQUEST_V4 "45100021123400000901b35cc6336407c00002010800cdbe007700036162636465"
#define REPLY_V4 "45100021beef00004001cfa0c0000201c63364070000d5be007700036162636465"
#define REQUEST_V6                                                                         \
	"60000000000d3a0520010db800000000000000000000000720010db8000000000000000000000001" \
	"8000f9fc007700036162636465"
#define REPLY_V6                                                                           \
	"60000000000d3a4020010db800000000000000000000000120010db8000000000000000000000007" \
	"8100f8fc007700036162636465"

static void echo_is_answered(void **state)
{
	static const struct {
		const char *name, *request, *reply; // NULL: not answered
	} v4[] = {
		{"request", REQUEST_V4, REPLY_V4},
		{"request with an option",
			"460000251234000009011e64c6336407c0000201940400000800cdbe00770003616263646"
			"5",
			"45000021beef00004001cfb0c0000201c63364070000d5be007700036162636465"},
		{"with padding behind", REQUEST_V4 "0000", REPLY_V4},
		{"checksum wrong",
			"45100021123400000901b35cc6336407c00002010800cdbf007700036162636465", NULL},
		{"a reply", REPLY_V4, NULL},
		{"first fragment",
			"45100021123420000901935cc6336407c00002010800cdbe007700036162636465", NULL},
		{"too short", "4500001b123400000901b372c6336407c00002010800f7ff000000", NULL},
		{"UDP", UDP_V4, NULL},
	};
	static const struct {
		const char *name, *request, *reply;
	} v6[] = {
		{"request", REQUEST_V6, REPLY_V6},
		{"with padding behind", REQUEST_V6 "0000", REPLY_V6},
		{"a reply", REPLY_V6, NULL},
		{"checksum wrong",
			"60000000000d3a0520010db800000000000000000000000720010db8000000000000000000"
			"0000018000f9fd007700036162636465",
			NULL},
		{"UDP", UDP_V6, NULL},
	};
	uint8_t out[100];
	uint16_t len;

	for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
		uint8_t *ip = bytes_make(v4[i].request, &len);

		len = cv_icmpv4_echo_len(ip);
		if ((len != 0) != (v4[i].reply != NULL))
			fail_msg("%s: a reply of %u bytes", v4[i].name, len);
		if (len != 0) {
			cv_icmpv4_echo(out, ip, RTE_BE32(0xc0000201), 0xbeef);
			bytes_expect(v4[i].name, out, len, v4[i].reply);
		}
		free(ip);
	}
	for (size_t i = 0; i < sizeof(v6) / sizeof(v6[0]); i++) {
		uint8_t *ip = bytes_make(v6[i].request, &len);

		len = cv_icmpv6_echo_len(ip);
		if ((len != 0) != (v6[i].reply != NULL))
			fail_msg("v6 %s: a reply of %u bytes", v6[i].name, len);
		if (len != 0) {
			cv_icmpv6_echo(out, ip, router_v6);
			bytes_expect(v6[i].name, out, len, v6[i].reply);
		}
		free(ip);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_as_written),
		cmocka_unit_test(errors_are_bounded),
		cmocka_unit_test(no_errors_about_errors),
		cmocka_unit_test(echo_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
