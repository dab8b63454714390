// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Compiled for processors with AVX-512, VAES and VPCLMULQDQ only. The arithmetic is that of NIST SP 800-38D
// with bytes reversed, so that a block is a number: keys of GHASH are multiplied by x once, so that products
// need no shift (Gueron and Kounavis, Intel's white paper on carry-less multiplication and GCM).
#include <immintrin.h>

#include <rte_common.h>

#include "nf/vpn/cipher.h"

#define AT_ONCE 4
#define FIRST_BYTES 48 // of a packet, in its first row: the first block makes the tag

static CV_INLINE __m128i poly(void)
{
	return _mm_set_epi64x((long long)UINT64_C(0xc200000000000000), 1);
}

static CV_INLINE __m128i reversed_bytes(void)
{
	return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

static CV_INLINE __m128i block_at(const void *at)
{
	return _mm_loadu_si128(at);
}

// A product of numbers of 128 bits: 256 bits, in three parts that overlap.
struct product {
	__m512i low, middle, high;
};

static CV_INLINE struct product multiply(__m512i a, __m512i b)
{
	return (struct product){
		.low = _mm512_clmulepi64_epi128(a, b, 0x00),
		.middle = _mm512_xor_si512(
			_mm512_clmulepi64_epi128(a, b, 0x01), _mm512_clmulepi64_epi128(a, b, 0x10)),
		.high = _mm512_clmulepi64_epi128(a, b, 0x11),
	};
}

static CV_INLINE struct product sum(struct product a, struct product b)
{
	return (struct product){
		.low = _mm512_xor_si512(a.low, b.low),
		.middle = _mm512_xor_si512(a.middle, b.middle),
		.high = _mm512_xor_si512(a.high, b.high),
	};
}

// Half of the number, exchanged, and its lower half times the polynomial's upper one.
static CV_INLINE __m512i fold(__m512i number)
{
	return _mm512_xor_si512(_mm512_shuffle_epi32(number, _MM_PERM_BADC),
		_mm512_clmulepi64_epi128(_mm512_broadcast_i32x4(poly()), number, 0x01));
}

static CV_INLINE __m512i reduce(struct product product)
{
	return _mm512_xor_si512(
		product.high, fold(_mm512_xor_si512(product.middle, fold(product.low))));
}

static CV_INLINE __m128i encrypt_block(__m128i block, const uint8_t *expanded, unsigned rounds)
{
	block = _mm_xor_si128(block, block_at(expanded));
	for (unsigned i = 1; i < rounds; i++)
		block = _mm_aesenc_si128(block, block_at(expanded + (size_t)16 * i));
	return _mm_aesenclast_si128(block, block_at(expanded + (size_t)16 * rounds));
}

static __m128i times_x(__m128i number)
{
	const __m128i carry = _mm_srai_epi32(_mm_shuffle_epi32(number, 0xff), 31);
	const __m128i across = _mm_slli_si128(_mm_srli_epi64(number, 63), 8);

	return _mm_xor_si128(
		_mm_or_si128(_mm_slli_epi64(number, 1), across), _mm_and_si128(carry, poly()));
}

void cv_gcm_rows_make(struct cv_gcm_rows *rows, const uint8_t *expanded, unsigned rounds)
{
	const __m128i zeros = encrypt_block(_mm_setzero_si128(), expanded, rounds);
	const __m512i first =
		_mm512_castsi128_si512(times_x(_mm_shuffle_epi8(zeros, reversed_bytes())));
	__m512i power = first;

	memset(rows, 0, sizeof(*rows));
	rows->rounds = rounds;
	for (unsigned i = CV_GCM_ROWS_POWERS; i-- > 0;) {
		_mm_storeu_si128((__m128i *)rows->power[i], _mm512_castsi512_si128(power));
		power = reduce(multiply(power, first));
	}
}

static CV_INLINE void encrypt_rows(__m512i row[AT_ONCE], const uint8_t *expanded, unsigned rounds)
{
	__m512i key = _mm512_broadcast_i32x4(block_at(expanded));

	for (unsigned i = 0; i < AT_ONCE; i++)
		row[i] = _mm512_xor_si512(row[i], key);
	for (unsigned round = 1; round < rounds; round++) {
		key = _mm512_broadcast_i32x4(block_at(expanded + (size_t)16 * round));
		for (unsigned i = 0; i < AT_ONCE; i++)
			row[i] = _mm512_aesenc_epi128(row[i], key);
	}
	key = _mm512_broadcast_i32x4(block_at(expanded + (size_t)16 * rounds));
	for (unsigned i = 0; i < AT_ONCE; i++)
		row[i] = _mm512_aesenclast_epi128(row[i], key);
}

// Counters of four blocks, from `first` on, at their places behind a nonce.
static CV_INLINE __m512i counters(int first)
{
	const __m512i host = _mm512_set_epi32(
		first + 3, 0, 0, 0, first + 2, 0, 0, 0, first + 1, 0, 0, 0, first, 0, 0, 0);

	return _mm512_shuffle_epi8(host, _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9,
						 10, 11, 4, 5, 6, 7, 0, 1, 2, 3)));
}

// The first `left` bytes of a row, if it has so many.
static CV_INLINE __mmask64 first_bytes(int left)
{
	return left >= 64 ? ~(__mmask64)0 : left <= 0 ? 0 : ((__mmask64)1 << left) - 1;
}

// Encrypts or decrypts what a mask says of a row. Returns the cipher's text, and zeros elsewhere.
static CV_INLINE __m512i cross(uint8_t *at, __mmask64 mask, __m512i stream, bool encrypts)
{
	const __m512i from = _mm512_maskz_loadu_epi8(mask, at);
	const __m512i to = _mm512_maskz_mov_epi8(mask, _mm512_xor_si512(from, stream));

	_mm512_mask_storeu_epi8(at, mask, to);
	return encrypts ? to : from;
}

// Of four numbers the sums of their four lanes, one beside the other.
static CV_INLINE __m512i sum_lanes(__m512i a, __m512i b, __m512i c, __m512i d)
{
	const __m512i ab = _mm512_xor_si512(
		_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
	const __m512i cd = _mm512_xor_si512(
		_mm512_shuffle_i64x2(c, d, 0x44), _mm512_shuffle_i64x2(c, d, 0xee));

	return _mm512_xor_si512(
		_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xdd));
}

static CV_INLINE struct product sum_rows(const struct product row[AT_ONCE])
{
	return (struct product){
		.low = sum_lanes(row[0].low, row[1].low, row[2].low, row[3].low),
		.middle = sum_lanes(row[0].middle, row[1].middle, row[2].middle, row[3].middle),
		.high = sum_lanes(row[0].high, row[1].high, row[2].high, row[3].high),
	};
}

static CV_INLINE void run(const struct cv_gcm_rows *rows, const uint8_t *expanded, bool encrypts,
	const struct cv_cipher_packet *packet, unsigned n, uint32_t with_len)
{
	const __m512i reversed = _mm512_broadcast_i32x4(reversed_bytes());
	const struct cv_cipher_packet *of[AT_ONCE]; // the last one again where there are fewer
	struct product hash[AT_ONCE];
	__m512i row[AT_ONCE], nonce[AT_ONCE], lengths, tags;
	__m128i tag[AT_ONCE], last[AT_ONCE];
	const uint8_t *power[AT_ONCE];
	int left[AT_ONCE], most = 0; // bytes

	for (unsigned i = 0; i < AT_ONCE; i++) {
		of[i] = &packet[i < n ? i : n - 1];
		left[i] = i < n ? (int)of[i]->len : 0;
		most = RTE_MAX(most, left[i]);
		power[i] = rows->power[CV_GCM_ROWS_POWERS - 2 - (of[i]->len + 15) / 16];
		nonce[i] = _mm512_broadcast_i32x4(block_at(of[i]->nonce));
		row[i] = _mm512_or_si512(nonce[i], counters(1));
	}
	encrypt_rows(row, expanded, rows->rounds);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		const __mmask64 mask = first_bytes(RTE_MIN(left[i], FIRST_BYTES)) << 16;
		const __m512i text = _mm512_inserti32x4(
			cross(of[i]->data - 16, mask, row[i], encrypts), block_at(of[i]->with), 0);

		last[i] = _mm512_castsi512_si128(row[i]);
		hash[i] =
			multiply(_mm512_shuffle_epi8(text, reversed), _mm512_loadu_si512(power[i]));
	}
	for (int done = FIRST_BYTES; done < most; done += 64) {
		for (unsigned i = 0; i < AT_ONCE; i++)
			row[i] = _mm512_or_si512(nonce[i], counters(2 + done / 16));
		encrypt_rows(row, expanded, rows->rounds);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			const __mmask64 mask = first_bytes(left[i] - done);
			const __m512i text = cross(of[i]->data + done, mask, row[i], encrypts);
			// A shorter packet has no such powers.
			const __m512i powers = _mm512_maskz_loadu_epi64(
				mask != 0 ? 0xff : 0, power[i] + 16 + done);

			hash[i] =
				sum(hash[i], multiply(_mm512_shuffle_epi8(text, reversed), powers));
		}
	}
	lengths = _mm512_set_epi64(with_len * 8, of[3]->len * 8, with_len * 8, of[2]->len * 8,
		with_len * 8, of[1]->len * 8, with_len * 8, of[0]->len * 8);
	tags = reduce(sum(sum_rows(hash),
		multiply(lengths,
			_mm512_broadcast_i32x4(block_at(rows->power[CV_GCM_ROWS_POWERS - 1])))));
	tags = _mm512_shuffle_epi8(tags, reversed);
	tag[0] = _mm512_castsi512_si128(tags);
	tag[1] = _mm512_extracti32x4_epi32(tags, 1);
	tag[2] = _mm512_extracti32x4_epi32(tags, 2);
	tag[3] = _mm512_extracti32x4_epi32(tags, 3);
	for (unsigned i = 0; i < n; i++)
		_mm_storeu_si128((__m128i *)of[i]->tag, _mm_xor_si128(tag[i], last[i]));
}

static CV_INLINE void run_all(const struct cv_gcm_rows *rows, const uint8_t *expanded,
	bool encrypts, const struct cv_cipher_packet *packet, unsigned n, uint32_t with_len)
{
	for (; n >= AT_ONCE; n -= AT_ONCE, packet += AT_ONCE)
		run(rows, expanded, encrypts, packet, AT_ONCE, with_len);
	if (n > 0)
		run(rows, expanded, encrypts, packet, n, with_len);
}

void cv_gcm_rows_run(const struct cv_gcm_rows *rows, const uint8_t *expanded, bool encrypts,
	const struct cv_cipher_packet *packet, unsigned n, uint32_t with_len)
{
	if (encrypts)
		run_all(rows, expanded, true, packet, n, with_len);
	else
		run_all(rows, expanded, false, packet, n, with_len);
}
