// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A ring's descriptors, read and given back, for either end: one body called with constants.
#ifndef CV_MEMIF_SLOT_H
#define CV_MEMIF_SLOT_H

#include "memif/ring.h"

#define CV_MEMIF_BATCH 64 // descriptors looked at together
#define CV_MEMIF_LINE 4 // descriptors in a cache line
#define CV_MEMIF_PACKET_MIN 14 // an Ethernet header; what is shorter is no packet
#define CV_MEMIF_PACKET_MAX 65535u

// A buffer as a descriptor names it, checked.
struct cv_memif_slot {
	uint8_t *data;
	uint32_t len; // bytes in it (to take), or that it holds (to put)
	uint16_t flags, region;
	uint32_t offset;
};

static CV_INLINE uint16_t cv_memif_index(const struct cv_memif_ring *ring, uint16_t at)
{
	return at & (uint16_t)(ring->size - 1);
}

// How many descriptors from ring->next on are ours to use, up to wanted.
static CV_INLINE uint16_t cv_memif_available(
	struct cv_memif_ring *ring, uint16_t wanted, bool client)
{
	uint16_t ready = (uint16_t)(ring->seen - ring->next);

	if (ready < wanted) {
		// Pairs with the peer's release of its index: descriptors and bytes are there.
		ring->seen = __atomic_load_n(
			client ? &ring->shared->tail : &ring->shared->head, __ATOMIC_ACQUIRE);
		// What the client fills is its own until it is a whole ring ahead.
		if (client && ring->to_server)
			ring->seen = (uint16_t)(ring->seen + ring->size);
		ready = (uint16_t)(ring->seen - ring->next);
		if (CV_UNLIKELY(ready > ring->size)) {
			__atomic_store_n(&ring->broken, true, __ATOMIC_RELAXED);
			ring->seen = ring->next;
			return 0;
		}
	}
	return ready < wanted ? ready : wanted;
}

static CV_INLINE void cv_memif_prefetch(const struct cv_memif_ring *ring, uint16_t n)
{
	for (uint16_t i = 0; i < n; i += CV_MEMIF_LINE)
		__builtin_prefetch(
			&ring->shared
				 ->descriptors[cv_memif_index(ring, (uint16_t)(ring->next + i))]);
}

// The buffer of the descriptor at a place, in the words that a peer wrote there. False: it lies
// outside of the shared memory.
static CV_INLINE bool cv_memif_slot(const struct cv_memif_ring *ring, uint16_t at, bool client,
	bool take, struct cv_memif_slot *slot)
{
	const uint16_t index = cv_memif_index(ring, at);
	const struct cv_memif_descriptor *descriptor = &ring->shared->descriptors[index];
	uint64_t words[2];

	if (client) {
		slot->data = ring->buffers + (size_t)index * ring->stride;
		slot->region = 0;
		slot->offset = ring->buffers_offset + index * ring->stride;
		slot->flags = 0;
		slot->len = ring->buffer_bytes;
		if (!take)
			return true;
	}
	// Flags, region and length, read once.
	words[0] = __atomic_load_n((const uint64_t *)(const void *)descriptor, __ATOMIC_RELAXED);
	slot->flags = (uint16_t)words[0];
	slot->len = (uint32_t)(words[0] >> 32);
	if (client)
		return slot->len <= ring->buffer_bytes;
	words[1] = __atomic_load_n(
		(const uint64_t *)(const void *)&descriptor->offset, __ATOMIC_RELAXED);
	slot->region = (uint16_t)(words[0] >> 16);
	slot->offset = (uint32_t)words[1];
	if (CV_UNLIKELY(
		    slot->region >= ring->regions->count ||
		    (uint64_t)slot->offset + slot->len > ring->regions->regions[slot->region].size))
		return false;
	slot->data = ring->regions->regions[slot->region].data + slot->offset;
	return true;
}

// Writes a descriptor of ours, or of the client's that we fill, as a whole.
static CV_INLINE void cv_memif_write(const struct cv_memif_ring *ring, uint16_t at, bool client,
	const struct cv_memif_slot *slot)
{
	struct cv_memif_descriptor *descriptor =
		&ring->shared->descriptors[cv_memif_index(ring, at)];
	const uint64_t first =
		slot->flags | (uint64_t)slot->region << 16 | (uint64_t)slot->len << 32;

	__atomic_store_n((uint64_t *)(void *)descriptor, first, __ATOMIC_RELAXED);
	if (client)
		__atomic_store_n(
			(uint64_t *)(void *)&descriptor->offset, slot->offset, __ATOMIC_RELAXED);
}

// The next n descriptors are the peer's again.
static CV_INLINE void cv_memif_advance(struct cv_memif_ring *ring, uint16_t n, bool client)
{
	uint16_t index;

	ring->next = (uint16_t)(ring->next + n);
	index = ring->next;
	// What the client does not fill itself is with the server but for what it has taken.
	if (client && !ring->to_server)
		index = (uint16_t)(index + ring->size);
	// Pairs with the peer's acquire of the index.
	__atomic_store_n(
		client ? &ring->shared->head : &ring->shared->tail, index, __ATOMIC_RELEASE);
}

// Gives n descriptors back that packets were taken from.
static CV_INLINE void cv_memif_give_back(struct cv_memif_ring *ring, uint16_t n, bool client)
{
	// Empty again, whatever the peer wrote there.
	for (uint16_t i = 0; client && i < n; i++) {
		const uint16_t at = (uint16_t)(ring->next + i);
		const struct cv_memif_slot empty = {.len = ring->buffer_bytes,
			.offset = ring->buffers_offset + cv_memif_index(ring, at) * ring->stride};

		cv_memif_write(ring, at, true, &empty);
	}
	cv_memif_advance(ring, n, client);
}

#endif
