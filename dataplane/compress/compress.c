// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"

struct cv_compressor {
	struct cv_dictionary *dictionary;
	unsigned workers;
	struct cv_codec *codecs[]; // a worker's own
};

bool cv_compress_exists(void)
{
	return cv_codec_bytes() > 0;
}

// CRC-32 as in IEEE 802.3, zlib.crc32() in Python.
static uint32_t crc32(const uint8_t *bytes, uint32_t len)
{
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

struct cv_dictionary *cv_dictionary_make(const uint8_t *bytes, uint32_t len)
{
	struct cv_dictionary *dictionary = malloc(sizeof(*dictionary) + len);

	if (dictionary == NULL)
		return NULL;
	*dictionary = (struct cv_dictionary){.len = len, .holders = 1};
	if (len > 0) {
		memcpy(dictionary->bytes, bytes, len);
		dictionary->id = crc32(bytes, len);
		dictionary->id += dictionary->id == 0;
	}
	return dictionary;
}

struct cv_dictionary *cv_dictionary_hold(struct cv_dictionary *dictionary)
{
	if (dictionary != NULL)
		dictionary->holders++;
	return dictionary;
}

void cv_dictionary_release(struct cv_dictionary *dictionary)
{
	if (dictionary != NULL && --dictionary->holders == 0)
		free(dictionary);
}

void cv_compressor_free(struct cv_compressor *compressor)
{
	for (unsigned i = 0; compressor != NULL && i < compressor->workers; i++)
		free(compressor->codecs[i]);
	if (compressor != NULL)
		cv_dictionary_release(compressor->dictionary);
	free(compressor);
}

struct cv_compressor *cv_compressor_make(struct cv_dictionary *dictionary, unsigned workers)
{
	struct cv_compressor *compressor =
		calloc(1, sizeof(*compressor) + workers * sizeof(compressor->codecs[0]));

	if (compressor == NULL)
		return NULL;
	compressor->dictionary = cv_dictionary_hold(dictionary);
	compressor->workers = workers;
	for (unsigned i = 0; i < workers; i++) {
		compressor->codecs[i] = cv_compress_exists() ? calloc(1, cv_codec_bytes()) : NULL;
		if (compressor->codecs[i] == NULL) {
			cv_compressor_free(compressor);
			return NULL;
		}
	}
	return compressor;
}

uint32_t cv_compress(struct cv_compressor *compressor, unsigned worker, uint8_t *run, uint32_t len)
{
	const struct cv_dictionary *dictionary = compressor->dictionary;
	const struct cv_convoy_compression header = {
		.codec = CV_CONVOY_LZ4,
		.bytes = rte_cpu_to_be_16((uint16_t)len),
		.dictionary = rte_cpu_to_be_32(dictionary->id),
	};
	const uint8_t *block;
	uint32_t made;

	if (CV_UNLIKELY(len <= sizeof(header) + 1))
		return 0;
	made = cv_codec_compress(compressor->codecs[worker], dictionary, run, len,
		len - (uint32_t)sizeof(header) - 1, &block);
	if (made == 0)
		return 0;
	memcpy(run, &header, sizeof(header));
	memcpy(run + sizeof(header), block, made);
	return (uint32_t)sizeof(header) + made;
}
