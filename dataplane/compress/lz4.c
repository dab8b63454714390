// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <lz4.h>

#include "compress/codec.h"
#include "compress/encoder.h"
#include "packet/compiler.h"

// The dictionary stands right before what is compressed: matches into it then cost no more than
// others do, for either encoder.
struct cv_codec {
	bool loaded;
	struct cv_encoder_index index; // of the dictionary
	LZ4_stream_t ready; // knows the dictionary
	LZ4_stream_t now; // a copy, of which one frame makes use
	uint8_t bytes[CV_DICTIONARY_MAX + UINT16_MAX + CV_ENCODER_SLACK];
	uint8_t block[CV_ENCODER_MOST(UINT16_MAX)];
};

size_t cv_codec_bytes(void)
{
	return sizeof(struct cv_codec);
}

static CV_NOINLINE void load(struct cv_codec *codec, const struct cv_dictionary *dictionary)
{
	memcpy(codec->bytes, dictionary->bytes, dictionary->len);
#ifdef __SSE4_2__
	cv_encoder_index(&codec->index, codec->bytes, dictionary->len);
#endif
	LZ4_initStream(&codec->ready, sizeof(codec->ready));
	LZ4_loadDict(&codec->ready, (const char *)codec->bytes, (int)dictionary->len);
	codec->loaded = true;
}

// Returns 0 where it would be more than room.
static CV_INLINE uint32_t encode(
	struct cv_codec *codec, uint32_t known, uint32_t len, uint32_t room)
{
	const uint8_t *run = codec->bytes + known;

#ifdef __SSE4_2__
	if (CV_LIKELY(cv_encoder_suits(run, len))) {
		const uint32_t made =
			cv_encoder_run(&codec->index, codec->bytes, known, len, codec->block);

		return made <= room ? made : 0;
	}
#endif
	codec->now = codec->ready;
	return (uint32_t)LZ4_compress_fast_continue(
		&codec->now, (const char *)run, (char *)codec->block, (int)len, (int)room, 1);
}

uint32_t cv_codec_compress(struct cv_codec *codec, const struct cv_dictionary *dictionary,
	const uint8_t *run, uint32_t len, uint32_t room, const uint8_t **block)
{
	if (CV_UNLIKELY(!codec->loaded))
		load(codec, dictionary);
	memcpy(codec->bytes + dictionary->len, run, len);
	*block = codec->block;
	return encode(codec, dictionary->len, len, room);
}

// A length that begins with 4 bits of a token.
static CV_INLINE uint32_t length_of(uint32_t nibble, const uint8_t **at, const uint8_t *end)
{
	uint32_t len = nibble;
	uint8_t more = 255;

	while (CV_UNLIKELY(nibble == 15) && more == 255 && *at < end)
		len += more = *(*at)++;
	return len;
}

// LZ4 takes an offset of 0, and then leaves in the output what was there: bytes of other packets.
static bool has_offset_zero(const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		const uint8_t token = *at++;
		const uint32_t literals = length_of(token >> 4, &at, end);

		if ((uint32_t)(end - at) < literals + 2)
			return false; // the last sequence, or cut
		at += literals;
		if ((at[0] | at[1]) == 0)
			return true;
		at += 2;
		length_of(token & 15, &at, end);
	}
	return false;
}

bool cv_codec_expand(const struct cv_dictionary *dictionary, const uint8_t *block, uint32_t bytes,
	uint8_t *to, uint32_t len)
{
	if (CV_UNLIKELY(has_offset_zero(block, block + bytes)))
		return false;
	return LZ4_decompress_safe_usingDict((const char *)block, (char *)to, (int)bytes, (int)len,
		       (const char *)dictionary->bytes, (int)dictionary->len) == (int)len;
}
