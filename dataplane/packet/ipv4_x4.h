// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Four IPv4 headers at once, for the case that nearly all packets are: no options, nothing wrong.
// The headers are transposed, so that each vector holds the same word of the four.
//
// What is not such a case, and every packet on machines without SSE4.1, is the caller's to validate
// one by one: this is a shortcut, never another opinion.
#ifndef CV_IPV4_X4_H
#define CV_IPV4_X4_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/view.h"

#ifdef __SSE4_1__
#include <smmintrin.h>

// The word at offset of each of four headers; x has 16 bytes of each.
static CV_INLINE void cv_transpose_x4(__m128i x[4])
{
	__m128i low01 = _mm_unpacklo_epi32(x[0], x[1]), low23 = _mm_unpacklo_epi32(x[2], x[3]);
	__m128i high01 = _mm_unpackhi_epi32(x[0], x[1]), high23 = _mm_unpackhi_epi32(x[2], x[3]);

	x[0] = _mm_unpacklo_epi64(low01, low23);
	x[1] = _mm_unpackhi_epi64(low01, low23);
	x[2] = _mm_unpacklo_epi64(high01, high23);
	x[3] = _mm_unpackhi_epi64(high01, high23);
}

// Both 16-bit halves of each word, less 32,768 each (pmaddwd's numbers have signs), added.
static CV_INLINE __m128i cv_halves_x4(__m128i words)
{
	return _mm_madd_epi16(
		_mm_xor_si128(words, _mm_set1_epi16((short)0x8000)), _mm_set1_epi16(1));
}

// Raises longest to the greatest of eight numbers of 16 bits each.
static CV_INLINE void cv_ipv4_longest(uint32_t *longest, __m128i low, __m128i high)
{
	const __m128i ones = _mm_set1_epi16(-1);
	__m128i least = _mm_minpos_epu16(_mm_xor_si128(_mm_packus_epi32(low, high), ones));
	uint32_t greatest = (uint16_t)~_mm_extract_epi16(least, 0);

	if (*longest < greatest)
		*longest = greatest;
}

// Says whether four packets are all IPv4 with a sound header of 20 bytes, a TTL above 1, addresses
// that are no martians, came in by one port, and match what is taken in from it (match has one for
// each port). If so, takes one from their TTLs, gives their destinations, in host order, and raises
// longest to the bytes that the longest has from its header on. If not, changes nothing.
static CV_INLINE bool cv_ipv4_hop_x4(const struct cv_view *view, const struct cv_mac_match *match,
	uint32_t *destination, uint32_t *longest)
{
	const __m128i byte = _mm_set1_epi32(0xff), half = _mm_set1_epi32(0xffff);
	const __m128i total_bytes =
		_mm_set_epi8(-1, -1, 14, 15, -1, -1, 10, 11, -1, -1, 6, 7, -1, -1, 2, 3);
	const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
	__m128i word[4], to, room, total, sum, firsts, odd, hop;
	struct cv_ipv4 *ip[4];
	uint32_t last[4];
	uint64_t begins, any = 0, all = UINT64_MAX;

	for (int i = 0; i < 4; i++)
		word[i] = _mm_loadu_si128((const __m128i *)&view[i]);
	cv_transpose_x4(word); // word[2]: len, l3, before; word[3]: proto, in, out
	room = _mm_sub_epi32(
		_mm_and_si128(word[2], half), _mm_and_si128(_mm_srli_epi32(word[2], 16), byte));
	odd = _mm_or_si128(_mm_cmpgt_epi32(_mm_set1_epi32(CV_IPV4_LEN), room),
		_mm_xor_si128(_mm_and_si128(word[3], _mm_set1_epi32(0xffffff)),
			_mm_set1_epi32(CV_PROTO_IPV4 | view->in << 16)));
	if (CV_UNLIKELY(!_mm_testz_si128(odd, odd)))
		return false;

	for (int i = 0; i < 4; i++) {
		ip[i] = (struct cv_ipv4 *)(view[i].data + view[i].l3);
		memcpy(&begins, view[i].data, sizeof(begins));
		any |= begins;
		all &= begins;
		word[i] = _mm_loadu_si128((const __m128i *)ip[i]);
		memcpy(&last[i], &ip[i]->dst, 4);
	}
	cv_transpose_x4(word);
	to = _mm_set_epi32((int)last[3], (int)last[2], (int)last[1], (int)last[0]);

	// Version and header length; total length against both ends; TTL.
	odd = _mm_xor_si128(_mm_and_si128(word[0], byte), _mm_set1_epi32(0x45));
	total = _mm_shuffle_epi8(word[0], total_bytes);
	odd = _mm_or_si128(odd, _mm_cmpgt_epi32(_mm_set1_epi32(CV_IPV4_LEN), total));
	odd = _mm_or_si128(odd, _mm_cmpgt_epi32(total, room));
	odd = _mm_or_si128(odd, _mm_cmpgt_epi32(_mm_set1_epi32(2), _mm_and_si128(word[2], byte)));

	// The first bytes of both addresses, beside two that are good: 1 to 223 but 127.
	firsts = _mm_or_si128(
		_mm_and_si128(word[3], byte), _mm_slli_epi32(_mm_and_si128(to, byte), 8));
	firsts = _mm_or_si128(firsts, _mm_set1_epi32(0x01010000));
	odd = _mm_or_si128(odd, _mm_cmpeq_epi8(firsts, _mm_set1_epi8(127)));
	firsts = _mm_sub_epi8(firsts, _mm_set1_epi8(1));
	odd = _mm_or_si128(odd, _mm_subs_epu8(firsts, _mm_set1_epi8((char)222)));

	// Ten 16-bit words: up to ten times 0xffff. Folded once, a good sum is 0xffff.
	sum = _mm_add_epi32(cv_halves_x4(word[0]), cv_halves_x4(word[1]));
	sum = _mm_add_epi32(sum, _mm_add_epi32(cv_halves_x4(word[2]), cv_halves_x4(word[3])));
	sum = _mm_add_epi32(sum, cv_halves_x4(to));
	sum = _mm_add_epi32(sum, _mm_set1_epi32(10 * 0x8000));
	sum = _mm_add_epi32(_mm_and_si128(sum, half), _mm_srli_epi32(sum, 16));
	odd = _mm_or_si128(odd, _mm_xor_si128(sum, half));
	if (CV_UNLIKELY(!_mm_testz_si128(odd, odd) || cv_mac_differ(&match[view->in], any, all)))
		return false;

	// As cv_ipv4_ttl_decrement: 0xffff more, and 0x10000 again where the checksum wraps.
	hop = _mm_cmpeq_epi32(_mm_max_epu32(word[2], _mm_set1_epi32((int)0xfffe0000)), word[2]);
	hop = _mm_add_epi32(_mm_and_si128(hop, _mm_set1_epi32(0x10000)), half);
	hop = _mm_add_epi32(word[2], hop);
	_mm_storeu_si128((__m128i *)last, hop);
	for (int i = 0; i < 4; i++)
		memcpy(&ip[i]->ttl, &last[i], 4);
	_mm_storeu_si128((__m128i *)destination, _mm_shuffle_epi8(to, swap));
	cv_ipv4_longest(longest, room, room);
	return true;
}

#else

static CV_INLINE bool cv_ipv4_hop_x4(const struct cv_view *view, const struct cv_mac_match *match,
	uint32_t *destination, uint32_t *longest)
{
	return false;
}

#endif
#endif
