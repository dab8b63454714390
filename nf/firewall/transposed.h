// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The tuples of a burst, transposed (structure of arrays): a row holds the same 16 bits of every
// packet, so that one vector comparison covers as many packets as it has lanes.
//
// A tuple's 16-bit words as they lie in memory (entry.h) are the rows, without the second,
// which is always 0: the class, the addresses in network order, the ports in host order. Behind them,
// where rules ask for some, are the fields.
#ifndef CV_FIREWALL_TRANSPOSED_H
#define CV_FIREWALL_TRANSPOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/entry.h"
#include "packet/ipv4.h"
#include "packet/tuple.h"
#include "packet/view.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#define CV_FIREWALL_ROW(word) ((word) == 0 ? 0 : (word)-1) // of the word-th 16 bits, not 1
#define CV_FIREWALL_FIELD_ROW(field) (2 * CV_FIREWALL_IPV6_WORDS - 1 + (field))
#define CV_FIREWALL_ROWS CV_FIREWALL_FIELD_ROW(CV_FIREWALL_FIELDS)

struct cv_firewall_transposed {
	uint16_t word[CV_FIREWALL_ROWS][CV_FIREWALL_LOOKUP_MAX] __attribute__((aligned(64)));
};

// The classes of packets with their ports there (table.c): of protocol 6, of 17.
#define CV_FIREWALL_CLASS_TCP 0
#define CV_FIREWALL_CLASS_UDP 2

#ifdef __SSE4_1__

// Transposes eight times eight 16-bit words.
static CV_INLINE void cv_firewall_transpose_x8(__m128i x[8])
{
	__m128i a[8], b[8];

	for (int i = 0; i < 4; i++) {
		a[i] = _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
		a[i + 4] = _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
	}
	for (int i = 0; i < 8; i += 4) {
		b[i] = _mm_unpacklo_epi32(a[i], a[i + 1]);
		b[i + 1] = _mm_unpacklo_epi32(a[i + 2], a[i + 3]);
		b[i + 2] = _mm_unpackhi_epi32(a[i], a[i + 1]);
		b[i + 3] = _mm_unpackhi_epi32(a[i + 2], a[i + 3]);
	}
	for (int i = 0; i < 8; i += 2) {
		x[i] = _mm_unpacklo_epi64(b[i], b[i + 1]);
		x[i + 1] = _mm_unpackhi_epi64(b[i], b[i + 1]);
	}
}

static CV_INLINE __m128i cv_firewall_swap_x8(__m128i x)
{
	return _mm_shuffle_epi8(
		x, _mm_set_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
}

static CV_INLINE void cv_firewall_row_set(
	struct cv_firewall_transposed *transposed, unsigned row, unsigned at, __m128i x)
{
	_mm_storeu_si128((__m128i *)&transposed->word[row][at], x);
}

// Are eight packets all of the common case: IPv4, a header of 20 bytes whose
// lengths are right, no fragment, TCP or UDP. If so, ip shows their headers, and word has the
// 16-bit words of these from the ninth byte on: TTL and protocol, checksum, then as in a tuple.
static CV_INLINE bool cv_firewall_are_common_x8(
	const struct cv_view *view, const uint8_t *ip[8], __m128i word[8])
{
	// Bytes up to the end of the ports: no more of a packet is read.
	const __m128i least = _mm_set1_epi16(CV_IPV4_LEN + 4);
	const __m128i byte = _mm_set1_epi16(0xff);
	__m128i x[8], room, total, odd, udp, proto;

	for (int i = 0; i < 8; i++)
		x[i] = _mm_loadu_si128((const __m128i *)&view[i]);
	cv_firewall_transpose_x8(x); // x[4]: len, x[5]: l3 and before, x[6]: proto
	room = _mm_sub_epi16(x[4], _mm_and_si128(x[5], byte)); // l3 <= len
	odd = _mm_or_si128(_mm_subs_epu16(least, room),
		_mm_xor_si128(x[6], _mm_set1_epi16((short)CV_PROTO_IPV4)));
	if (CV_UNLIKELY(!_mm_testz_si128(odd, odd)))
		return false;

	for (int i = 0; i < 8; i++) {
		ip[i] = view[i].data + view[i].l3;
		x[i] = _mm_loadl_epi64((const __m128i *)ip[i]);
	}
	cv_firewall_transpose_x8(
		x); // x[0]: version and header length, x[1]: total length, x[3]: fragment
	odd = _mm_xor_si128(_mm_and_si128(x[0], byte), _mm_set1_epi16(0x45));
	total = cv_firewall_swap_x8(x[1]);
	odd = _mm_or_si128(odd, _mm_subs_epu16(least, total));
	odd = _mm_or_si128(odd, _mm_subs_epu16(total, room));
	odd = _mm_or_si128(
		odd, _mm_and_si128(x[3], _mm_set1_epi16((short)(CV_IPV4_MF | CV_IPV4_OFFSET))));

	for (int i = 0; i < 8; i++)
		word[i] = _mm_loadu_si128((const __m128i *)(ip[i] + 8));
	cv_firewall_transpose_x8(word);
	proto = _mm_srli_epi16(word[0], 8);
	udp = _mm_cmpeq_epi16(proto, _mm_set1_epi16(IPPROTO_UDP));
	odd = _mm_or_si128(
		odd, _mm_andnot_si128(udp, _mm_xor_si128(proto, _mm_set1_epi16(IPPROTO_TCP))));
	return CV_LIKELY(_mm_testz_si128(odd, odd));
}

// Fast path: the tuples of eight common packets, classified, as the rows' elements from at on.
// False: not all are common; the rows are not valid for them, and the caller reads them one by one.
// Never differs from cv_tuple_ipv4().
static CV_INLINE bool cv_firewall_common_x8(
	const struct cv_view *view, struct cv_firewall_transposed *transposed, unsigned at)
{
	const uint8_t *ip[8];
	__m128i word[8], udp;

	if (CV_UNLIKELY(!cv_firewall_are_common_x8(view, ip, word)))
		return false;
	udp = _mm_cmpeq_epi16(_mm_srli_epi16(word[0], 8), _mm_set1_epi16(IPPROTO_UDP));
	cv_firewall_row_set(
		transposed, 0, at, _mm_and_si128(udp, _mm_set1_epi16(CV_FIREWALL_CLASS_UDP)));
	for (unsigned i = 2; i < 8; i++)
		cv_firewall_row_set(transposed, CV_FIREWALL_ROW(i), at,
			i < 6 ? word[i] : cv_firewall_swap_x8(word[i]));
	return true;
}

// The same, as tuples.
static CV_INLINE bool cv_firewall_common_tuples_x8(
	const struct cv_view *view, struct cv_tuple_ipv4 tuple[8])
{
	const __m128i is_udp = _mm_cvtsi32_si128(IPPROTO_UDP << 8);
	const __m128i class_udp = _mm_cvtsi32_si128(CV_FIREWALL_CLASS_UDP);
	const __m128i rest = _mm_set_epi32(-1, -1, -1, 0);
	const uint8_t *ip[8];
	__m128i word[8];

	if (CV_UNLIKELY(!cv_firewall_are_common_x8(view, ip, word)))
		return false;
	for (int i = 0; i < 8; i++) {
		__m128i x = _mm_loadu_si128((const __m128i *)(ip[i] + 8));
		__m128i udp = _mm_srli_si128(_mm_cmpeq_epi8(x, is_udp), 1);

		x = _mm_or_si128(_mm_and_si128(x, rest), _mm_and_si128(udp, class_udp));
		_mm_storeu_si128((__m128i *)&tuple[i], x);
	}
	return true;
}

// Eight tuples of words 32-bit words each become the rows' elements from at on.
static CV_INLINE void cv_firewall_transpose_tuples_x8(
	const void *tuple, unsigned words, struct cv_firewall_transposed *transposed, unsigned at)
{
	const unsigned halves = 2 * words;

	for (unsigned first = 0; first < halves; first += 8) {
		unsigned from = first + 8 <= halves ? first : halves - 8; // whole vectors
		__m128i x[8];

		for (unsigned i = 0; i < 8; i++)
			x[i] = _mm_loadu_si128((const __m128i *)((const uint8_t *)tuple +
								 i * words * 4 + from * 2));
		cv_firewall_transpose_x8(x);
		for (unsigned k = first - from; k < 8; k++) {
			unsigned word = from + k;

			if (word != 1)
				cv_firewall_row_set(transposed, CV_FIREWALL_ROW(word), at,
					word < halves - 2 ? x[k] : cv_firewall_swap_x8(x[k]));
		}
	}
}

#else

static CV_INLINE bool cv_firewall_common_x8(
	const struct cv_view *view, struct cv_firewall_transposed *transposed, unsigned at)
{
	return false;
}

static CV_INLINE bool cv_firewall_common_tuples_x8(
	const struct cv_view *view, struct cv_tuple_ipv4 tuple[8])
{
	return false;
}

static CV_INLINE void cv_firewall_transpose_tuples_x8(
	const void *tuple, unsigned words, struct cv_firewall_transposed *transposed, unsigned at)
{
	const uint16_t *half = tuple;

	for (unsigned i = 0; i < 8; i++, half += 2 * words) {
		transposed->word[0][at + i] = half[0];
		for (unsigned k = 2; k < 2 * words; k++)
			transposed->word[CV_FIREWALL_ROW(k)][at + i] =
				k < 2 * words - 2 ? half[k] : rte_be_to_cpu_16(half[k]);
	}
}

#endif
#endif
