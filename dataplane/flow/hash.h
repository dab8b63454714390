// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The keyed hash of flows: who does not know the secret cannot make packets whose flows collide.
// Four rounds of AES where the processor has them: no differential of four rounds with independent
// keys holds with a probability above 2^-113 (Keliher and Sui 2007). Else SipHash-1-3.
#ifndef CV_FLOW_HASH_H
#define CV_FLOW_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef __AES__
#include <wmmintrin.h>
#endif

struct cv_flow_secret {
	uint8_t keys[5][16];
	bool aes; // which of the two
} __attribute__((aligned(16)));

// A new one from the system's random numbers. Returns 0 or -errno.
int cv_flow_secret_make(struct cv_flow_secret *secret);

// Whether another process's secret is for the same hash as this one: `aes` may be any byte there.
static inline bool cv_flow_secret_is_alike(
	const struct cv_flow_secret *secret, const struct cv_flow_secret *other)
{
	return memcmp(&secret->aes, &other->aes, sizeof(other->aes)) == 0;
}

// Writes a key of 16 bytes in one piece: a hash that reads what several stores wrote waits for them.
static CV_INLINE void cv_flow_key_write(
	void *key, uint32_t first, uint32_t second, uint16_t third, uint16_t fourth, uint8_t fifth)
{
	const uint64_t low = first | (uint64_t)second << 32;
	const uint64_t high = third | (uint64_t)fourth << 16 | (uint64_t)fifth << 32;
#ifdef __SSE2__
	_mm_storeu_si128((__m128i *)key, _mm_set_epi64x((long long)high, (long long)low));
#else
	memcpy(key, &low, 8);
	memcpy((uint8_t *)key + 8, &high, 8);
#endif
}

// The hash of 16 or 40 bytes, by the secret's method.
uint64_t cv_flow_hash(const struct cv_flow_secret *secret, const void *key, size_t bytes);

// Only where the processor has AES.
uint64_t cv_flow_hash_aes(const struct cv_flow_secret *secret, const void *key, size_t bytes);

#ifdef __AES__
static CV_INLINE __m128i cv_flow_aes_rounds(const struct cv_flow_secret *secret, __m128i x)
{
	const __m128i *keys = (const __m128i *)secret->keys;

	for (int i = 1; i < 5; i++)
		x = _mm_aesenc_si128(x, _mm_load_si128(&keys[i]));
	return x;
}

static CV_INLINE uint64_t cv_flow_aes(
	const struct cv_flow_secret *secret, const void *key, size_t bytes)
{
	__m128i x = _mm_load_si128((const __m128i *)secret->keys);
	const uint8_t *at = key;

	for (; bytes >= 16; at += 16, bytes -= 16)
		x = cv_flow_aes_rounds(
			secret, _mm_xor_si128(x, _mm_loadu_si128((const __m128i *)at)));
	if (bytes > 0)
		x = cv_flow_aes_rounds(
			secret, _mm_xor_si128(x, _mm_loadl_epi64((const __m128i *)at)));
	return (uint64_t)_mm_cvtsi128_si64(x);
}
#endif

static CV_INLINE uint64_t cv_flow_rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static CV_INLINE void cv_flow_sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = cv_flow_rotate(v[1], 13) ^ v[0];
	v[0] = cv_flow_rotate(v[0], 32);
	v[2] += v[3];
	v[3] = cv_flow_rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = cv_flow_rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = cv_flow_rotate(v[1], 17) ^ v[2];
	v[2] = cv_flow_rotate(v[2], 32);
}

// SipHash-1-3 of a multiple of 8 bytes.
static CV_INLINE uint64_t cv_flow_sip(
	const struct cv_flow_secret *secret, const void *key, size_t bytes)
{
	uint64_t k[2], word, v[4];

	memcpy(k, secret->keys, sizeof(k));
	v[0] = k[0] ^ 0x736f6d6570736575;
	v[1] = k[1] ^ 0x646f72616e646f6d;
	v[2] = k[0] ^ 0x6c7967656e657261;
	v[3] = k[1] ^ 0x7465646279746573;
	for (size_t i = 0; i <= bytes; i += 8) {
		word = (uint64_t)bytes << 56;
		if (i < bytes)
			memcpy(&word, (const uint8_t *)key + i, 8);
		v[3] ^= word;
		cv_flow_sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		cv_flow_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
