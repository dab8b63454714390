// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// SHA-256 (FIPS 180-4), and HMAC by it (RFC 2104). For few bytes now and then: no speed is sought.
#ifndef CV_OF_SHA256_H
#define CV_OF_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define CV_SHA256_BYTES 32

// The authentication code of two pieces, one behind the other. key: at most 64 bytes.
void cv_hmac_sha256(const uint8_t *key, size_t key_bytes, const uint8_t *a, size_t a_bytes,
	const uint8_t *b, size_t b_bytes, uint8_t code[CV_SHA256_BYTES]);

#endif
