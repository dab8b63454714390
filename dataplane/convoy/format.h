// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The convoy frame: several packets on their way to one next hop, in one UDP datagram.
// docs/convoy-frame.md is its specification; the numbers stand here and nowhere else.
//
//   Ethernet, up to two VLAN tags | IPv4 or IPv6 | UDP | convoy header | (length, packet) ...
#ifndef CV_CONVOY_FORMAT_H
#define CV_CONVOY_FORMAT_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CV_CONVOY_PORT 51966 // UDP destination port unless configured: 0xcafe
#define CV_CONVOY_VERSION 1
#define CV_CONVOY_ETHERNET 0 // type: the packets are Ethernet frames without FCS
#define CV_CONVOY_COMPRESSED 1 // type: those, compressed as a whole
#define CV_CONVOY_FRAGMENTS 2 // type: those, the first or the one behind the last not whole
#define CV_CONVOY_LEN 4 // the convoy header
#define CV_CONVOY_PREFIX_LEN 2 // the length before each packet
#define CV_CONVOY_PACKETS_MAX 255 // the count has 8 bits
#define CV_CONVOY_PACKET_MIN 14 // an embedded packet has an Ethernet header at least

#define CV_CONVOY_MTU 1500 // of the IP packet, unless configured
#define CV_CONVOY_TTL 64
#define CV_CONVOY_SPORT_MIN 49152 // source ports: RFC 6335's dynamic range,
#define CV_CONVOY_SPORT_MASK 0x3fff // 14 bits of the hash of a flow above its first

// May lie at any address: packets are not aligned.
struct cv_convoy_header {
	uint8_t version_type; // 4 bits each
	uint8_t count; // of packets, 1 to CV_CONVOY_PACKETS_MAX
	rte_be16_t nfi; // NFI-ID: the instance of a network function that the packets go to
} __attribute__((packed, aligned(1)));

static_assert(sizeof(struct cv_convoy_header) == CV_CONVOY_LEN, "as on the wire");

#define CV_CONVOY_LZ4 1 // codec: an LZ4 block

// Behind the convoy header where the type is CV_CONVOY_COMPRESSED; the compressed bytes follow.
struct cv_convoy_compression {
	uint8_t codec;
	uint8_t reserved; // 0
	rte_be16_t bytes; // of the packets with their lengths, expanded
	rte_be32_t dictionary; // its CRC-32; 0: none
} __attribute__((packed, aligned(1)));

static_assert(sizeof(struct cv_convoy_compression) == 8, "as on the wire");

// Behind the convoy header where the type is CV_CONVOY_FRAGMENTS; the packets follow.
struct cv_convoy_fragments {
	rte_be32_t stream; // of frames that one sender numbers
	rte_be32_t sequence;
	rte_be16_t flags; // CV_FRAGMENTS_REST or 0
	rte_be16_t total; // bytes of the packet that begins behind the last one; 0: none does
} __attribute__((packed, aligned(1)));

#define CV_FRAGMENTS_LEN 12u
#define CV_FRAGMENTS_REST RTE_BE16(1) // the first packet is the rest of one

static_assert(sizeof(struct cv_convoy_fragments) == CV_FRAGMENTS_LEN, "as on the wire");

// The length before a packet.
static CV_INLINE void cv_convoy_write_len(uint8_t *at, uint32_t len)
{
	const rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)len);

	memcpy(at, &prefix, sizeof(prefix));
}

#endif
