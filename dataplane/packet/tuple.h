// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The 5-tuple of an IP packet, fragments and extension headers told apart. Everything is bounded
// by the lengths that the IP header gives, never by the frame: Ethernet padding behind a short
// packet is not taken for ports. No checksum is verified here.
//
// Sources: RFC 791, RFC 8200; fragments RFC 1858, RFC 3128, RFC 6946, RFC 7112.
#ifndef CV_TUPLE_H
#define CV_TUPLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CV_IPV6_EXTENSIONS_MAX 8 // extension headers that are walked; a longer chain is refused

// What a packet's tuple is worth.
enum cv_tuple_kind {
	CV_TUPLE_PORTS, // complete: the protocol has ports, and they are there
	CV_TUPLE_NO_PORTS, // complete: the protocol has none (ICMP, ESP, GRE ...)
	CV_TUPLE_NON_FIRST, // a non-first fragment: addresses and protocol, no ports
	CV_TUPLE_BAD_HEADER, // version, lengths or the chain of headers do not add up
	CV_TUPLE_BAD_FRAGMENT, // a first fragment that hides its ports or headers, or two in one
};

// Both are read by lookups that take four bytes at a time: no byte of them is left unset.
struct cv_tuple_ipv4 {
	uint8_t proto;
	uint8_t zero[3];
	rte_be32_t src;
	rte_be32_t dst;
	rte_be16_t sport; // 0 unless CV_TUPLE_PORTS
	rte_be16_t dport;
};

struct cv_tuple_ipv6 {
	uint8_t proto; // behind the extension headers
	uint8_t zero[3];
	uint8_t src[16];
	uint8_t dst[16];
	rte_be16_t sport; // 0 unless CV_TUPLE_PORTS
	rte_be16_t dport;
};

_Static_assert(sizeof(struct cv_tuple_ipv4) == 16, "packed");
_Static_assert(sizeof(struct cv_tuple_ipv6) == 40, "packed");

// The protocols whose header begins with two ports.
static CV_INLINE bool cv_proto_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_DCCP ||
	       proto == IPPROTO_SCTP || proto == IPPROTO_UDPLITE;
}

// RFC 8200 section 4, RFC 4302. Mobility, HIP and shim6 end the chain, as they do in practice; ESP and "no next header" end it by definition.
static CV_INLINE bool cv_ipv6_is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_AH || proto == IPPROTO_DSTOPTS;
}

static CV_INLINE uint16_t cv_tuple_load(const uint8_t *at)
{
	rte_be16_t value;

	memcpy(&value, at, sizeof(value));
	// As rte_be_to_cpu_16(), which is two instructions of assembly on x86, one of them slow.
	return RTE_BYTE_ORDER == RTE_BIG_ENDIAN ? value : __builtin_bswap16(value);
}

// The tuple of the IPv4 packet at ip, of which len bytes are there. The tuple is defined for
// the first three kinds only.
static CV_INLINE enum cv_tuple_kind cv_tuple_ipv4(
	const uint8_t *ip, uint32_t len, struct cv_tuple_ipv4 *tuple)
{
	uint32_t header, total, fragment, proto;

	if (CV_UNLIKELY(len < 20 || ip[0] >> 4 != 4))
		return CV_TUPLE_BAD_HEADER;
	header = (ip[0] & 0xfu) * 4;
	total = cv_tuple_load(ip + 2);
	fragment = cv_tuple_load(ip + 6);
	if (CV_UNLIKELY(header < 20 || total < header || total > len))
		return CV_TUPLE_BAD_HEADER;
	// In few, wide stores: the processor makes two a cycle.
	proto = rte_cpu_to_le_32(ip[9]);
	memcpy(tuple, &proto, 4);
	memcpy(&tuple->src, ip + 12, 8); // and dst
	memset(&tuple->sport, 0, 4); // and dport
	if (CV_UNLIKELY(fragment & 0x1fff))
		return CV_TUPLE_NON_FIRST;
	if (CV_UNLIKELY(!cv_proto_has_ports(ip[9])))
		return CV_TUPLE_NO_PORTS;
	if (CV_UNLIKELY(total - header < 4))
		return fragment & 0x2000 ? CV_TUPLE_BAD_FRAGMENT : CV_TUPLE_BAD_HEADER;
	memcpy(&tuple->sport, ip + header, 4);
	return CV_TUPLE_PORTS;
}

// The same for IPv6. A non-first fragment whose first header is an extension header hides its
// protocol, so it is a bad one; so is a packet with two fragment headers.
static CV_INLINE enum cv_tuple_kind cv_tuple_ipv6(
	const uint8_t *ip, uint32_t len, struct cv_tuple_ipv6 *tuple)
{
	enum cv_tuple_kind cut = CV_TUPLE_BAD_HEADER; // what a chain that ends too early is
	uint32_t at = 40, end, left = CV_IPV6_EXTENSIONS_MAX;
	bool fragment = false;
	uint8_t proto;

	if (CV_UNLIKELY(len < 40 || ip[0] >> 4 != 6))
		return CV_TUPLE_BAD_HEADER;
	end = 40 + (uint32_t)cv_tuple_load(ip + 4);
	if (CV_UNLIKELY(end > len))
		return CV_TUPLE_BAD_HEADER;
	proto = ip[6];
	while (CV_UNLIKELY(cv_ipv6_is_extension(proto))) {
		const uint8_t *header = ip + at;

		if (end - at < 8 || left-- == 0)
			return cut;
		if (proto == IPPROTO_FRAGMENT) {
			uint16_t field = cv_tuple_load(header + 2);

			if (fragment)
				return CV_TUPLE_BAD_FRAGMENT;
			fragment = true;
			if (field & 0xfff8) {
				proto = header[0];
				if (cv_ipv6_is_extension(proto))
					return CV_TUPLE_BAD_FRAGMENT;
				at = 0; // its payload does not begin with a header
				break;
			}
			if (field & 1)
				cut = CV_TUPLE_BAD_FRAGMENT;
			at += 8;
		} else {
			uint32_t bytes =
				proto == IPPROTO_AH ? (header[1] + 2u) * 4 : (header[1] + 1u) * 8;

			if (end - at < bytes)
				return cut;
			at += bytes;
		}
		proto = header[0];
	}
	tuple->proto = proto;
	memset(tuple->zero, 0, sizeof(tuple->zero));
	memcpy(tuple->src, ip + 8, 16);
	memcpy(tuple->dst, ip + 24, 16);
	tuple->sport = 0;
	tuple->dport = 0;
	if (CV_UNLIKELY(at == 0))
		return CV_TUPLE_NON_FIRST;
	if (CV_UNLIKELY(!cv_proto_has_ports(proto)))
		return CV_TUPLE_NO_PORTS;
	if (CV_UNLIKELY(end - at < 4))
		return cut;
	memcpy(&tuple->sport, ip + at, 2);
	memcpy(&tuple->dport, ip + at + 2, 2);
	return CV_TUPLE_PORTS;
}

// Of an IPv6 packet whose chain of headers cv_tuple_ipv6() walked: where layer 4 begins, and the
// fragment header, if there is one.
static inline uint16_t cv_ipv6_l4(const uint8_t *ip, const uint8_t **fragment)
{
	uint8_t proto = ip[6];
	uint16_t at = 40;

	*fragment = NULL;
	while (cv_ipv6_is_extension(proto)) {
		const uint8_t *header = ip + at;

		if (proto == IPPROTO_FRAGMENT) {
			*fragment = header;
			at += 8;
			if (cv_tuple_load(header + 2) & 0xfff8)
				break; // what follows is not a header
		} else {
			at += (uint16_t)(proto == IPPROTO_AH ? (header[1] + 2u) * 4
							     : (header[1] + 1u) * 8);
		}
		proto = header[0];
	}
	return at;
}

#endif
