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

#define CV_SAME_X8(word)                                               \
	{                                                              \
		{                                                      \
			word, word, word, word, word, word, word, word \
		}                                                      \
	}

// Vectors of one number each.
static const struct cv_ipv4_x8 {
	union cv_word_x8 {
		uint32_t word[8];
		__m256i v;
	} byte, half, l3, header_len, ihl, ttl_least, firsts, loopback, good, sign, one, bias,
		wraps, total_bytes, swap;
} cv_ipv4_x8 = {
	.byte = CV_SAME_X8(0xff),
	.half = CV_SAME_X8(0xffff),
	.l3 = CV_SAME_X8(0xff0000),
	.header_len = CV_SAME_X8(CV_IPV4_LEN),
	.ihl = CV_SAME_X8(0x45),
	.ttl_least = CV_SAME_X8(2),
	.firsts = CV_SAME_X8(0x01010000),
	.loopback = CV_SAME_X8(0x7f7f7f7f),
	.good = CV_SAME_X8(0xdededede),
	.sign = CV_SAME_X8(0x80008000),
	.one = CV_SAME_X8(0x00010001),
	.bias = CV_SAME_X8(10 * 0x8000),
	.wraps = CV_SAME_X8(0xfffe0000),
	// Of the first word its last two bytes, swapped; all four bytes, swapped.
	.total_bytes = {{0xffff0203, 0xffff0607, 0xffff0a0b, 0xffff0e0f, 0xffff0203, 0xffff0607,
		0xffff0a0b, 0xffff0e0f}},
	.swap = {{0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f, 0x00010203, 0x04050607,
		0x08090a0b, 0x0c0d0e0f}},
};

// Both 16-bit halves of each word, less 32,768 each (pmaddwd's numbers have signs), added.
static CV_INLINE __m256i cv_halves_x8(__m256i words, const struct cv_ipv4_x8 *k)
{
	return _mm256_madd_epi16(_mm256_xor_si256(words, k->sign.v), k->one.v);
}

// What cv_ipv4_hop_x4() says of four packets and does to them, of eight whose headers begin at one
// offset: it is no register for each.
static CV_INLINE bool cv_ipv4_hop_x8(const struct cv_view *view, const struct cv_mac_match *match,
	uint32_t *destination, uint32_t *longest)
{
	const struct cv_ipv4_x8 *k = &cv_ipv4_x8;
	__m256i x[4], a, b, from, to, word[3], room, total, sum, firsts, odd, hop;
	const unsigned l3 = view->l3;
	uint8_t *data[8];
	uint32_t last[8];
	uint64_t begins, any = 0, all = UINT64_MAX;

	// The compiler is not to know the numbers: it would make each anew, in three instructions,
	// for want of registers, where one memory operand will do.
	__asm__("" : "+r"(k));
	for (int i = 0; i < 4; i++)
		x[i] = cv_load_x8(&view[i], &view[i + 4]);
	a = _mm256_unpackhi_epi32(x[0], x[1]); // len and l3, proto in out: two of each
	b = _mm256_unpackhi_epi32(x[2], x[3]);
	word[0] = _mm256_unpacklo_epi64(a, b);
	room = _mm256_sub_epi32(_mm256_and_si256(word[0], k->half.v), _mm256_set1_epi32((int)l3));
	odd = _mm256_xor_si256(
		_mm256_and_si256(word[0], k->l3.v), _mm256_set1_epi32((int)l3 << 16));
	odd = _mm256_or_si256(odd, _mm256_cmpgt_epi32(k->header_len.v, room));
	odd = _mm256_or_si256(
		odd, _mm256_xor_si256(_mm256_slli_epi32(_mm256_unpackhi_epi64(a, b), 8),
			     _mm256_set1_epi32((CV_PROTO_IPV4 | view->in << 16) << 8)));
	if (CV_UNLIKELY(!_mm256_testz_si256(odd, odd)))
		return false;

	for (int i = 0; i < 8; i++) {
		data[i] = view[i].data;
		memcpy(&begins, data[i], sizeof(begins));
		any |= begins;
		all &= begins;
	}
	for (int i = 0; i < 4; i++)
		x[i] = cv_load_x8(data[i] + l3, data[i + 4] + l3);
	a = _mm256_unpacklo_epi32(x[0], x[1]);
	b = _mm256_unpacklo_epi32(x[2], x[3]);
	word[0] = _mm256_unpacklo_epi64(a, b);
	word[1] = _mm256_unpackhi_epi64(a, b);
	word[2] = _mm256_unpacklo_epi64(
		_mm256_unpackhi_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[2], x[3]));
	for (int i = 0; i < 4; i++) // the header's last 16 bytes, which end with the addresses
		x[i] = cv_load_x8(data[i] + l3 + 4, data[i + 4] + l3 + 4);
	a = _mm256_unpackhi_epi32(x[0], x[1]);
	b = _mm256_unpackhi_epi32(x[2], x[3]);
	from = _mm256_unpacklo_epi64(a, b);
	to = _mm256_unpackhi_epi64(a, b);

	// Version and header length; total length against both ends; TTL.
	odd = _mm256_xor_si256(_mm256_and_si256(word[0], k->byte.v), k->ihl.v);
	total = _mm256_shuffle_epi8(word[0], k->total_bytes.v);
	odd = _mm256_or_si256(odd, _mm256_cmpgt_epi32(k->header_len.v, total));
	odd = _mm256_or_si256(odd, _mm256_cmpgt_epi32(total, room));
	odd = _mm256_or_si256(
		odd, _mm256_cmpgt_epi32(k->ttl_least.v, _mm256_and_si256(word[2], k->byte.v)));

	// The first bytes of both addresses, beside two that are good: 1 to 223 but 127.
	firsts = _mm256_or_si256(_mm256_and_si256(from, k->byte.v),
		_mm256_slli_epi32(_mm256_and_si256(to, k->byte.v), 8));
	firsts = _mm256_or_si256(firsts, k->firsts.v);
	odd = _mm256_or_si256(odd, _mm256_cmpeq_epi8(firsts, k->loopback.v));
	firsts = _mm256_sub_epi8(firsts, _mm256_set1_epi8(1));
	odd = _mm256_or_si256(odd, _mm256_subs_epu8(firsts, k->good.v));

	// Ten 16-bit words: up to ten times 0xffff. Folded once, a good sum is 0xffff.
	sum = _mm256_add_epi32(cv_halves_x8(word[0], k), cv_halves_x8(word[1], k));
	sum = _mm256_add_epi32(
		sum, _mm256_add_epi32(cv_halves_x8(word[2], k), cv_halves_x8(from, k)));
	sum = _mm256_add_epi32(sum, cv_halves_x8(to, k));
	sum = _mm256_add_epi32(sum, k->bias.v);
	sum = _mm256_add_epi32(_mm256_and_si256(sum, k->half.v), _mm256_srli_epi32(sum, 16));
	odd = _mm256_or_si256(odd, _mm256_xor_si256(sum, k->half.v));
	if (CV_UNLIKELY(!_mm256_testz_si256(odd, odd) || cv_mac_differ(&match[view->in], any, all)))
		return false;

	// As cv_ipv4_ttl_decrement: 0xffff more, and 0x10000 again where the checksum wraps.
	hop = _mm256_cmpeq_epi32(_mm256_max_epu32(word[2], k->wraps.v), word[2]);
	hop = _mm256_sub_epi32(k->half.v, _mm256_slli_epi32(hop, 16));
	hop = _mm256_add_epi32(word[2], hop);
	_mm256_storeu_si256((__m256i *)last, hop);
	for (int i = 0; i < 8; i++)
		memcpy(data[i] + l3 + offsetof(struct cv_ipv4, ttl), &last[i], 4);
	_mm256_storeu_si256((__m256i *)destination, _mm256_shuffle_epi8(to, k->swap.v));
	cv_ipv4_longest(longest, _mm256_castsi256_si128(room), _mm256_extracti128_si256(room, 1));
	return true;
}

#else

static CV_INLINE bool cv_ipv4_hop_x8(const struct cv_view *view, const struct cv_mac_match *match,
	uint32_t *destination, uint32_t *longest)
{
	return false;
}

#endif
#endif
