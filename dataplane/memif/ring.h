// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One ring of a memif, either end of it: takes packets out of shared buffers and puts packets into
// them. Works on memory alone, as the vring does.
//
// In both directions the client owns head and the server owns tail. Towards the server the client
// fills buffers and moves head, the server gives them back by tail; towards the client, the client
// offers empty buffers by head, the server fills them and moves tail. The buffers are the client's:
// ours are one for each descriptor, always the same.
//
// Everything in the shared memory is the peer's to change at any time, our own descriptors, too.
// Indices and descriptors are read once, and checked and used as that copy; what we wrote ourselves is
// never read back. Nothing outside of the regions is ever touched. What one call looks at is
// bounded, whatever the peer writes. A peer that breaks the rules loses its own packets (malformed), or its ring
// stands still (broken) until it connects anew.
//
// One thread at a time uses a ring. Nobody else may unmap the memory meanwhile.
#ifndef CV_MEMIF_RING_H
#define CV_MEMIF_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/view.h"
#include "vring/vring.h"

#define CV_MEMIF_COOKIE 0x3e31f20
#define CV_MEMIF_LOG2_MAX 14
#define CV_MEMIF_REGIONS_MAX 16
#define CV_MEMIF_CHAIN_MAX 64 // descriptors of one packet

// Descriptors that a call of dequeue or coalesce looks at, but for the last packet's; what is left
// waits for the next call.
#define CV_MEMIF_STEPS 128

// What a malformed packet counts for beside its descriptors: validated by itself it takes a
// multiple of what another does.
#define CV_MEMIF_STEPS_MALFORMED 16

// Descriptors that a call of enqueue looks at for packets that lie in several, and for each of them as
// many as one of its length lies in where peers cut it small; but for the last packet's.
#define CV_MEMIF_PUT_STEPS 128
#define CV_MEMIF_PUT_STEPS_OF(bytes) (4u + (bytes) / 512u)

#define CV_MEMIF_MASK_INTERRUPT 1 // ring flag: the taker polls
#define CV_MEMIF_NEXT 1 // descriptor flag: the packet goes on in the next

struct cv_memif_descriptor {
	uint16_t flags;
	uint16_t region;
	uint32_t length;
	uint32_t offset;
	uint32_t metadata;
};

// As it lies in memory. client, to_server and the rest are struct cv_memif_ring's.
struct cv_memif_shared {
	uint32_t cookie;
	uint16_t flags;
	uint16_t head;
	uint8_t pad_tail[56];
	uint16_t tail;
	uint8_t pad_descriptors[62];
	struct cv_memif_descriptor descriptors[];
};

static_assert(offsetof(struct cv_memif_shared, tail) == 64, "as memif has it");
static_assert(offsetof(struct cv_memif_shared, descriptors) == 128, "as memif has it");

// Bytes that a ring of that size takes.
static inline uint64_t cv_memif_ring_bytes(unsigned size)
{
	return sizeof(struct cv_memif_shared) + size * sizeof(struct cv_memif_descriptor);
}

struct cv_memif_region {
	uint8_t *data;
	uint64_t size;
};

struct cv_memif_regions {
	unsigned count;
	struct cv_memif_region regions[CV_MEMIF_REGIONS_MAX];
};

// Counted since cv_memif_ring_begin(); the thread that uses the ring writes them.
struct cv_memif_counters {
	uint64_t packets; // taken or put
	uint64_t bytes;
	uint64_t malformed; // packets that break the rules; lost
	uint64_t too_long; // packets larger than what they were to go into; lost
};

struct cv_memif_ring {
	// Set by whoever has the memory.
	struct cv_memif_shared *shared;
	uint16_t size; // descriptors, a power of two
	bool client; // we are
	bool to_server; // the direction
	const struct cv_memif_regions *regions; // the server's
	// The client's: buffers[i * stride] is descriptor i's, at buffers_offset + i * stride in region
	// 0. All within it.
	uint8_t *buffers;
	uint32_t stride, buffer_bytes, buffers_offset;

	uint16_t next; // descriptors that we are done with
	uint16_t seen; // up to which we may use them, as last read
	// The peer broke the ring itself; nothing moves any more. Others read it: relaxed atomics.
	bool broken;
	struct cv_memif_counters counters;
};

// Begins to use a ring that neither side has used yet. The client's buffers are then with the peer,
// if it is to fill them. The first as soon as the memory is there: before the peer knows of it. (Some
// servers set both indices to 0 when they connect: they must not be moved before that.)
void cv_memif_ring_make(struct cv_memif_ring *ring); // the client's
void cv_memif_ring_begin(struct cv_memif_ring *ring);

// Takes up to n packets, each into a buffer of its own: to[i] has room bytes, lens[i] is set. Longer
// ones are lost. Returns how many; the peer has its buffers back.
uint16_t cv_memif_dequeue(
	struct cv_memif_ring *ring, uint8_t *const *to, uint32_t room, uint16_t *lens, uint16_t n);

// Takes up to n packets one behind the other into buffers, as cv_vring_coalesce().
uint16_t cv_memif_coalesce(struct cv_memif_ring *ring, struct cv_view *views, uint16_t n,
	struct cv_vring_buffer *buffer, uint16_t *buffers);

// Puts the first of n packets into buffers, as many as there is room for; returns how many. A packet
// is what cv_view_packet() says. One that never fits is lost and counted, as is all that is left when
// the peer's buffers of a few bytes have kept us for long enough.
uint16_t cv_memif_enqueue(struct cv_memif_ring *ring, const struct cv_view *views, uint16_t n);

// Descriptors that can be taken from, or put into, just now.
uint16_t cv_memif_ready(struct cv_memif_ring *ring);

// Whether the peer wants to be told of packets that were put.
static inline bool cv_memif_wants_interrupt(const struct cv_memif_ring *ring)
{
	// Packets were put before the flag is read; a peer sets the flag before it looks for packets
	// a last time. Pairs with its full barrier.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&ring->shared->flags, __ATOMIC_RELAXED) & CV_MEMIF_MASK_INTERRUPT);
}

#endif
