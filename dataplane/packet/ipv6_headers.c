// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "packet/ipv6_headers.h"

#include <stddef.h>

#include "packet/ipv6.h"
#include "packet/tuple.h"

#define PAD1 0
#define PADN 1
// What an option's two highest bits ask of a node that does not know it: RFC 8200 section 4.2.
#define ACT(type) ((type) >> 6)
#define ACT_SKIP 0
#define ACT_DISCARD 1 // 2: tell; 3: tell, unless it was sent to a group

#define ROUTING_TYPE 2 // offsets of a routing header
#define ROUTING_LEFT 3

// Reads the options of a header whose bytes are there.
static enum cv_ipv6_headers read_options(
	const uint8_t *ip, uint32_t at, uint32_t end, uint16_t *wrong)
{
	for (at += 2; at < end;) {
		*wrong = (uint16_t)at;
		if (ip[at] == PAD1) {
			at++;
			continue;
		}
		if (at + 2 > end || at + 2 + ip[at + 1] > end)
			return CV_IPV6_ERRONEOUS;
		if (ip[at] != PADN && ACT(ip[at]) != ACT_SKIP)
			return ACT(ip[at]) == ACT_DISCARD ? CV_IPV6_DISCARDED
							  : CV_IPV6_UNKNOWN_OPTION;
		at += 2u + ip[at + 1];
	}
	return CV_IPV6_UPPER;
}

// One header, whose bytes are there.
static enum cv_ipv6_headers read_header(
	const uint8_t *ip, uint8_t proto, uint32_t at, uint32_t end, uint16_t *wrong)
{
	const uint8_t *header = ip + at;

	if (proto == IPPROTO_FRAGMENT) // an atomic one (RFC 6946) is whole
		return (cv_tuple_load(header + 2) & 0xfff9) != 0 ? CV_IPV6_FRAGMENTED
								 : CV_IPV6_UPPER;
	if (proto != IPPROTO_ROUTING)
		return read_options(ip, at, end, wrong);
	*wrong = (uint16_t)(at + ROUTING_TYPE);
	return header[ROUTING_LEFT] != 0 ? CV_IPV6_ERRONEOUS : CV_IPV6_UPPER;
}

enum cv_ipv6_headers cv_ipv6_read_headers(const uint8_t *ip, uint16_t *at, uint8_t *proto)
{
	const uint32_t end = CV_IPV6_LEN + cv_tuple_load(ip + 4);
	uint32_t field = offsetof(struct cv_ipv6, next), from = CV_IPV6_LEN;

	for (unsigned left = CV_IPV6_EXTENSIONS_MAX;; left--) {
		enum cv_ipv6_headers result;
		uint32_t bytes;

		*proto = ip[field];
		*at = (uint16_t)field;
		// Options of hops stand first, or nowhere.
		if (*proto == IPPROTO_HOPOPTS && from != CV_IPV6_LEN)
			return CV_IPV6_UNKNOWN_HEADER;
		if (!cv_ipv6_is_extension(*proto) || *proto == IPPROTO_AH)
			break;
		if (left == 0 || end - from < 8)
			return CV_IPV6_DISCARDED;
		bytes = *proto == IPPROTO_FRAGMENT ? 8 : (ip[from + 1] + 1u) * 8;
		if (end - from < bytes)
			return CV_IPV6_DISCARDED;
		result = read_header(ip, *proto, from, from + bytes, at);
		if (result != CV_IPV6_UPPER)
			return result;
		field = from;
		from += bytes;
	}
	if (*proto != IPPROTO_TCP && *proto != IPPROTO_UDP && *proto != IPPROTO_ICMPV6 &&
		*proto != IPPROTO_NONE)
		return CV_IPV6_UNKNOWN_HEADER;
	*at = (uint16_t)from;
	return CV_IPV6_UPPER;
}
