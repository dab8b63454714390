// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <string.h>

#include "daemon/plan_dictionary.h"

const char *const cv_plan_codecs[] = {"off", "lz4", NULL};

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

// Base64 (RFC 4648 section 4, padded). Returns how many bytes, or -1: it is not that.
static int decode(const char *text, size_t len, uint8_t *to)
{
	size_t padding = len > 0 && text[len - 1] == '=' ? (text[len - 2] == '=' ? 2 : 1) : 0;
	uint32_t bits = 0;
	uint8_t *at = to;

	if (len == 0 || len % 4 != 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		int digit = i < len - padding ? digit_of(text[i]) : 0;

		if (digit < 0)
			return -1;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4 == 3) {
			*at++ = (uint8_t)(bits >> 16);
			*at++ = (uint8_t)(bits >> 8);
			*at++ = (uint8_t)bits;
		}
	}
	return (int)(at - to - (int)padding);
}

int cv_plan_dictionary_read(
	const struct cv_where *at, const char *key, const json_t *value, void *dictionary)
{
	uint8_t bytes[CV_DICTIONARY_MAX + 2];
	size_t len = json_string_length(value);
	int count =
		len <= (sizeof(bytes) / 3) * 4 ? decode(json_string_value(value), len, bytes) : -1;
	struct cv_dictionary **to = dictionary;

	if (!json_is_string(value) || count < 1 || count > CV_DICTIONARY_MAX)
		return cv_where_error(at, "%s%smust be 1 to %d bytes in base64", key,
			key[0] != '\0' ? ": " : "", CV_DICTIONARY_MAX);
	*to = cv_dictionary_make(bytes, (uint32_t)count);
	if (*to != NULL)
		return 0;
	cv_where_error(at, "out of memory");
	return -ENOMEM;
}

int cv_plan_dictionary_add(
	const struct cv_where *at, const char *key, const json_t *value, void *expander)
{
	struct cv_expander *to = expander;
	int rc = cv_plan_dictionary_read(at, key, value, &to->dictionaries[to->dictionaries_count]);

	to->dictionaries_count += rc == 0;
	return rc;
}

static int check_built(const struct cv_where *at, const char *key)
{
	if (cv_compress_exists())
		return 0;
	return cv_where_error(
		at, "%s: lz4: convoyd was built without LZ4; build it with liblz4-dev", key);
}

int cv_plan_compress_set(
	const struct cv_where *at, enum cv_plan_codec codec, struct cv_dictionary **dictionary)
{
	if (codec == CV_PLAN_CODEC_OFF)
		return *dictionary == NULL
			       ? 0
			       : cv_where_error(at, "dictionary: is for compress: lz4; add that");
	if (check_built(at, "compress") != 0)
		return -EINVAL;
	if (*dictionary == NULL)
		*dictionary = cv_dictionary_make(NULL, 0);
	return *dictionary != NULL ? 0 : -ENOMEM;
}

int cv_plan_expander_set(
	const struct cv_where *at, enum cv_plan_codec codec, struct cv_expander *expander)
{
	if (codec == CV_PLAN_CODEC_OFF)
		return expander->dictionaries_count == 0
			       ? 0
			       : cv_where_error(at, "dictionaries: are for expand: lz4; add that");
	if (check_built(at, "expand") != 0)
		return -EINVAL;
	// Frames without a dictionary are taken as well.
	expander->dictionaries[expander->dictionaries_count] = cv_dictionary_make(NULL, 0);
	if (expander->dictionaries[expander->dictionaries_count] == NULL)
		return -ENOMEM;
	expander->dictionaries_count++;
	expander->on = true;
	return 0;
}
