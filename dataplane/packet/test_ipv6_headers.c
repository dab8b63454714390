// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Extension headers of packets for this node: rows, and each cut short at every length.
#include "tests/support/test_packets.h"

#include "packet/ipv6.h"
#include "packet/ipv6_headers.h"

static const struct {
	const char *packet;
	enum cv_ipv6_headers result;
	uint16_t at;
} rows[] = {
	{"ip6 udp", CV_IPV6_UPPER, 40},
	{"ip6 nh=59", CV_IPV6_UPPER, 40},
	{"ip6 nh=50 data=8", CV_IPV6_UNKNOWN_HEADER, 6},
	{"ip6 nh=51 hex=1101000000000000 data=8", CV_IPV6_UNKNOWN_HEADER, 6},
	{"ip6 nh=0 hex=1100010400000000 data=8", CV_IPV6_UPPER, 48},
	{"ip6 nh=0 hex=1100050200000100 data=8", CV_IPV6_UPPER, 48}, // router alert: may be skipped
	{"ip6 nh=60 hex=0000010400000000 hex=1100010400000000", CV_IPV6_UNKNOWN_HEADER, 40},
	{"ip6 nh=60 hex=2b00010400000000 hex=3c00000000000000 hex=1100010400000000 data=8",
		CV_IPV6_UPPER, 64},
	{"ip6 nh=43 hex=1100030100000000 data=8", CV_IPV6_ERRONEOUS, 42},
	{"ip6 nh=44 hex=1100000000000001 data=8", CV_IPV6_UPPER, 48},
	{"ip6 nh=44 hex=1100000100000001 data=8", CV_IPV6_FRAGMENTED, 0},
	{"ip6 nh=44 hex=1100000800000001 data=8", CV_IPV6_FRAGMENTED, 0},
	{"ip6 nh=60 hex=1100450200000000 data=8", CV_IPV6_DISCARDED, 0},
	{"ip6 nh=60 hex=1100850200000000 data=8", CV_IPV6_UNKNOWN_OPTION, 42},
	{"ip6 nh=60 hex=1100c50200000000 data=8", CV_IPV6_UNKNOWN_OPTION, 42},
	{"ip6 nh=60 hex=1100000000000085 data=8", CV_IPV6_ERRONEOUS, 47},
	{"ip6 nh=60 hex=1100010500000000 data=8", CV_IPV6_ERRONEOUS, 42},
	{"ip6 nh=60 hex=1105010400000000 data=8", CV_IPV6_DISCARDED, 0},
};

static void headers(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct packet packet = packet_make(rows[i].packet);
		uint16_t at = 0;
		uint8_t proto;
		enum cv_ipv6_headers result =
			cv_ipv6_read_headers(packet.bytes + CV_ETHER_LEN, &at, &proto);

		if (result != rows[i].result)
			fail_msg("%s: %u, not %u", rows[i].packet, result, rows[i].result);
		if (result != CV_IPV6_FRAGMENTED && result != CV_IPV6_DISCARDED)
			assert_int_equal(at, rows[i].at);
	}
}

// In memory of its exact size: nothing is read behind it.
static void cut_short(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct packet packet = packet_make(rows[i].packet);

		for (uint16_t len = CV_IPV6_LEN; len <= packet.len - CV_ETHER_LEN; len++) {
			uint8_t *ip = malloc(len), proto;
			uint16_t at;

			memcpy(ip, packet.bytes + CV_ETHER_LEN, len);
			packet_put16(ip + 4, len - CV_IPV6_LEN);
			cv_ipv6_read_headers(ip, &at, &proto);
			free(ip);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
