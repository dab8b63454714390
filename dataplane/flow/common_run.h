// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the hot halves share (run.h, foreign_run.h): hashes, keys and rewriting of common packets,
// compiled for different processors.
#ifndef CV_FLOW_COMMON_RUN_H
#define CV_FLOW_COMMON_RUN_H

#include "flow/common.h"
#include "flow/rewrite.h"
#include "flow/table.h"

// 1 for UDP, 0 for TCP: the protocols of common packets. Without a branch that half of the packets of mixed
// traffic would take, as what follows.
static CV_INLINE uint32_t is_udp(uint8_t proto)
{
	_Static_assert(IPPROTO_UDP >> 4 == 1 && IPPROTO_TCP >> 4 == 0, "one bit tells them apart");
	return proto >> 4;
}

// TCP's flags, of a common packet.
static CV_INLINE uint8_t tcp_flags_of(const uint8_t *l4, uint8_t proto)
{
	const uint32_t tcp = is_udp(proto) - 1; // all bits

	return l4[13 & tcp] & (uint8_t)tcp;
}

static CV_INLINE uint64_t hash_ipv4(
	const struct cv_flow_secret *secret, const uint8_t *ip, uint8_t proto)
{
#if defined(__AES__) && defined(__SSE4_1__)
	// Behind the ports stands the protocol, in place of four bytes that a packet always has there.
	__m128i x = _mm_insert_epi32(_mm_loadu_si128((const __m128i *)(ip + 12)), proto, 3);

	x = _mm_xor_si128(x, _mm_load_si128((const __m128i *)secret->keys));
	return (uint64_t)_mm_cvtsi128_si64(cv_flow_aes_rounds(secret, x));
#else
	uint64_t key[2] = {0, (uint64_t)proto << 32};

	memcpy(key, ip + 12, 12);
	return cv_flow_hash(secret, key, sizeof(key));
#endif
}

static CV_INLINE uint64_t hash_ipv6(const struct cv_flow_secret *secret, const uint8_t *ip)
{
	struct cv_flow_key_ipv6 key = {.proto = ip[6]};

	memcpy(&key, ip + 8, 36);
#ifdef __AES__
	return cv_flow_aes(secret, &key, sizeof(key));
#else
	return cv_flow_hash(secret, &key, sizeof(key));
#endif
}

#ifdef __SSE4_1__
static CV_INLINE bool has_key_ipv4(const uint8_t *key, uint8_t proto, const uint8_t *ip)
{
	const __m128i twelve = _mm_set_epi32(0, -1, -1, -1);
	__m128i x = _mm_loadu_si128((const __m128i *)(ip + 12));
	__m128i y = _mm_loadu_si128((const __m128i *)key);

	return CV_LIKELY(_mm_testz_si128(_mm_xor_si128(x, y), twelve)) && proto == ip[9];
}

// Addresses and ports of a common packet, as those of its answers turned around.
static CV_INLINE void put_ipv4(const uint8_t *before_key, uint8_t *ip)
{
	const __m128i turn = _mm_set_epi8(-1, -1, -1, -1, 13, 12, 15, 14, 7, 6, 5, 4, 11, 10, 9, 8);
	__m128i x = _mm_loadu_si128((const __m128i *)(ip + 12));
	__m128i y = _mm_loadu_si128((const __m128i *)before_key);

	y = _mm_shuffle_epi8(y, turn);
	_mm_storeu_si128((__m128i *)(ip + 12), _mm_blend_epi16(y, x, 0xc0));
}
#else
static CV_INLINE bool has_key_ipv4(const uint8_t *key, uint8_t proto, const uint8_t *ip)
{
	return memcmp(key, ip + 12, 12) == 0 && proto == ip[9];
}

static CV_INLINE void put_ipv4(const uint8_t *before_key, uint8_t *ip)
{
	memcpy(ip + 12, before_key + 8, 4);
	memcpy(ip + 16, before_key + 4, 4);
	memcpy(ip + CV_IPV4_LEN, before_key + 14, 2);
	memcpy(ip + CV_IPV4_LEN + 2, before_key + 12, 2);
}
#endif

static CV_INLINE bool has_key_ipv6(struct cv_flow *flow, unsigned direction, const uint8_t *ip)
{
	return memcmp(cv_flow_stored(flow, direction, true), ip + 8, 36) == 0 &&
	       flow->proto == ip[6];
}

static CV_INLINE void rewrite_checksum(uint8_t *l4, uint32_t delta, uint8_t proto)
{
	const uint32_t udp = is_udp(proto);
	uint8_t *at = l4 + 16 - (size_t)10 * udp;
	const uint32_t old = cv_load_be16(at);
	// As cv_flow_checksum(); of the two zeros that ones' complement has, UDP is written the one of ones.
	const uint32_t next = old - delta - (old < delta + udp);
	const uint32_t none =
		(uint32_t)((int32_t)(old - udp) >> 31); // all bits where it was 0: it stays so
	const uint16_t new = (uint16_t)(next & ~none);

	memcpy(at, &new, 2);
}

// Four bytes before the key of a packet's answers.
static CV_INLINE const uint8_t *before_answer(struct cv_flow *flow, unsigned direction)
{
	const size_t back = -(size_t)direction & CV_FLOW_STORED_BYTES(false);

	return cv_flow_stored(flow, CV_FLOW_REPLY, false) - 4 - back;
}

// before_key: where the key of the packet's answers is, and four bytes before it. Behind it may be what a
// follower has just written: a load of that and of what was there before would wait.
static CV_INLINE void rewrite_ipv4(
	const struct cv_flow *flow, const uint8_t *before_key, unsigned direction, uint8_t *ip)
{
	rte_be16_t header;

	put_ipv4(before_key, ip);
	header = cv_flow_checksum(cv_load_be16(ip + 10), cv_flow_delta(flow->ip_delta, direction));
	memcpy(ip + 10, &header, 2);
	rewrite_checksum(ip + CV_IPV4_LEN, cv_flow_delta(flow->l4_delta, direction), flow->proto);
}

static CV_INLINE void rewrite_common(struct cv_flow *flow, unsigned direction, uint8_t *ip, bool v6)
{
	uint8_t *l4 = ip + CV_IPV6_LEN;

	if (!v6) {
		rewrite_ipv4(flow, before_answer(flow, direction), direction, ip);
		return;
	}
	cv_flow_put_addresses(flow, direction, true, ip);
	cv_flow_put_ports(flow, direction, true, l4);
	rewrite_checksum(l4, cv_flow_delta(flow->l4_delta, direction), flow->proto);
}

#endif
