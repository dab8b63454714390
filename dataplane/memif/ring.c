// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "memif/ring.h"

#include <string.h>

#include "memif/slot.h"

void cv_memif_ring_make(struct cv_memif_ring *ring)
{
	memset(ring->shared, 0, (size_t)cv_memif_ring_bytes(ring->size));
	ring->shared->cookie = CV_MEMIF_COOKIE;
	ring->next = 0;
	for (uint16_t i = 0; i < ring->size; i++) {
		const struct cv_memif_slot empty = {.len = ring->buffer_bytes,
			.offset = ring->buffers_offset + i * ring->stride};

		cv_memif_write(ring, i, true, &empty);
	}
}

void cv_memif_ring_begin(struct cv_memif_ring *ring)
{
	ring->next = 0;
	ring->seen = ring->client && ring->to_server ? ring->size : 0;
	__atomic_store_n(&ring->broken, false, __ATOMIC_RELAXED);
	// We look by ourselves.
	if (ring->client != ring->to_server)
		__atomic_store_n(&ring->shared->flags, CV_MEMIF_MASK_INTERRUPT, __ATOMIC_RELAXED);
	cv_memif_advance(ring, 0, ring->client);
}

uint16_t cv_memif_ready(struct cv_memif_ring *ring)
{
	return ring->broken ? 0 : cv_memif_available(ring, ring->size, ring->client);
}
