// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The codec behind compress.h: an LZ4 block with a dictionary.
#ifndef CV_COMPRESS_CODEC_H
#define CV_COMPRESS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compress/compress.h"

// One worker's, for one dictionary. Zeroed, it is ready.
struct cv_codec;

// 0: there is no codec in this program.
size_t cv_codec_bytes(void);

// Compresses len <= UINT16_MAX bytes; returns a block of at most room bytes that is valid until the
// next call, and its length. 0: it takes more.
uint32_t cv_codec_compress(struct cv_codec *codec, const struct cv_dictionary *dictionary,
	const uint8_t *run, uint32_t len, uint32_t room, const uint8_t **block);

// Expands a block to exactly len bytes. False: it does not expand to that.
bool cv_codec_expand(const struct cv_dictionary *dictionary, const uint8_t *block, uint32_t bytes,
	uint8_t *to, uint32_t len);

#endif
