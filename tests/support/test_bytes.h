// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests of headers: packets as hexadecimal text, compared byte by byte.
#ifndef CV_TEST_BYTES_H
#define CV_TEST_BYTES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Bytes in memory of their own exact size; free() them.
static inline uint8_t *bytes_make(const char *hex, uint16_t *len)
{
	uint8_t *bytes;
	unsigned byte;

	*len = (uint16_t)(strlen(hex) / 2);
	bytes = malloc(*len + !*len);
	assert_non_null(bytes);
	for (unsigned i = 0; i < *len; i++) {
		assert_int_equal(sscanf(hex + 2ul * i, "%2x", &byte), 1);
		bytes[i] = (uint8_t)byte;
	}
	return bytes;
}

static inline void bytes_expect(
	const char *name, const uint8_t *bytes, uint16_t len, const char *hex)
{
	uint16_t want_len;
	uint8_t *want = bytes_make(hex, &want_len);

	if (len != want_len)
		fail_msg("%s: %u bytes, not %u", name, len, want_len);
	for (uint16_t i = 0; i < len; i++)
		if (bytes[i] != want[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, bytes[i], want[i]);
	free(want);
}

#endif
