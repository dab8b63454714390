// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The IPv4 header (RFC 791), and the checks that a router owes it (RFC 1812 section 5.2.2).
#ifndef CV_IPV4_H
#define CV_IPV4_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "packet/checksum.h"
#include "packet/compiler.h"

#define CV_IPV4_LEN 20 // without options

#define CV_IPV4_DF RTE_BE16(0x4000)
#define CV_IPV4_MF RTE_BE16(0x2000) // more fragments follow
#define CV_IPV4_OFFSET RTE_BE16(0x1fff) // where a fragment belongs, in units of 8 bytes

// May lie at any address: packets are not aligned.
struct cv_ipv4 {
	uint8_t version_ihl; // 4 bits each; IHL counts 4-byte words
	uint8_t tos;
	rte_be16_t total_len; // header and payload
	rte_be16_t id;
	rte_be16_t fragment; // CV_IPV4_DF, _MF and _OFFSET
	uint8_t ttl;
	uint8_t proto;
	rte_be16_t checksum; // of the header
	rte_be32_t src;
	rte_be32_t dst;
} __attribute__((packed, aligned(1)));

_Static_assert(sizeof(struct cv_ipv4) == CV_IPV4_LEN, "as on the wire");

// Bytes of a header whose first byte was read, options included; says nothing of its truth.
static CV_INLINE uint16_t cv_ipv4_header_len(const struct cv_ipv4 *ip)
{
	return (ip->version_ihl & 15) * 4;
}

// True if the 16-bit words of a header of 20 bytes add up to 0xffff, as its checksum makes them.
// 2^16 and 2^32 are both 1 modulo 0xffff: so words of 32 bits may be added as well, and the sum of
// a header, never 0 for its version is not, must be divisible by 0xffff. That is a multiplication
// and a comparison.
static CV_INLINE bool cv_ipv4_checksum_ok20(const struct cv_ipv4 *ip)
{
	return cv_checksum_add(0, (const uint8_t *)ip, CV_IPV4_LEN) % 0xffff == 0;
}

// Checks the header at the start of room bytes: version, lengths against each other and against
// the frame, checksum (RFC 1812 section 5.2.2, all five). Bytes behind total_len are padding.
// Returns the header's length, 20 to 60 bytes all of which are there, or 0: not a sound header.
static CV_INLINE uint16_t cv_ipv4_check(const struct cv_ipv4 *ip, uint16_t room)
{
	uint16_t header, total;

	if (CV_UNLIKELY(room < CV_IPV4_LEN))
		return 0;
	total = rte_be_to_cpu_16(ip->total_len);
	if (CV_LIKELY(ip->version_ihl == 0x45)) {
		if (CV_UNLIKELY(total < CV_IPV4_LEN || total > room || !cv_ipv4_checksum_ok20(ip)))
			return 0;
		return CV_IPV4_LEN;
	}
	header = cv_ipv4_header_len(ip);
	if (ip->version_ihl >> 4 != 4 || header < CV_IPV4_LEN || total < header || total > room)
		return 0;
	if (cv_checksum_fold(cv_checksum_add(0, (const uint8_t *)ip, header)) != 0xffff)
		return 0;
	return header;
}

// Takes one from the TTL, which is not 0, and updates the checksum: RFC 1624 equation 3 where the
// word is smaller by 0x0100, so that the checksum is larger by as much, with end-around carry. TTL
// and checksum lie in one 32-bit word.
static CV_INLINE void cv_ipv4_ttl_decrement(struct cv_ipv4 *ip)
{
	uint32_t word;

	memcpy(&word, &ip->ttl, 4);
	_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are composed here");
	word += 0x10000u - 1 + (word >= 0xfffe0000 ? 0x10000 : 0);
	memcpy(&ip->ttl, &word, 4);
}

// Which first bytes of an address are nobody's on a network: 0/8, 127/8, 224/4 (multicast), 240/4
// (RFC 1812 sections 4.2.2.11, 4.2.3.1 and 5.3.7).
static const uint8_t cv_ipv4_martians[256] = {[0] = 1, [127] = 1, [224 ... 255] = 1};

// The address is in network order.
static CV_INLINE bool cv_ipv4_martian(rte_be32_t address)
{
	uint8_t first;

	memcpy(&first, &address, 1);
	return cv_ipv4_martians[first];
}

static CV_INLINE bool cv_ipv4_multicast(rte_be32_t address)
{
	return rte_be_to_cpu_32(address) >> 28 == 14;
}

#endif
