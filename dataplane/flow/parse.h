// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a packet is to flows: one of a flow, with its key, a fragment behind the first one, an ICMP
// error about another packet, or none of these.
#ifndef CV_FLOW_PARSE_H
#define CV_FLOW_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/fragments.h"
#include "flow/table.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tuple.h"
#include "packet/view.h"

enum cv_flow_kind {
	CV_FLOW_IS_FLOW,
	CV_FLOW_IS_FRAGMENT, // not the first
	CV_FLOW_IS_ERROR, // ICMP or ICMPv6
	CV_FLOW_IS_NON_IP,
	CV_FLOW_IS_BAD,
};

struct cv_flow_parsed {
	union cv_flow_key key; // a fragment's has no ports
	uint32_t fragment_id; // network order
	uint16_t l3, l4, end; // offsets of view->data: IP header, layer 4, end of the IP packet
	uint8_t kind; // enum cv_flow_kind
	uint8_t proto;
	uint8_t tcp_flags;
	bool v6;
	bool first_fragment; // and others follow
};

// Bytes of layer 4 without which a packet is cut short.
static CV_INLINE unsigned cv_flow_l4_least(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 20;
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
		return 12;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 8;
	default:
		return 0;
	}
}

// Where the checksum of layer 4 is; 0: it has none that addresses and ports are under, or one that
// is not the Internet's.
static CV_INLINE unsigned cv_flow_checksum_at(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		return 6;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	default:
		return 0;
	}
}

// What an ICMP message is: the ports of its key, or an error about another packet.
enum cv_flow_icmp {
	CV_FLOW_ICMP_REQUEST,
	CV_FLOW_ICMP_ANSWER,
	CV_FLOW_ICMP_ERROR,
	CV_FLOW_ICMP_PLAIN
};

static CV_INLINE enum cv_flow_icmp cv_flow_icmp_kind(uint8_t proto, uint8_t type)
{
	if (proto == IPPROTO_ICMPV6)
		return type >= 1 && type <= 4 ? CV_FLOW_ICMP_ERROR
		       : type == 128          ? CV_FLOW_ICMP_REQUEST
		       : type == 129          ? CV_FLOW_ICMP_ANSWER
					      : CV_FLOW_ICMP_PLAIN;
	switch (type) {
	case 3: // unreachable
	case 4: // source quench
	case 11: // time exceeded
	case 12: // parameter problem
		return CV_FLOW_ICMP_ERROR;
	case 8: // echo, timestamp, information, address mask
	case 13:
	case 15:
	case 17:
		return CV_FLOW_ICMP_REQUEST;
	case 0:
	case 14:
	case 16:
	case 18:
		return CV_FLOW_ICMP_ANSWER;
	default:
		return CV_FLOW_ICMP_PLAIN;
	}
}

// Whether a protocol is its family's ICMP.
static CV_INLINE bool cv_flow_is_icmp(uint8_t proto, bool v6)
{
	return proto == (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

// The ports of a key, from at least 8 bytes of ICMP.
static CV_INLINE void cv_flow_icmp_ports(
	uint8_t proto, const uint8_t *icmp, rte_be16_t *sport, rte_be16_t *dport)
{
	const enum cv_flow_icmp kind = cv_flow_icmp_kind(proto, icmp[0]);

	*sport = kind == CV_FLOW_ICMP_REQUEST ? cv_load_be16(icmp + 4)
		 : kind == CV_FLOW_ICMP_PLAIN ? cv_load_be16(icmp)
					      : 0;
	*dport = kind == CV_FLOW_ICMP_ANSWER  ? cv_load_be16(icmp + 4)
		 : kind == CV_FLOW_ICMP_PLAIN ? cv_load_be16(icmp)
					      : 0;
}

// The same of IPv4 and IPv6: the tuple is in the key.
static inline enum cv_tuple_kind cv_flow_parse_ipv4(
	const uint8_t *ip, uint32_t len, struct cv_flow_parsed *parsed)
{
	struct cv_tuple_ipv4 tuple;
	enum cv_tuple_kind kind = cv_tuple_ipv4(ip, len, &tuple);
	uint16_t fragment;

	if (kind > CV_TUPLE_NON_FIRST)
		return kind;
	fragment = cv_tuple_load(ip + 6);
	cv_flow_key_write(
		&parsed->key.ipv4, tuple.src, tuple.dst, tuple.sport, tuple.dport, tuple.proto);
	parsed->proto = tuple.proto;
	parsed->fragment_id = (uint32_t)cv_load_be16(ip + 4) << 16;
	parsed->first_fragment = (fragment & 0x3fff) == 0x2000;
	parsed->l4 = parsed->l3 + (ip[0] & 0xf) * 4;
	parsed->end = parsed->l3 + cv_tuple_load(ip + 2);
	return kind;
}

static inline enum cv_tuple_kind cv_flow_parse_ipv6(
	const uint8_t *ip, uint32_t len, struct cv_flow_parsed *parsed)
{
	struct cv_tuple_ipv6 tuple;
	enum cv_tuple_kind kind = cv_tuple_ipv6(ip, len, &tuple);
	const uint8_t *fragment;

	if (kind > CV_TUPLE_NON_FIRST)
		return kind;
	memcpy(parsed->key.ipv6.src, tuple.src, 16);
	memcpy(parsed->key.ipv6.dst, tuple.dst, 16);
	parsed->key.ipv6.sport = tuple.sport;
	parsed->key.ipv6.dport = tuple.dport;
	parsed->key.ipv6.proto = tuple.proto;
	parsed->proto = tuple.proto;
	parsed->l4 = parsed->l3 + cv_ipv6_l4(ip, &fragment);
	parsed->end = parsed->l3 + CV_IPV6_LEN + cv_tuple_load(ip + 4);
	if (fragment != NULL) {
		memcpy(&parsed->fragment_id, fragment + 4, 4);
		parsed->first_fragment = cv_tuple_load(fragment + 2) & 1;
	}
	return kind;
}

// Looks at any packet. Reads nothing outside of it.
static inline void cv_flow_parse(const struct cv_view *view, struct cv_flow_parsed *parsed)
{
	const uint8_t *ip = view->data + view->l3, *l4;
	const uint32_t len = view->len - view->l3;
	enum cv_tuple_kind kind = CV_TUPLE_BAD_HEADER;
	rte_be16_t *ports;

	memset(parsed, 0, sizeof(*parsed));
	parsed->l3 = view->l3;
	parsed->v6 = view->proto == CV_PROTO_IPV6;
	parsed->kind = CV_FLOW_IS_BAD;
	if (view->proto == CV_PROTO_IPV4) {
		kind = cv_flow_parse_ipv4(ip, len, parsed);
	} else if (parsed->v6) {
		kind = cv_flow_parse_ipv6(ip, len, parsed);
	} else if (view->proto != 0 && view->proto != CV_PROTO_VLAN &&
		   view->proto != CV_PROTO_QINQ && view->proto != CV_PROTO_QINQ1 &&
		   view->proto != CV_PROTO_QINQ2 && view->proto != CV_PROTO_QINQ3) {
		parsed->kind = CV_FLOW_IS_NON_IP;
		return;
	}
	if (kind > CV_TUPLE_NON_FIRST)
		return;
	if (kind == CV_TUPLE_NON_FIRST) {
		parsed->kind = CV_FLOW_IS_FRAGMENT;
		return;
	}
	l4 = view->data + parsed->l4;
	if (parsed->end - parsed->l4 < (int)cv_flow_l4_least(parsed->proto))
		return;
	parsed->kind = CV_FLOW_IS_FLOW;
	if (parsed->proto == IPPROTO_TCP)
		parsed->tcp_flags = l4[13];
	if (!cv_flow_is_icmp(parsed->proto, parsed->v6))
		return;
	if (cv_flow_icmp_kind(parsed->proto, l4[0]) == CV_FLOW_ICMP_ERROR) {
		parsed->kind = CV_FLOW_IS_ERROR;
		return;
	}
	ports = parsed->v6 ? &parsed->key.ipv6.sport : &parsed->key.ipv4.sport;
	cv_flow_icmp_ports(parsed->proto, l4, &ports[0], &ports[1]);
}

// The same of a packet of a common kind (common.h).
static CV_INLINE void cv_flow_parse_common(
	const struct cv_view *view, struct cv_flow_parsed *parsed)
{
	const uint8_t *ip = view->data + view->l3;
	const bool v6 = view->proto == CV_PROTO_IPV6;
	const unsigned header = v6 ? CV_IPV6_LEN : CV_IPV4_LEN;
	const uint8_t *l4 = ip + header;

	*parsed = (struct cv_flow_parsed){.l3 = view->l3,
		.l4 = (uint16_t)(view->l3 + header),
		.end = (uint16_t)(view->l3 + (v6 ? CV_IPV6_LEN + cv_tuple_load(ip + 4)
						 : cv_tuple_load(ip + 2))),
		.kind = CV_FLOW_IS_FLOW,
		.proto = ip[v6 ? 6 : 9],
		.v6 = v6};
	if (v6) {
		parsed->key.ipv6.proto = parsed->proto;
		memcpy(&parsed->key, ip + 8, CV_FLOW_STORED_BYTES(true));
	} else {
		struct cv_flow_key_ipv4 from;

		memcpy(&from, ip + 12, CV_FLOW_STORED_BYTES(false));
		cv_flow_key_write(&parsed->key.ipv4, from.src, from.dst, from.sport, from.dport,
			parsed->proto);
		parsed->fragment_id = (uint32_t)cv_load_be16(ip + 4) << 16;
	}
	if (parsed->proto == IPPROTO_TCP)
		parsed->tcp_flags = l4[13];
}

// What a fragment, the first one or another, is known by.
static inline void cv_flow_fragment_key_of(
	const struct cv_flow_parsed *parsed, struct cv_flow_fragment_key *key)
{
	*key = (struct cv_flow_fragment_key){
		.id = parsed->fragment_id, .proto = parsed->proto, .v6 = parsed->v6};
	memcpy(key->src, &parsed->key, parsed->v6 ? 16 : 4);
	memcpy(key->dst, (const uint8_t *)&parsed->key + (parsed->v6 ? 16 : 4),
		parsed->v6 ? 16 : 4);
}

#endif
