// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where liblz4-dev is missing: compressed convoys are refused in the configuration.
#include "compress/codec.h"

size_t cv_codec_bytes(void)
{
	return 0;
}

uint32_t cv_codec_compress(struct cv_codec *codec, const struct cv_dictionary *dictionary,
	const uint8_t *run, uint32_t len, uint32_t room, const uint8_t **block)
{
	return 0;
}

bool cv_codec_expand(const struct cv_dictionary *dictionary, const uint8_t *block, uint32_t bytes,
	uint8_t *to, uint32_t len)
{
	return false;
}
