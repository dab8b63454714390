// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The hash of the flow that a packet belongs to, for the source port or flow label of what carries it.
// It spreads tunnels over paths and receive queues; it decides nothing, and says nothing to the
// receiver, so it may change from version to version.
#ifndef CV_FLOW_HASH_H
#define CV_FLOW_HASH_H

#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/view.h"

static CV_INLINE uint64_t cv_flow_load(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

// Both halves of a 128-bit product: every bit of either word reaches every bit of the result.
static CV_INLINE uint64_t cv_flow_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xe7037ed1a0b428dbull);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// TCP, UDP, SCTP, DCCP and UDP-Lite begin with two ports, of which len bytes are there.
static CV_INLINE uint32_t cv_flow_ports(const uint8_t *at, uint32_t len, uint8_t proto)
{
	uint32_t ports;

	if ((proto != 6 && proto != 17 && proto != 33 && proto != 132 && proto != 136) || len < 4)
		return 0;
	memcpy(&ports, at, sizeof(ports));
	return ports;
}

// Addresses, protocol and ports; fragments, and IPv6 packets with extension headers, are told by
// their addresses only, so that all of a packet goes one way; what is not IP by its MAC addresses.
// VLAN tags do not count. Reads are bounded by
// the view's length, also while somebody changes the bytes.
static CV_INLINE uint32_t cv_flow_hash(const struct cv_view *view)
{
	const uint8_t *l3 = view->data + view->l3;
	uint32_t room = (uint32_t)(view->len - view->l3);
	uint64_t hash;

	if (CV_LIKELY(view->proto == CV_PROTO_IPV4 && room >= CV_IPV4_LEN)) {
		struct cv_ipv4 ip;
		uint32_t header, ports = 0;

		memcpy(&ip, l3, sizeof(ip));
		CV_COPIED();
		header = cv_ipv4_header_len(&ip);
		if (CV_LIKELY(!(ip.fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) && header <= room))
			ports = cv_flow_ports(l3 + header, room - header, ip.proto);
		hash = cv_flow_mix(
			(uint64_t)ip.src << 32 | ip.dst, (uint64_t)ip.proto << 32 | ports);
	} else if (view->proto == CV_PROTO_IPV6 && room >= CV_IPV6_LEN) {
		uint64_t ports = cv_flow_ports(l3 + CV_IPV6_LEN, room - CV_IPV6_LEN, l3[6]);

		hash = cv_flow_mix(cv_flow_load(l3 + 8), cv_flow_load(l3 + 16));
		hash ^= cv_flow_mix(cv_flow_load(l3 + 24), cv_flow_load(l3 + 32) ^ hash);
		hash = cv_flow_mix(hash, ports);
	} else if (view->len >= CV_ETHER_LEN) {
		uint32_t rest;

		memcpy(&rest, view->data + 8, sizeof(rest));
		hash = cv_flow_mix(cv_flow_load(view->data), rest);
	} else {
		hash = 0;
	}
	return (uint32_t)(hash ^ hash >> 32);
}

#endif
