// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Eight IPv4 headers at once where there is AVX2: ipv4_x4.h's shortcut, twice in a vector. The
// lower half of each vector is the first four packets', the upper half the last four's.
#ifndef CV_IPV4_X8_H
#define CV_IPV4_X8_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/ipv4_x4.h"

#ifdef __AVX2__
#include <immintrin.h>

static CV_INLINE __m256i cv_load_x8(const void *low, const void *high)
{
	return _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
		_mm_loadu_si128((const __m128i *)high), 1);
}

// Both 16-bit halves of each word, less 32,768 each (pmaddwd's numbers have signs), added.
static CV_INLINE __m256i cv_halves_x8(__m256i words)
{
	return _mm256_madd_epi16(
		_mm256_xor_si256(words, _mm256_set1_epi16((short)0x8000)), _mm256_set1_epi16(1));
}

// What cv_ipv4_hop_x4() says of four packets and does to them, of eight.
static CV_INLINE bool cv_ipv4_hop_x8(
	const struct cv_view *view, const struct cv_mac_match *match, uint32_t *destination)
{
	const __m256i byte = _mm256_set1_epi32(0xff), half = _mm256_set1_epi32(0xffff);
	const __m256i total_bytes = _mm256_broadcastsi128_si256(
		_mm_set_epi8(-1, -1, 14, 15, -1, -1, 10, 11, -1, -1, 6, 7, -1, -1, 2, 3));
	const __m256i swap = _mm256_broadcastsi128_si256(
		_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
	__m256i x[4], a, b, from, to, word[3], room, total, sum, firsts, odd, hop;
	struct cv_ipv4 *ip[8];
	uint32_t last[8];
	uint64_t mac, begins, differs = 0;

	for (int i = 0; i < 4; i++)
		x[i] = cv_load_x8(&view[i], &view[i + 4]);
	a = _mm256_unpackhi_epi32(x[0], x[1]); // len and l3, proto in out: two of each
	b = _mm256_unpackhi_epi32(x[2], x[3]);
	room = _mm256_unpacklo_epi64(a, b);
	room = _mm256_sub_epi32(
		_mm256_and_si256(room, half), _mm256_and_si256(_mm256_srli_epi32(room, 16), byte));
	odd = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(CV_IPV4_LEN), room),
		_mm256_xor_si256(
			_mm256_and_si256(_mm256_unpackhi_epi64(a, b), _mm256_set1_epi32(0xffffff)),
			_mm256_set1_epi32(CV_PROTO_IPV4 | view->in << 16)));
	if (CV_UNLIKELY(!_mm256_testz_si256(odd, odd)))
		return false;

	mac = match[view->in].mac;
	for (int i = 0; i < 8; i++) {
		ip[i] = (struct cv_ipv4 *)(view[i].data + view[i].l3);
		memcpy(&begins, view[i].data, sizeof(begins));
		differs |= begins ^ mac;
	}
	for (int i = 0; i < 4; i++)
		x[i] = cv_load_x8(ip[i], ip[i + 4]);
	a = _mm256_unpacklo_epi32(x[0], x[1]);
	b = _mm256_unpacklo_epi32(x[2], x[3]);
	word[0] = _mm256_unpacklo_epi64(a, b);
	word[1] = _mm256_unpackhi_epi64(a, b);
	word[2] = _mm256_unpacklo_epi64(
		_mm256_unpackhi_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[2], x[3]));
	for (int i = 0; i < 4; i++) // the header's last 16 bytes, which end with the addresses
		x[i] = cv_load_x8((const uint8_t *)ip[i] + 4, (const uint8_t *)ip[i + 4] + 4);
	a = _mm256_unpackhi_epi32(x[0], x[1]);
	b = _mm256_unpackhi_epi32(x[2], x[3]);
	from = _mm256_unpacklo_epi64(a, b);
	to = _mm256_unpackhi_epi64(a, b);

	// Version and header length; total length against both ends; TTL.
	odd = _mm256_xor_si256(_mm256_and_si256(word[0], byte), _mm256_set1_epi32(0x45));
	total = _mm256_shuffle_epi8(word[0], total_bytes);
	odd = _mm256_or_si256(odd, _mm256_cmpgt_epi32(_mm256_set1_epi32(CV_IPV4_LEN), total));
	odd = _mm256_or_si256(odd, _mm256_cmpgt_epi32(total, room));
	odd = _mm256_or_si256(
		odd, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), _mm256_and_si256(word[2], byte)));

	// The first bytes of both addresses, beside two that are good: 1 to 223 but 127.
	firsts = _mm256_or_si256(
		_mm256_and_si256(from, byte), _mm256_slli_epi32(_mm256_and_si256(to, byte), 8));
	firsts = _mm256_or_si256(firsts, _mm256_set1_epi32(0x01010000));
	odd = _mm256_or_si256(odd, _mm256_cmpeq_epi8(firsts, _mm256_set1_epi8(127)));
	firsts = _mm256_sub_epi8(firsts, _mm256_set1_epi8(1));
	odd = _mm256_or_si256(odd, _mm256_subs_epu8(firsts, _mm256_set1_epi8((char)222)));

	// Ten 16-bit words: up to ten times 0xffff. Folded once, a good sum is 0xffff.
	sum = _mm256_add_epi32(cv_halves_x8(word[0]), cv_halves_x8(word[1]));
	sum = _mm256_add_epi32(sum, _mm256_add_epi32(cv_halves_x8(word[2]), cv_halves_x8(from)));
	sum = _mm256_add_epi32(sum, cv_halves_x8(to));
	sum = _mm256_add_epi32(sum, _mm256_set1_epi32(10 * 0x8000));
	sum = _mm256_add_epi32(_mm256_and_si256(sum, half), _mm256_srli_epi32(sum, 16));
	odd = _mm256_or_si256(odd, _mm256_xor_si256(sum, half));
	if (CV_UNLIKELY(!_mm256_testz_si256(odd, odd) || (differs & match[view->in].mask) != 0))
		return false;

	// As cv_ipv4_ttl_decrement: 0xffff more, and 0x10000 again where the checksum wraps.
	hop = _mm256_cmpeq_epi32(
		_mm256_max_epu32(word[2], _mm256_set1_epi32((int)0xfffe0000)), word[2]);
	hop = _mm256_add_epi32(_mm256_and_si256(hop, _mm256_set1_epi32(0x10000)), half);
	hop = _mm256_add_epi32(word[2], hop);
	_mm256_storeu_si256((__m256i *)last, hop);
	for (int i = 0; i < 8; i++)
		memcpy(&ip[i]->ttl, &last[i], 4);
	_mm256_storeu_si256((__m256i *)destination, _mm256_shuffle_epi8(to, swap));
	return true;
}

#else

static CV_INLINE bool cv_ipv4_hop_x8(
	const struct cv_view *view, const struct cv_mac_match *match, uint32_t *destination)
{
	return false;
}

#endif
#endif
