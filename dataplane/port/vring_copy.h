// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A copy of packets, which are short: no call, and neither a byte read nor one written too many.
#ifndef CV_VRING_COPY_H
#define CV_VRING_COPY_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"

static CV_INLINE void cv_vring_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t at = 32;

	if (CV_UNLIKELY(bytes < 32)) {
		memcpy(to, from, bytes);
		return;
	}
	// Whole blocks, and one more that ends where the packet does.
	memcpy(to, from, 32);
	for (; CV_UNLIKELY(at + 32 < bytes); at += 32)
		memcpy(to + at, from + at, 32);
	memcpy(to + bytes - 32, from + bytes - 32, 32);
}

#endif
