// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A split virtqueue (VIRTIO 1.2, section 2.7) as the driver keeps it in its own memory.
//
// Everything the device writes (the used ring) is untrusted: it is read once, and its indices,
// ids and lengths are checked before use. What the device must not write (descriptors, avail
// ring) is kept in a form that never needs to be read back.
#ifndef GEN_PORT_VRING_H
#define GEN_PORT_VRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

#include "packet/compiler.h"

struct gen_vring {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint32_t size; // power of two
	uint16_t avail_index; // published so far
	uint16_t used_index; // taken back so far
	bool in_order; // VIRTIO_F_IN_ORDER: a descriptor's index is its place in the ring
	uint32_t free_count; // without in_order: unused descriptors
	uint16_t *free;
};

// Bytes of a ring's three parts, each on cache lines of its own.
static inline size_t gen_vring_bytes(uint32_t size)
{
	const size_t line = 64;
	const size_t avail = (sizeof(struct vring_avail) + 2 * (size + 1) + line - 1) / line * line;
	const size_t used = sizeof(struct vring_used) + sizeof(struct vring_used_elem) * size + 2;

	return sizeof(struct vring_desc) * size + avail + (used + line - 1) / line * line;
}

// Lays an empty ring out at `memory` (64-byte aligned). `free_ids` has room for `size` entries.
static inline void gen_vring_init(
	struct gen_vring *ring, uint8_t *memory, uint32_t size, bool in_order, uint16_t *free_ids)
{
	const size_t line = 64;
	const size_t avail = (sizeof(struct vring_avail) + 2 * (size + 1) + line - 1) / line * line;

	*ring = (struct gen_vring){
		.desc = (struct vring_desc *)memory,
		.avail = (struct vring_avail *)(memory + sizeof(struct vring_desc) * size),
		.used = (struct vring_used *)(memory + sizeof(struct vring_desc) * size + avail),
		.size = size,
		.in_order = in_order,
		.free_count = size,
		.free = free_ids,
	};
	__builtin_memset(memory, 0, gen_vring_bytes(size));
	// The avail ring names descriptors in order once and for all; without IN_ORDER entries are
	// rewritten as they are used.
	for (uint32_t i = 0; i < size; i++) {
		ring->avail->ring[i] = (uint16_t)i;
		ring->free[i] = (uint16_t)(size - 1 - i);
	}
	// We poll: no interrupts.
	ring->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
}

// Makes everything before `index` visible to the device.
static inline void gen_vring_publish(struct gen_vring *ring, uint16_t index)
{
	ring->avail_index = index;
	// Pairs with the device's acquire of avail->idx.
	__atomic_store_n(&ring->avail->idx, index, __ATOMIC_RELEASE);
}

// Buffers that the device has used and we have not taken back; UINT32_MAX when it claims more
// than it was given.
static inline uint32_t gen_vring_used(const struct gen_vring *ring)
{
	// Pairs with the device's release of used->idx.
	const uint16_t used = __atomic_load_n(&ring->used->idx, __ATOMIC_ACQUIRE);
	const uint16_t fresh = (uint16_t)(used - ring->used_index);

	if (CV_UNLIKELY(fresh > (uint16_t)(ring->avail_index - ring->used_index)))
		return UINT32_MAX;
	return fresh;
}

// A used element whole: id in the lower half, length in the upper. Elements lie on 4 bytes, and on
// x86 one access of 8 is whole wherever it does not cross a cache line; where it does, the halves
// are checked each for itself.
struct gen_used_element {
	uint64_t whole;
} __attribute__((packed, aligned(4), may_alias));

static inline uint64_t gen_vring_element(const struct gen_vring *ring, uint32_t slot)
{
	// Volatile: one read of what the device may still change.
	return ((const volatile struct gen_used_element *)&ring->used->ring[slot])->whole;
}

static inline void gen_vring_set_element(struct gen_vring *ring, uint32_t slot, uint64_t whole)
{
	((volatile struct gen_used_element *)&ring->used->ring[slot])->whole = whole;
}

// Whether the device wants to be told of new buffers.
static inline bool gen_vring_wants_kick(const struct gen_vring *ring)
{
	return !(__atomic_load_n(&ring->used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
}

#endif
