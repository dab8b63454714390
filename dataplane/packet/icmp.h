// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ICMP (RFC 792, RFC 1812 section 4.3) and ICMPv6 (RFC 4443): errors about a packet, and replies to
// echo requests. All work on IP packets: ip is one whose header cv_ipv4_check() or cv_ipv6_check()
// accepted, all of whose bytes are there.
#ifndef CV_ICMP_H
#define CV_ICMP_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>

// No error is longer: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4 (c).
#define CV_ICMPV4_ERROR_MAX 576
#define CV_ICMPV6_ERROR_MAX 1280

// Where a reason has two numbers they are ICMP's and ICMPv6's.
enum cv_icmp_reason {
	CV_ICMP_TIME_EXCEEDED, // in transit
	CV_ICMP_NO_ROUTE,
	CV_ICMP_HOST_UNREACHABLE,
	CV_ICMP_PROHIBITED,
	CV_ICMP_PORT_UNREACHABLE,
	CV_ICMP_PROTOCOL_UNREACHABLE, // ICMPv6: parameter problem, unrecognized next header
	CV_ICMP_TOO_BIG, // ICMP: fragmentation needed; value is the next hop's MTU
	CV_ICMP_PARAMETER, // value is the offset of the byte that is wrong
	CV_ICMP_UNKNOWN_OPTION, // ICMPv6's own code; value is the option's offset
	CV_ICMP_SR_UPPER_LAYER, // ICMPv6 alone (RFC 8986 section 4.1.1): value is the header's offset
	CV_ICMP_SOURCE_ROUTE_FAILED, // ICMP's own code
};

struct cv_icmp_error {
	enum cv_icmp_reason reason;
	// Of CV_ICMP_TOO_BIG, _PARAMETER, _UNKNOWN_OPTION, _SR_UPPER_LAYER and, in ICMPv6, _PROTOCOL_UNREACHABLE.
	uint32_t value;
};

// Whether an error about this packet may be sent: it is no ICMP error itself, no non-first fragment,
// from a unicast address and to one (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e)). A packet too big
// is said of packets to IPv6 groups as well. Whether the Ethernet destination was a group, or the IP
// address a network's broadcast, is the caller's to know.
bool cv_icmpv4_allowed(const uint8_t *ip);
bool cv_icmpv6_allowed(const uint8_t *ip, const struct cv_icmp_error *error);

// How long the error about the packet is, IP header included.
uint16_t cv_icmpv4_error_len(const uint8_t *ip);
uint16_t cv_icmpv6_error_len(const uint8_t *ip);

// Writes an error about the packet at ip, to its source, from src: so many bytes at out.
void cv_icmpv4_error(uint8_t *out, const uint8_t *ip, const struct cv_icmp_error *error,
	rte_be32_t src, uint16_t id);
void cv_icmpv6_error(
	uint8_t *out, const uint8_t *ip, const struct cv_icmp_error *error, const uint8_t *src);

// How long the reply to a packet is; 0: it is no whole, sound echo request.
uint16_t cv_icmpv4_echo_len(const uint8_t *ip);
uint16_t cv_icmpv6_echo_len(const uint8_t *ip);

// Writes the reply, from src: so many bytes at out. A request's options are not answered.
void cv_icmpv4_echo(uint8_t *out, const uint8_t *ip, rte_be32_t src, uint16_t id);
void cv_icmpv6_echo(uint8_t *out, const uint8_t *ip, const uint8_t *src);

// For whoever writes ICMPv6 messages: the IPv6 header before one of len bytes; the checksum over
// the packet at ip, which must have no extension headers.
void cv_icmpv6_header(
	uint8_t *ip, const uint8_t *src, const uint8_t *dst, uint16_t len, uint8_t hop_limit);
void cv_icmpv6_checksum_set(uint8_t *ip);
bool cv_icmpv6_checksum_ok(const uint8_t *ip);

#endif
