// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/rewrite.h"

#define ICMP_LEN 8 // of an error, before the packet that it is about
#define L4_MOST 20 // bytes of layer 4 that ports and checksums are in

static bool read_ipv4(const uint8_t *ip, unsigned room, struct cv_flow_inner *inner)
{
	unsigned header;

	if (room < CV_IPV4_LEN || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 0xfu) * 4;
	if (header < CV_IPV4_LEN || header > room || cv_tuple_load(ip + 6) & 0x1fff)
		return false;
	inner->proto = ip[9];
	inner->l4 = (uint16_t)(inner->ip + header);
	inner->answer.ipv4.proto = inner->proto;
	memcpy(&inner->answer.ipv4.src, ip + 16, 4);
	memcpy(&inner->answer.ipv4.dst, ip + 12, 4);
	return true;
}

static bool read_ipv6(const uint8_t *ip, unsigned room, struct cv_flow_inner *inner)
{
	unsigned at = CV_IPV6_LEN, bytes;
	uint8_t proto;

	if (room < CV_IPV6_LEN || ip[0] >> 4 != 6)
		return false;
	proto = ip[6];
	for (unsigned i = 0; cv_ipv6_is_extension(proto); i++) {
		if (i == CV_IPV6_EXTENSIONS_MAX || room - at < 8)
			return false;
		bytes = proto == IPPROTO_FRAGMENT ? 8
			: proto == IPPROTO_AH     ? (ip[at + 1] + 2u) * 4
						  : (ip[at + 1] + 1u) * 8;
		if (proto == IPPROTO_FRAGMENT && cv_tuple_load(ip + at + 2) & 0xfff8)
			return false;
		if (bytes > room - at)
			return false;
		proto = ip[at];
		at += bytes;
	}
	inner->proto = proto;
	inner->l4 = (uint16_t)(inner->ip + at);
	inner->answer.ipv6.proto = proto;
	memcpy(inner->answer.ipv6.src, ip + 24, 16);
	memcpy(inner->answer.ipv6.dst, ip + 8, 16);
	return true;
}

bool cv_flow_inner_read(const struct cv_view *view, const struct cv_flow_parsed *parsed,
	struct cv_flow_inner *inner)
{
	const uint8_t *l4;
	rte_be16_t *ports, sport = 0, dport = 0;
	unsigned room;

	memset(inner, 0, sizeof(*inner));
	inner->ip = parsed->l4 + ICMP_LEN;
	room = parsed->end - inner->ip;
	if (parsed->v6 ? !read_ipv6(view->data + inner->ip, room, inner)
		       : !read_ipv4(view->data + inner->ip, room, inner))
		return false;
	l4 = view->data + inner->l4;
	room = parsed->end - inner->l4;
	inner->room = (uint16_t)(room < L4_MOST ? room : L4_MOST);
	if (cv_flow_is_icmp(inner->proto, parsed->v6)) {
		if (room < 8 || cv_flow_icmp_kind(inner->proto, l4[0]) == CV_FLOW_ICMP_ERROR)
			return false;
		cv_flow_icmp_ports(inner->proto, l4, &sport, &dport);
	} else if (cv_proto_has_ports(inner->proto)) {
		if (room < 4)
			return false;
		sport = cv_load_be16(l4);
		dport = cv_load_be16(l4 + 2);
	}
	ports = parsed->v6 ? &inner->answer.ipv6.sport : &inner->answer.ipv4.sport;
	ports[0] = dport;
	ports[1] = sport;
	return true;
}

// The inner packet travelled against the error, and left as an answer's key turned around; it
// becomes what it was when it came, the key of that direction.
static void rewrite_inner(const struct cv_view *view, bool v6, const struct cv_flow_inner *inner,
	struct cv_flow *flow, unsigned direction)
{
	uint8_t *ip = view->data + inner->ip, *l4 = view->data + inner->l4;
	const uint8_t *key = cv_flow_stored(flow, !direction, v6);
	const uint8_t *ports = key + (v6 ? 32 : 8);
	const unsigned checksum_at = cv_flow_checksum_at(inner->proto);

	if (v6) {
		memcpy(ip + 8, key, 32);
	} else {
		memcpy(ip + 12, key, 8);
		cv_flow_checksum_at_update(
			ip + 10, cv_flow_delta(flow->ip_delta, direction), false);
	}
	if (cv_flow_is_icmp(inner->proto, v6)) {
		const enum cv_flow_icmp kind = cv_flow_icmp_kind(inner->proto, l4[0]);

		if (kind != CV_FLOW_ICMP_PLAIN)
			memcpy(l4 + 4, kind == CV_FLOW_ICMP_REQUEST ? ports : ports + 2, 2);
	} else if (cv_proto_has_ports(inner->proto)) {
		memcpy(l4, ports, 4);
	}
	if (checksum_at != 0 && checksum_at + 2 <= inner->room)
		cv_flow_checksum_at_update(l4 + checksum_at,
			cv_flow_delta(flow->l4_delta, direction), inner->proto == IPPROTO_UDP);
}

void cv_flow_rewrite_error(const struct cv_view *view, const struct cv_flow_parsed *parsed,
	const struct cv_flow_inner *inner, struct cv_flow *flow, unsigned direction)
{
	const bool v6 = parsed->v6;
	const unsigned bytes = v6 ? 16 : 4; // of an address
	uint8_t *ip = view->data + parsed->l3, *icmp = view->data + parsed->l4;
	uint8_t *addresses = ip + (v6 ? 8 : 12);
	uint8_t *within = view->data + inner->ip;
	const size_t within_bytes = (size_t)(inner->l4 - inner->ip) + inner->room;
	const uint8_t *from = cv_flow_stored(flow, direction, v6);
	const uint8_t *answer = cv_flow_stored(flow, !direction, v6);
	const uint64_t old_addresses = cv_checksum_add(0, addresses, 2 * bytes);
	const uint64_t old = cv_checksum_add(0, within, within_bytes);
	uint64_t new_addresses, new;

	rewrite_inner(view, v6, inner, flow, direction);
	// Nor do routers show an address of where the flow's are hidden (RFC 5508 REQ-5).
	if (memcmp(from, answer + bytes, bytes) != 0)
		memcpy(addresses, answer + bytes, bytes);
	memcpy(addresses + bytes, answer, bytes);
	new_addresses = cv_checksum_add(0, addresses, 2 * bytes);
	new = cv_checksum_add(0, within, within_bytes);
	if (v6) {
		new += new_addresses;
		new += (uint16_t)~cv_checksum_fold(old + old_addresses);
	} else {
		cv_flow_checksum_at_update(ip + 10,
			cv_checksum_fold(
				new_addresses + (uint16_t)~cv_checksum_fold(old_addresses)),
			false);
		new += (uint16_t)~cv_checksum_fold(old);
	}
	cv_flow_checksum_at_update(icmp + 2, cv_checksum_fold(new), false);
}

void cv_flow_rewrite_way(const struct cv_view *view, const struct cv_flow_way *way, unsigned which)
{
	const unsigned set = way->set & which;
	uint8_t *ip = view->data + view->l3;

	if ((set & CV_FLOW_SET_VLAN) && view->l3 > CV_ETHER_LEN) {
		view->data[14] = (uint8_t)((view->data[14] & 0xf0) | way->vlan >> 8);
		view->data[15] = (uint8_t)way->vlan;
	}
	if (!(set & CV_FLOW_SET_DSCP))
		return;
	if (view->proto == CV_PROTO_IPV4) {
		uint16_t old = cv_load_be16(ip), new;

		ip[1] = (uint8_t)(way->dscp << 2 | (ip[1] & 3));
		new = cv_load_be16(ip);
		cv_flow_checksum_at_update(
			ip + 10, cv_checksum_fold((uint32_t) new + (uint16_t)~old), false);
	} else {
		ip[0] = (uint8_t)(0x60 | way->dscp >> 2);
		ip[1] = (uint8_t)((way->dscp & 3) << 6 | (ip[1] & 0x3f));
	}
}
