// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AES-GCM by libipsec-mb's direct calls (RFC 4106): one packet, no job. The library chooses what this
// processor does best.
#ifndef CV_VPN_CIPHER_H
#define CV_VPN_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#include "packet/compiler.h"

#define CV_GCM_SALT_LEN 4
#define CV_GCM_IV_LEN 8 // in the packet
#define CV_GCM_NONCE_LEN (CV_GCM_SALT_LEN + CV_GCM_IV_LEN)
#define CV_GCM_TAG_LEN 16
#define CV_GCM_KEY_MAX 32

// A key, ready to be used in one direction.
struct cv_cipher {
	struct gcm_key_data schedule;
	aes_gcm_enc_dec_t run;
};

// Makes it of a key of 16 or 32 bytes. False: the library is of no use here.
bool cv_cipher_make(struct cv_cipher *cipher, const uint8_t *key, size_t len, bool encrypts);

// The nonce of a salt and an IV, as they lie in memory: 8 bytes and 4, as the library reads them.
static CV_INLINE void cv_cipher_nonce(uint8_t nonce[CV_GCM_NONCE_LEN], uint32_t salt, uint64_t iv)
{
	const uint64_t first = iv << 32 | salt;
	const uint32_t last = (uint32_t)(iv >> 32);

	memcpy(nonce, &first, sizeof(first));
	memcpy(nonce + sizeof(first), &last, sizeof(last));
}

// Encrypts, or decrypts, len bytes where they lie, and writes their tag.
static CV_INLINE void cv_cipher_run(const struct cv_cipher *cipher, uint8_t *data, uint32_t len,
	const uint8_t nonce[CV_GCM_NONCE_LEN], const uint8_t *with, uint32_t with_len,
	uint8_t tag[CV_GCM_TAG_LEN])
{
	struct gcm_context_data context;

	cipher->run(&cipher->schedule, &context, data, data, len, nonce, with, with_len, tag,
		CV_GCM_TAG_LEN);
}

// Compares tags in a time that says nothing of where they differ.
static CV_INLINE bool cv_cipher_same_tag(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

#endif
