// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AES-GCM by libipsec-mb's direct calls (RFC 4106): one packet, no job. The library chooses what this
// processor does best. Short packets of a burst go four at once (gcm_rows.h).
#ifndef CV_VPN_CIPHER_H
#define CV_VPN_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#include "nf/vpn/gcm_rows.h"
#include "packet/compiler.h"

#define CV_GCM_SALT_LEN 4
#define CV_GCM_IV_LEN 8 // in the packet
#define CV_GCM_NONCE_LEN (CV_GCM_SALT_LEN + CV_GCM_IV_LEN)
#define CV_CIPHER_ROOM 16 // for a nonce, or for what is authenticated beside a packet
#define CV_GCM_TAG_LEN 16
#define CV_GCM_KEY_MAX 32

// A key, ready to be used in one direction.
struct cv_cipher {
	struct gcm_key_data schedule;
	aes_gcm_enc_dec_t run;
	bool encrypts;
	struct cv_gcm_rows rows;
};

// What is encrypted or decrypted where it lies, and the tag that this makes.
struct cv_cipher_packet {
	uint8_t *data, *tag;
	uint32_t len; // bytes
	uint8_t nonce[CV_CIPHER_ROOM]; // zeros behind it
	uint8_t with[CV_CIPHER_ROOM]; // authenticated beside it; zeros behind it
};

// Makes it of a key of 16 or 32 bytes. False: the library is of no use here.
bool cv_cipher_make(struct cv_cipher *cipher, const uint8_t *key, size_t len, bool encrypts);

// Writes up to 16 bytes at once, as the library reads them: it would wait for several writes to leave the store
// buffer.
static CV_INLINE void cv_cipher_put(uint8_t to[CV_CIPHER_ROOM], uint64_t first, uint64_t last)
{
	typedef uint64_t pair __attribute__((vector_size(16), aligned(1), may_alias));

	*(pair *)to = (pair){first, last};
}

// The nonce of a salt and an IV, as they lie in memory.
static CV_INLINE void cv_cipher_nonce(uint8_t nonce[CV_CIPHER_ROOM], uint32_t salt, uint64_t iv)
{
	cv_cipher_put(nonce, iv << 32 | salt, iv >> 32);
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

// The same for n packets, with so many bytes authenticated beside each.
void cv_cipher_run_many(const struct cv_cipher *cipher, const struct cv_cipher_packet *packet,
	uint16_t n, uint32_t with_len);

// Compares tags in a time that says nothing of where they differ.
static CV_INLINE bool cv_cipher_same_tag(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

#endif
