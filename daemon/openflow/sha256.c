// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/sha256.h"

#include <string.h>

#include "daemon/openflow/wire.h"

#define BLOCK 64u
#define ROUNDS 64u

// Fractions of the cube roots of the first 64 primes (4.2.2).
static const uint32_t constants[ROUNDS] = {
	0x428a2f98,
	0x71374491,
	0xb5c0fbcf,
	0xe9b5dba5,
	0x3956c25b,
	0x59f111f1,
	0x923f82a4,
	0xab1c5ed5,
	0xd807aa98,
	0x12835b01,
	0x243185be,
	0x550c7dc3,
	0x72be5d74,
	0x80deb1fe,
	0x9bdc06a7,
	0xc19bf174,
	0xe49b69c1,
	0xefbe4786,
	0x0fc19dc6,
	0x240ca1cc,
	0x2de92c6f,
	0x4a7484aa,
	0x5cb0a9dc,
	0x76f988da,
	0x983e5152,
	0xa831c66d,
	0xb00327c8,
	0xbf597fc7,
	0xc6e00bf3,
	0xd5a79147,
	0x06ca6351,
	0x14292967,
	0x27b70a85,
	0x2e1b2138,
	0x4d2c6dfc,
	0x53380d13,
	0x650a7354,
	0x766a0abb,
	0x81c2c92e,
	0x92722c85,
	0xa2bfe8a1,
	0xa81a664b,
	0xc24b8b70,
	0xc76c51a3,
	0xd192e819,
	0xd6990624,
	0xf40e3585,
	0x106aa070,
	0x19a4c116,
	0x1e376c08,
	0x2748774c,
	0x34b0bcb5,
	0x391c0cb3,
	0x4ed8aa4a,
	0x5b9cca4f,
	0x682e6ff3,
	0x748f82ee,
	0x78a5636f,
	0x84c87814,
	0x8cc70208,
	0x90befffa,
	0xa4506ceb,
	0xbef9a3f7,
	0xc67178f2,
};

struct sha256 {
	uint32_t state[8];
	uint8_t block[BLOCK];
	uint64_t bytes;
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word >> bits | word << (32 - bits);
}

static void compress(struct sha256 *sha)
{
	uint32_t schedule[ROUNDS], v[8];

	for (unsigned i = 0; i < 16; i++)
		schedule[i] = cv_of_get32(sha->block + 4 * (size_t)i);
	for (unsigned i = 16; i < ROUNDS; i++) {
		const uint32_t a = schedule[i - 15], b = schedule[i - 2];

		schedule[i] = schedule[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
			      schedule[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
	memcpy(v, sha->state, sizeof(v));
	for (unsigned i = 0; i < ROUNDS; i++) {
		const uint32_t one = v[7] +
				     (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
				     ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + schedule[i];
		const uint32_t two = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
				     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (unsigned i = 0; i < 8; i++)
		sha->state[i] += v[i];
}

static void begin(struct sha256 *sha)
{
	// Fractions of the square roots of the first eight primes (5.3.3).
	static const uint32_t first[8] = {
		0x6a09e667,
		0xbb67ae85,
		0x3c6ef372,
		0xa54ff53a,
		0x510e527f,
		0x9b05688c,
		0x1f83d9ab,
		0x5be0cd19,
	};

	memcpy(sha->state, first, sizeof(first));
	sha->bytes = 0;
}

static void add(struct sha256 *sha, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		sha->block[sha->bytes++ % BLOCK] = data[i];
		if (sha->bytes % BLOCK == 0)
			compress(sha);
	}
}

static void end(struct sha256 *sha, uint8_t digest[CV_SHA256_BYTES])
{
	const uint64_t bits = 8 * sha->bytes;
	uint8_t length[8];

	add(sha, (const uint8_t[]){0x80}, 1);
	while (sha->bytes % BLOCK != BLOCK - sizeof(length))
		add(sha, (const uint8_t[]){0}, 1);
	cv_of_put64(length, bits);
	add(sha, length, sizeof(length));
	for (unsigned i = 0; i < 8; i++)
		cv_of_put32(digest + 4 * (size_t)i, sha->state[i]);
}

void cv_hmac_sha256(const uint8_t *key, size_t key_bytes, const uint8_t *a, size_t a_bytes,
	const uint8_t *b, size_t b_bytes, uint8_t code[CV_SHA256_BYTES])
{
	uint8_t inner[BLOCK] = {0}, outer[BLOCK];
	struct sha256 sha;

	memcpy(inner, key, key_bytes);
	memcpy(outer, inner, sizeof(outer));
	for (unsigned i = 0; i < BLOCK; i++) {
		inner[i] ^= 0x36;
		outer[i] ^= 0x5c;
	}
	begin(&sha);
	add(&sha, inner, sizeof(inner));
	add(&sha, a, a_bytes);
	add(&sha, b, b_bytes);
	end(&sha, code);
	begin(&sha);
	add(&sha, outer, sizeof(outer));
	add(&sha, code, CV_SHA256_BYTES);
	end(&sha, code);
}
