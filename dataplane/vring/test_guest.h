// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A guest for tests of the vring: its memory, and a driver of either layout that sends buffers of
// any form and takes them back. Knows nothing of the vring's code.
#ifndef CV_TEST_GUEST_H
#define CV_TEST_GUEST_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vring/vring.h"

#define GUEST_REGION 0x20000u // bytes of each of the two regions
#define GUEST_BASE 0x10000u // the guest's address of the first; the second follows it
#define GUEST_HUGE (1ull << 32) // the guest's address of a third region, and less than its size
#define GUEST_HUGE_BYTES (5ull << 30)
#define GUEST_TABLES 0x100u // bytes for an indirect table
#define GUEST_SIZE_MAX 256u

#define BIT(n) (1ull << (n))

struct guest {
	struct cv_guest_memory memory;
	struct cv_vring vring;
	uint64_t features;
	uint16_t size;
	// The driver's side.
	uint16_t avail, used;
	bool avail_wrap, used_wrap;
	uint16_t free_count, next_free; // descriptors; split: used in ring order
	uint16_t counts[GUEST_SIZE_MAX]; // descriptors of the buffer of an id
	uint16_t order[GUEST_SIZE_MAX]; // ids in the order made available
	unsigned made, taken; // buffers
	int batch; // packed, in order: ids up to this one are back; -1: none
};

struct guest_part {
	uint64_t address;
	uint32_t len;
	uint16_t flags; // VRING_DESC_F_WRITE or 0, or whatever is to be tried
};

static inline bool guest_has(const struct guest *guest, int bit)
{
	return guest->features >> bit & 1;
}

// Where an address of the guest is; the test's own, without a check.
static inline uint8_t *guest_at(const struct guest *guest, uint64_t address)
{
	const uint64_t offset = address - GUEST_BASE;

	return guest->memory.regions[offset / GUEST_REGION].host + offset % GUEST_REGION;
}

static inline void guest_write(
	const struct guest *guest, uint64_t address, const void *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		*guest_at(guest, address + i) = ((const uint8_t *)from)[i];
}

static inline void guest_read(const struct guest *guest, uint64_t address, void *to, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = *guest_at(guest, address + i);
}

// The first region holds the rings, then indirect tables; data begins at guest_data().
static inline uint64_t guest_table(uint16_t id)
{
	return GUEST_BASE + 0x4000 + (uint64_t)id * GUEST_TABLES;
}

static inline uint64_t guest_data(void)
{
	return guest_table(GUEST_SIZE_MAX);
}

static inline int guest_begin(
	struct guest *guest, uint64_t features, uint16_t size, struct cv_vring_base base)
{
	*guest = (struct guest){.features = features, .size = size, .batch = -1};
	guest->memory.count = 2;
	for (unsigned i = 0; i < 2; i++)
		guest->memory.regions[i] = (struct cv_guest_region){
			GUEST_BASE + i * GUEST_REGION, GUEST_REGION, calloc(1, GUEST_REGION)};
	uint8_t *rings = guest->memory.regions[0].host;
	guest->vring = (struct cv_vring){
		.desc = (struct vring_desc *)rings,
		.avail = (struct vring_avail *)(rings + 0x2000),
		.used = (struct vring_used *)(rings + 0x3000),
		.size = size,
		.memory = &guest->memory,
		.call_fd = -1,
	};
	guest->free_count = size;
	guest->avail = base.avail;
	guest->used = base.used;
	if (guest_has(guest, CV_VIRTIO_F_RING_PACKED)) {
		guest->avail_wrap = base.avail >> 15;
		guest->used_wrap = base.used >> 15;
		guest->avail &= 0x7fff;
		guest->used &= 0x7fff;
	} else {
		guest->vring.avail->idx = base.avail;
		guest->vring.used->idx = base.used;
		// In order: descriptors are used in the ring's.
		guest->next_free = base.avail % size;
	}
	return cv_vring_begin(&guest->vring, features, base);
}

static inline void guest_end(struct guest *guest)
{
	for (unsigned i = 0; i < 2; i++)
		free(guest->memory.regions[i].host);
	if (guest->memory.count > 2)
		munmap(guest->memory.regions[2].host, GUEST_HUGE_BYTES);
}

// A guest with so much memory that one descriptor's length says all that 32 bits can. Of it, only
// what is touched takes memory here. False: the machine does not give it.
static inline bool guest_add_huge(struct guest *guest)
{
	void *host = mmap(NULL, GUEST_HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (host == MAP_FAILED)
		return false;
	guest->memory.regions[guest->memory.count++] =
		(struct cv_guest_region){GUEST_HUGE, GUEST_HUGE_BYTES, host};
	return true;
}

// The bases a fresh guest begins with.
static inline struct cv_vring_base guest_fresh(uint64_t features)
{
	const uint16_t wrap = features >> CV_VIRTIO_F_RING_PACKED & 1 ? 0x8000 : 0;

	return (struct cv_vring_base){wrap, wrap};
}

static inline void guest_put_table(
	const struct guest *guest, uint64_t at, const struct guest_part *parts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		if (guest_has(guest, CV_VIRTIO_F_RING_PACKED)) {
			const struct cv_vring_packed descriptor = {
				parts[i].address, parts[i].len, 0, parts[i].flags};

			guest_write(guest, at + 16u * i, &descriptor, 16);
		} else {
			const struct vring_desc descriptor = {parts[i].address, parts[i].len,
				parts[i].flags | (i + 1 < n ? VRING_DESC_F_NEXT : 0),
				i + 1 < n ? i + 1 : 0};

			guest_write(guest, at + 16u * i, &descriptor, 16);
		}
	}
}

// Makes one buffer of n parts available, in the ring or in an indirect table. False: no room.
static inline bool guest_add(
	struct guest *guest, const struct guest_part *parts, uint16_t n, bool indirect)
{
	const uint16_t head =
		guest_has(guest, CV_VIRTIO_F_RING_PACKED) ? guest->avail : guest->next_free;
	struct guest_part table = {guest_table(head), 16u * n, VRING_DESC_F_INDIRECT};
	const uint16_t mask = guest->size - 1;

	if (guest->free_count < (indirect ? 1 : n))
		return false;
	if (indirect) {
		guest_put_table(guest, table.address, parts, n);
		parts = &table;
		n = 1;
	}
	guest->free_count -= n;
	guest->counts[head] = n;
	guest->order[guest->made++ % GUEST_SIZE_MAX] = head;
	if (guest_has(guest, CV_VIRTIO_F_RING_PACKED)) {
		uint16_t first_flags = 0;

		for (uint16_t i = 0; i < n; i++) {
			struct cv_vring_packed *descriptor = &guest->vring.packed[guest->avail];
			const uint16_t flags = parts[i].flags |
					       (i + 1 < n ? VRING_DESC_F_NEXT : 0) |
					       (guest->avail_wrap ? 1u << 7 : 1u << 15);

			descriptor->address = parts[i].address;
			descriptor->len = parts[i].len;
			descriptor->id = head;
			if (i == 0)
				first_flags = flags;
			else
				descriptor->flags = flags;
			if (++guest->avail == guest->size) {
				guest->avail = 0;
				guest->avail_wrap = !guest->avail_wrap;
			}
		}
		__atomic_store_n(&guest->vring.packed[head].flags, first_flags, __ATOMIC_RELEASE);
		return true;
	}
	for (uint16_t i = 0; i < n; i++) {
		const uint16_t next = (guest->next_free + 1u) & mask;

		guest->vring.desc[guest->next_free] = (struct vring_desc){parts[i].address,
			parts[i].len, parts[i].flags | (i + 1 < n ? VRING_DESC_F_NEXT : 0), next};
		guest->next_free = next;
	}
	guest->vring.avail->ring[guest->avail & mask] = head;
	__atomic_store_n(&guest->vring.avail->idx, ++guest->avail, __ATOMIC_RELEASE);
	return true;
}

// Takes the oldest buffer back; they come back in order here. False: it is not there yet. len:
// bytes that the device says it wrote; 0 for those that the packed ring skips, in order.
static inline bool guest_take(struct guest *guest, uint32_t *len)
{
	const uint16_t oldest = guest->order[guest->taken % GUEST_SIZE_MAX];
	uint16_t id, count = guest->counts[oldest];

	if (guest->made == guest->taken)
		return false;
	if (guest_has(guest, CV_VIRTIO_F_RING_PACKED)) {
		const struct cv_vring_packed *descriptor = &guest->vring.packed[guest->used];
		const uint16_t wrap = guest->used_wrap ? 1u << 7 | 1u << 15 : 0;

		if (guest->batch >= 0) {
			*len = 0;
		} else {
			if ((descriptor->flags & (1u << 7 | 1u << 15)) != wrap)
				return false;
			guest->batch = descriptor->id;
			*len = descriptor->len;
		}
		id = (uint16_t)guest->batch;
		if (id == oldest)
			guest->batch = -1;
		guest->used += count;
		if (guest->used >= guest->size) {
			guest->used -= guest->size;
			guest->used_wrap = !guest->used_wrap;
		}
	} else {
		const struct vring_used_elem *element =
			&guest->vring.used->ring[guest->used & (guest->size - 1)];

		if (guest->used == guest->vring.used->idx)
			return false;
		guest->used++;
		id = (uint16_t)element->id;
		*len = element->len;
	}
	// In order, one element may stand for many: then those between are not written.
	if (id != oldest && !guest_has(guest, CV_VIRTIO_F_IN_ORDER))
		abort();
	guest->taken++;
	guest->free_count += count;
	return true;
}

#endif
