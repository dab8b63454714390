// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A copy of packets, most of which are short: neither a byte read nor one written too many.
#ifndef CV_VRING_COPY_H
#define CV_VRING_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"

// Bytes from which the C library's memcpy() saves more than its call costs.
#define CV_VRING_LONG 256

static CV_INLINE void cv_vring_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t at = 32;

	if (CV_UNLIKELY(bytes < 32 || bytes >= CV_VRING_LONG)) {
		memcpy(to, from, bytes);
		return;
	}
	// Whole blocks, and one more that ends where the packet does.
	memcpy(to, from, 32);
	for (; CV_UNLIKELY(at + 32 < bytes); at += 32)
		memcpy(to + at, from + at, 32);
	memcpy(to + bytes - 32, from + bytes - 32, 32);
}

// Packets ahead whose lines are asked for where packets are read. Where they are written one is
// enough: the lines of a second cost more than they save.
#define CV_VRING_AHEAD 3

// Asks for the lines of a packet but its first, which cv_vring_fetch() has asked for. They are the
// guest's: without that, no more of them come at once than stores or loads are under way. The guest
// may say any length: of a very long packet the first lines will do.
static CV_INLINE void cv_vring_prefetch_rest(const uint8_t *data, uint32_t bytes, bool write)
{
	const uint32_t end = bytes < 4096 ? bytes : 4096;

	for (uint32_t at = 64; CV_UNLIKELY(at < end); at += 64) {
		if (write)
			CV_PREFETCH_WRITE(data + at);
		else
			__builtin_prefetch(data + at);
	}
}

#endif
