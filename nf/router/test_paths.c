// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What chooses between next hops: whatever the router's random key, hosts and ports that lie next to
// each other are spread.
#include <inttypes.h>

#include "nf/router/paths.h"
#include "tests/support/test_packets.h"

#define KEYS 20000u
#define FLOWS 32u

// Flows whose packets differ in one byte.
static void expect_spread(const char *text, uint16_t at)
{
	struct packet packet = packet_make(text);
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	for (uint64_t i = 1; i <= KEYS; i++) {
		const uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15) ^ i << 7;
		unsigned second = 0; // flows that take the second of two next hops

		for (unsigned flow = 0; flow < FLOWS; flow++) {
			packet.bytes[at] = (uint8_t)flow;
			second += cv_paths_flow(&view, key) >> 31;
		}
		if (second == 0 || second == FLOWS)
			fail_msg("key %#" PRIx64 ", byte %u: all flows take one next hop", key, at);
	}
}

static void flows_alike_are_spread(void **state)
{
	static const char v4[] = "ip4 src=10.0.0.2 dst=10.8.1.1 udp",
			  v6[] = "ip6 src=2001:db8::2 dst=2001:db8:8::1 udp";
	// The last bytes of source and destination, of source and destination port.
	static const uint16_t in_v4[] = {15, 19, 21, 23}, in_v6[] = {23, 39, 41, 43};

	for (size_t i = 0; i < RTE_DIM(in_v4); i++) {
		expect_spread(v4, CV_ETHER_LEN + in_v4[i]);
		expect_spread(v6, CV_ETHER_LEN + in_v6[i]);
	}
	(void)state;
}

static uint32_t flow_of(const char *text)
{
	struct packet packet = packet_make(text);
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	return cv_paths_flow(&view, UINT64_C(0x1234567890abcdef));
}

// All fragments of a packet take the same next hop, whatever headers stand before the fragment header
// and behind it.
static void fragments_stay_together(void **state)
{
#define V6 "ip6 src=2001:db8::2 dst=2001:db8:8::1 "
#define PORTS "00350036000c0000"
	static const struct {
		const char *first, *later;
	} rows[] = {
		{"ip4 src=10.0.0.2 dst=10.8.1.1 mf=1 udp data=8",
			"ip4 src=10.0.0.2 dst=10.8.1.1 off=2 proto=17 data=8"},
		{V6 "nh=44 hex=1100000100000001" PORTS " data=8",
			V6 "nh=44 hex=1100000800000001 data=16"},
		{V6 "nh=0 hex=2c000104000000001100000100000001" PORTS " data=8",
			V6 "nh=0 hex=2c000104000000001100000800000001 data=16"},
		{V6 "nh=44 hex=3c000001000000011100010400000000" PORTS " data=8",
			V6 "nh=44 hex=3c00000800000001 data=16"},
		{V6 "nh=44 hex=3c00000100000001 data=0", V6 "nh=44 hex=3c00000800000001 data=16"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++)
		if (flow_of(rows[i].first) != flow_of(rows[i].later))
			fail_msg("%s", rows[i].first);
	// By their addresses, where there is nothing else.
	assert_int_not_equal(
		flow_of(rows[4].later), flow_of("ip6 src=2001:db8::2 dst=2001:db8:8::2 nh=44 "
						"hex=3c00000800000001 data=16"));
	// What is no fragment has its ports, behind extension headers, too.
	assert_int_not_equal(flow_of(V6 "nh=0 hex=1100010400000000" PORTS " data=4"),
		flow_of(V6 "nh=0 hex=110001040000000000350037000c0000 data=4"));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_alike_are_spread),
		cmocka_unit_test(fragments_stay_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
