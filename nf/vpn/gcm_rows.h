// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AES-GCM of short packets, four at once (docs/decisions/short-packets-cipher.md). One packet alone is too
// short to keep the units for AES and for carry-less products busy: libipsec-mb, which takes packets one by
// one, waits for both. Here a packet is rows of four blocks, the first of which makes the tag, as wide as a
// register of AVX-512, and a step of the cipher is done to rows of four packets before the next one.
#ifndef CV_VPN_GCM_ROWS_H
#define CV_VPN_GCM_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define CV_GCM_ROWS_MAX \
	240u // bytes of a packet: four rows; one of more keeps the units busy by itself
#define CV_GCM_ROWS_POWERS \
	17u // blocks of a packet, and of what is authenticated beside it, and their lengths

struct cv_cipher_packet;

// A key as the rows need it.
struct cv_gcm_rows {
	unsigned rounds; // of AES; 0: rows are not for this processor
	// Powers of the key of GHASH, the highest first. What is read behind the last is multiplied by zero.
	uint8_t power[CV_GCM_ROWS_POWERS + 3][16];
};

// Makes powers of an expanded key, as FIPS 197 has it, of so many rounds.
void cv_gcm_rows_make(struct cv_gcm_rows *rows, const uint8_t *expanded, unsigned rounds);

// Encrypts or decrypts n packets, of 1 to CV_GCM_ROWS_MAX bytes each. All else is as cv_cipher_run_many()
// has it.
void cv_gcm_rows_run(const struct cv_gcm_rows *rows, const uint8_t *expanded, bool encrypts,
	const struct cv_cipher_packet *packet, unsigned n, uint32_t with_len);

#endif
