// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests: bytes as pairs of hexadecimal digits.
#ifndef CV_TEST_HEX_H
#define CV_TEST_HEX_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The bytes, in memory of their own size, so that a read behind them is found by the sanitizer.
// The caller frees them. NULL: not hexadecimal.
static inline uint8_t *hex_bytes(const char *text, size_t *len)
{
	size_t n = strlen(text);
	uint8_t *bytes = malloc(n / 2 + (n < 2));

	*len = n / 2;
	for (size_t i = 0; i < n / 2; i++) {
		unsigned value;

		if (sscanf(text + 2 * i, "%2x", &value) != 1) {
			free(bytes);
			return NULL;
		}
		bytes[i] = (uint8_t)value;
	}
	return bytes;
}

#endif
