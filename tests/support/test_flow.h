// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests of flows: packets whose checksums are made from scratch.
#ifndef CV_TEST_FLOW_H
#define CV_TEST_FLOW_H

#include "tests/support/test_packets.h"

#include "flow/parse.h"
#include "packet/tuple.h"

// Layer 4's checksum and IPv4's, made from scratch; a UDP checksum of zero stays.
static inline void flow_checksums(uint8_t *data, uint16_t len)
{
	struct cv_flow_parsed parsed;
	struct cv_view view;
	uint8_t *ip, *l4;
	unsigned at;
	uint64_t sum;
	rte_be16_t checksum = 0;

	cv_view_set(&view, data, len);
	cv_flow_parse(&view, &parsed);
	if (parsed.kind > CV_FLOW_IS_ERROR)
		return;
	ip = data + parsed.l3;
	l4 = data + parsed.l4;
	if (!parsed.v6) {
		memset(ip + 10, 0, 2);
		checksum = cv_checksum(ip, parsed.l4 - parsed.l3);
		memcpy(ip + 10, &checksum, 2);
	}
	at = cv_flow_checksum_at(parsed.proto);
	if (at == 0 || parsed.kind == CV_FLOW_IS_FRAGMENT ||
		(parsed.proto == IPPROTO_UDP && cv_load_be16(l4 + at) == 0))
		return;
	memset(l4 + at, 0, 2);
	sum = cv_checksum_add(0, l4, parsed.end - parsed.l4);
	if (parsed.proto != IPPROTO_ICMP) {
		sum += cv_checksum_add(0, ip + (parsed.v6 ? 8 : 12), parsed.v6 ? 32 : 8);
		sum += rte_cpu_to_be_16(parsed.proto);
		sum += rte_cpu_to_be_16((uint16_t)(parsed.end - parsed.l4));
	}
	checksum = (rte_be16_t)~cv_checksum_fold(sum);
	if (parsed.proto == IPPROTO_UDP && checksum == 0)
		checksum = 0xffff;
	memcpy(l4 + at, &checksum, 2);
}

// A packet from text with right checksums. "sum" of UDP: something, so that it is not left zero.
static inline struct packet flow_packet(const char *text, bool udp_sum)
{
	struct packet packet = packet_make(text);
	struct cv_flow_parsed parsed;
	struct cv_view view;

	cv_view_set(&view, packet.bytes, packet.len);
	cv_flow_parse(&view, &parsed);
	if (udp_sum && parsed.kind == CV_FLOW_IS_FLOW && parsed.proto == IPPROTO_UDP)
		packet.bytes[parsed.l4 + 6] = 1;
	flow_checksums(packet.bytes, packet.len);
	return packet;
}

#endif
