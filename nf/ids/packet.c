// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A packet as rules see it.
#include <string.h>

#include "nf/ids/ids.h"
#include "packet/tuple.h"

#define TCP_LEN 20
#define UDP_LEN 8
#define ICMP_LEN 8

bool cv_ids_packet_l4(const uint8_t *data, uint32_t l4, uint32_t end, struct cv_ids_packet *packet)
{
	const uint8_t *at = data + l4;
	const uint32_t len = end - l4;
	uint32_t header = 0;

	packet->sport = packet->dport = 0;
	packet->has_ports = true;
	switch (packet->l4) {
	case IPPROTO_TCP:
		packet->proto = CV_IDS_TCP;
		if (len < TCP_LEN)
			return false;
		header = (at[12] >> 4) * 4u;
		if (header < TCP_LEN || header > len)
			return false;
		break;
	case IPPROTO_UDP:
		packet->proto = CV_IDS_UDP;
		header = UDP_LEN;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		packet->proto = CV_IDS_ICMP;
		header = ICMP_LEN;
		break;
	default:
		packet->proto = CV_IDS_IP;
	}
	if (header > len)
		return false;
	if (packet->proto == CV_IDS_TCP || packet->proto == CV_IDS_UDP) {
		packet->sport = cv_tuple_load(at);
		packet->dport = cv_tuple_load(at + 2);
	} else if (packet->proto == CV_IDS_ICMP) {
		packet->sport = at[0];
		packet->dport = at[1];
	}
	packet->payload = at + header;
	packet->len = len - header;
	return true;
}

// A fragment that is not the first: its payload, and no ports.
static void behind_first(
	const uint8_t *data, uint32_t l4, uint32_t end, struct cv_ids_packet *packet)
{
	packet->proto = packet->l4 == IPPROTO_TCP                                    ? CV_IDS_TCP
			: packet->l4 == IPPROTO_UDP                                  ? CV_IDS_UDP
			: packet->l4 == IPPROTO_ICMP || packet->l4 == IPPROTO_ICMPV6 ? CV_IDS_ICMP
										     : CV_IDS_IP;
	packet->sport = packet->dport = 0;
	packet->has_ports = false;
	packet->payload = data + l4;
	packet->len = end - l4;
}

static bool is_fragment_ipv4(const uint8_t *ip)
{
	return (cv_tuple_load(ip + 6) & 0x3fff) != 0;
}

enum cv_ids_kind cv_ids_packet_of(const struct cv_view *view, struct cv_ids_packet *packet)
{
	const uint8_t *ip = view->data + view->l3, *fragment = NULL;
	const uint32_t len = (uint32_t)(view->len - view->l3);
	enum cv_tuple_kind kind;
	uint32_t l4, end;

	packet->flow = 0;
	packet->stream = false;
	if (CV_LIKELY(view->proto == CV_PROTO_IPV4)) {
		struct cv_tuple_ipv4 tuple;

		kind = cv_tuple_ipv4(ip, len, &tuple);
		if (CV_UNLIKELY(kind > CV_TUPLE_NON_FIRST))
			return CV_IDS_IS_BAD;
		packet->v6 = false;
		packet->l4 = tuple.proto;
		packet->src = ip + 12;
		packet->dst = ip + 16;
		l4 = (ip[0] & 15u) * 4;
		end = cv_tuple_load(ip + 2);
		if (CV_UNLIKELY(is_fragment_ipv4(ip)))
			fragment = ip;
	} else if (view->proto == CV_PROTO_IPV6) {
		struct cv_tuple_ipv6 tuple;

		kind = cv_tuple_ipv6(ip, len, &tuple);
		if (kind > CV_TUPLE_NON_FIRST)
			return CV_IDS_IS_BAD;
		packet->v6 = true;
		packet->l4 = tuple.proto;
		packet->src = ip + 8;
		packet->dst = ip + 24;
		l4 = cv_ipv6_l4(ip, &fragment);
		end = 40 + (uint32_t)cv_tuple_load(ip + 4);
		// One that is whole is no fragment (RFC 6946).
		if (fragment != NULL && (cv_tuple_load(fragment + 2) & 0xfff9) == 0)
			fragment = NULL;
	} else {
		return CV_IDS_IS_NON_IP;
	}
	if (CV_UNLIKELY(kind == CV_TUPLE_NON_FIRST)) {
		behind_first(ip, l4, end, packet);
		return CV_IDS_IS_FRAGMENT;
	}
	if (CV_UNLIKELY(!cv_ids_packet_l4(ip, l4, end, packet)))
		return CV_IDS_IS_BAD;
	return CV_UNLIKELY(fragment != NULL) ? CV_IDS_IS_FRAGMENT : CV_IDS_IS_PACKET;
}
