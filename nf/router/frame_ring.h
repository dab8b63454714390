// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Frames from one thread to another, copied: one producer, one consumer, no lock. The consumer may
// take a frame from behind others that it leaves for later.
#ifndef CV_FRAME_RING_H
#define CV_FRAME_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct cv_frame {
	uint64_t since; // TSC ticks: of one that waits
	uint16_t len;
	uint8_t port;
	bool taken; // of the consumer's
	uint8_t bytes[];
};

struct cv_frame_ring {
	uint8_t *memory;
	uint32_t slots; // a power of two
	uint32_t slot_bytes;
	uint16_t frame_bytes; // the longest frame
	uint32_t head __attribute__((aligned(64))); // the producer's: frames put so far
	uint32_t tail __attribute__((aligned(64))); // the consumer's: frames that are gone
};

// Returns 0 or -ENOMEM.
static inline int cv_frame_ring_init(struct cv_frame_ring *ring, uint32_t slots, uint16_t bytes)
{
	*ring = (struct cv_frame_ring){.slots = slots, .frame_bytes = bytes};
	ring->slot_bytes = (uint32_t)(sizeof(struct cv_frame) + bytes + 63) & ~UINT32_C(63);
	ring->memory = malloc((size_t)slots * ring->slot_bytes);
	return ring->memory != NULL ? 0 : -ENOMEM;
}

static inline void cv_frame_ring_free(struct cv_frame_ring *ring)
{
	free(ring->memory);
	ring->memory = NULL;
}

static inline struct cv_frame *cv_frame_ring_at(const struct cv_frame_ring *ring, uint32_t at)
{
	return (struct cv_frame *)(ring->memory +
				   (size_t)(at & (ring->slots - 1)) * ring->slot_bytes);
}

// The producer: where the next frame is to be written; NULL: the ring is full.
static inline struct cv_frame *cv_frame_ring_next(const struct cv_frame_ring *ring)
{
	// Pairs with the release store in cv_frame_ring_pop().
	if (ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->slots)
		return NULL;
	return cv_frame_ring_at(ring, ring->head);
}

// The producer: that frame is written.
static inline void cv_frame_ring_push(struct cv_frame_ring *ring)
{
	struct cv_frame *frame = cv_frame_ring_at(ring, ring->head);

	frame->taken = false;
	// Pairs with the acquire load in cv_frame_ring_end().
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
}

// The consumer: frames from tail up to here may be read.
static inline uint32_t cv_frame_ring_end(const struct cv_frame_ring *ring)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
}

// The consumer: gives back the frames at the ring's beginning that are taken.
static inline void cv_frame_ring_pop(struct cv_frame_ring *ring, uint32_t end)
{
	uint32_t tail = ring->tail;

	while (tail != end && cv_frame_ring_at(ring, tail)->taken)
		tail++;
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

#endif
