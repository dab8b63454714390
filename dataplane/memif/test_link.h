// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Both ends of one ring over a piece of memory, for tests and the bench: what a peer may do to it is
// done to the memory by hand.
#ifndef CV_TEST_LINK_H
#define CV_TEST_LINK_H

#include <stdlib.h>
#include <string.h>

#include "memif/ring.h"

struct link {
	uint8_t *memory;
	struct cv_memif_regions regions; // as the server has them
	struct cv_memif_shared *shared;
	struct cv_memif_ring client, server;
	struct cv_memif_ring *from, *to; // of the two, who puts and who takes
};

// Every buffer lies stride bytes behind the one before; the last ends where the memory does.
static inline void link_begin(
	struct link *link, uint16_t size, uint32_t buffer_bytes, uint32_t stride, bool to_server)
{
	const uint64_t ring_bytes = cv_memif_ring_bytes(size);
	const uint64_t bytes = ring_bytes + (uint64_t)(size - 1) * stride + buffer_bytes;

	*link = (struct link){.memory = aligned_alloc(64, (bytes + 63) & ~63ull)};
	link->memory = realloc(link->memory, bytes); // to the byte, for sanitizers
	link->regions = (struct cv_memif_regions){1, {{link->memory, bytes}}};
	link->shared = (struct cv_memif_shared *)(void *)link->memory;
	link->client = (struct cv_memif_ring){.shared = link->shared,
		.size = size,
		.client = true,
		.to_server = to_server,
		.buffers = link->memory + ring_bytes,
		.stride = stride,
		.buffer_bytes = buffer_bytes,
		.buffers_offset = (uint32_t)ring_bytes};
	link->server = (struct cv_memif_ring){.shared = link->shared,
		.size = size,
		.to_server = to_server,
		.regions = &link->regions};
	link->from = to_server ? &link->client : &link->server;
	link->to = to_server ? &link->server : &link->client;
	cv_memif_ring_make(&link->client);
	cv_memif_ring_begin(&link->server);
	cv_memif_ring_begin(&link->client);
}

static inline void link_end(struct link *link)
{
	free(link->memory);
}

#endif
