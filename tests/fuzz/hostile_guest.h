// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious guest that fuzzers of the vring and of what stands on it share: its memory, rings
// and all, and what it does to that, step by step. Two regions are allocations, whose ends an
// address sanitizer watches; a third is larger than 4 GiB, so that a descriptor may say any length.
//
//   features (bits below; 0x40: it waits at an eventfd, 0x80: it is being migrated), ring size,
//   bases (2 x 2 bytes), steps of 8 bytes
//
// A step is a kind and seven numbers. Whole descriptors are made of addresses and lengths that are
// likely to matter, and steps are mutated as such (hostile_mutate()): bytes drawn alone hardly ever
// make a buffer that is looked at twice.
#ifndef CV_HOSTILE_GUEST_H
#define CV_HOSTILE_GUEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "vring/vring.h"

#define HOSTILE_HEADER 6u // bytes before the steps
#define HOSTILE_STEP 8u

#define SIZE_MOST 64u // of the ring
#define FIRST_BYTES 8192u // holds the rings at these offsets, and tables behind them
#define AVAIL_AT 1024u
#define USED_AT 1536u
#define TABLES_AT 3072u
#define TABLE_MOST ((FIRST_BYTES - TABLES_AT) / 16)
#define SECOND_BYTES 2048u
#define BASE 0x1000u // the guest's address of the first region; the second follows it
#define SECOND (BASE + FIRST_BYTES)
#define HUGE_BASE (1ull << 32)
#define HUGE_BYTES (5ull << 30)

struct hostile {
	struct cv_guest_memory memory;
	struct cv_vring vring;
	uint64_t features;
	uint16_t place; // packed: where it makes the next descriptor available
	bool wrap;
	bool uses_huge;
};

static inline void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static inline uint16_t number_at(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline void hostile_log(void *context, uint64_t guest, uint64_t bytes)
{
	const struct cv_guest_memory *memory = context;
	bool inside = false;

	for (unsigned i = 0; i < memory->count; i++)
		inside |= cv_guest_inside(&memory->regions[i], guest, bytes);
	require(inside, "only the guest's memory is logged");
}

static inline void hostile_log_used(void *context, uint64_t offset, uint64_t bytes)
{
}

static inline uint8_t *hostile_huge(void)
{
	static void *huge;

	if (huge == NULL)
		huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	require(huge != MAP_FAILED, "there is address space");
	return huge;
}

static inline int hostile_call(void)
{
	static int call = -1;

	if (call < 0)
		call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return call;
}

// Begins with an input of at least HOSTILE_HEADER bytes. False: no such ring; hostile_end() all the
// same.
static inline bool hostile_begin(struct hostile *guest, const uint8_t *data)
{
	static const uint8_t bits[6] = {CV_VIRTIO_NET_F_MRG_RXBUF, CV_VIRTIO_RING_F_INDIRECT_DESC,
		CV_VIRTIO_RING_F_EVENT_IDX, CV_VIRTIO_F_VERSION_1, CV_VIRTIO_F_RING_PACKED,
		CV_VIRTIO_F_IN_ORDER};
	const struct cv_vring_base base = {number_at(data + 2), number_at(data + 4)};
	uint8_t *first = calloc(1, FIRST_BYTES);

	*guest = (struct hostile){.place = base.avail & 0x7fff, .wrap = base.avail >> 15};
	guest->memory = (struct cv_guest_memory){
		3, {{BASE, FIRST_BYTES, first}, {SECOND, SECOND_BYTES, calloc(1, SECOND_BYTES)},
			   {HUGE_BASE, HUGE_BYTES, hostile_huge()}}};
	for (unsigned i = 0; i < 6; i++)
		guest->features |= (uint64_t)(data[0] >> i & 1) << bits[i];
	guest->vring = (struct cv_vring){
		.desc = (struct vring_desc *)first,
		.avail = (struct vring_avail *)(first + AVAIL_AT),
		.used = (struct vring_used *)(first + USED_AT),
		.size = data[1] % (SIZE_MOST + 1),
		.memory = &guest->memory,
		.log = data[0] & 0x80 ? hostile_log : NULL,
		.log_used = data[0] & 0x80 ? hostile_log_used : NULL,
		.log_context = &guest->memory,
		.call_fd = data[0] & 0x40 ? hostile_call() : -1,
	};
	if (cv_vring_begin(&guest->vring, guest->features, base) != 0)
		return false;
	if (!guest->vring.is_packed)
		guest->vring.avail->idx = base.avail;
	return true;
}

static inline void hostile_end(struct hostile *guest)
{
	if (guest->uses_huge)
		madvise(guest->memory.regions[2].host, HUGE_BYTES, MADV_DONTNEED);
	free(guest->memory.regions[0].host);
	free(guest->memory.regions[1].host);
}

struct hostile_descriptor {
	uint64_t address;
	uint32_t len;
	uint16_t flags;
};

static inline struct hostile_descriptor hostile_draw(struct hostile *guest, const uint8_t *step)
{
	static const uint64_t addresses[] = {SECOND, SECOND + 256, SECOND + SECOND_BYTES - 64,
		SECOND + SECOND_BYTES, SECOND - 40, BASE + TABLES_AT, BASE, 0, HUGE_BASE,
		HUGE_BASE + 4096, HUGE_BASE + HUGE_BYTES - 100, HUGE_BASE - 50, UINT64_MAX - 50};
	static const uint32_t lengths[] = {72, 12, 0, 200, 1526, 16, 16 * 3, 16 * 64, 2048, 65535,
		65535 + 12, 1u << 20, 1u << 31, UINT32_MAX, UINT32_MAX - 127};
	const struct hostile_descriptor drawn = {
		addresses[step[2] % (sizeof(addresses) / sizeof(addresses[0]))] +
			(uint64_t)(int8_t)step[6],
		lengths[step[3] % (sizeof(lengths) / sizeof(lengths[0]))] +
			(uint32_t)(int8_t)step[7],
		step[4] & (VRING_DESC_F_NEXT | VRING_DESC_F_WRITE | VRING_DESC_F_INDIRECT)};

	guest->uses_huge |= drawn.address >= HUGE_BASE - 128;
	return drawn;
}

// Into the ring, or the table behind it.
static inline void hostile_write(const struct hostile *guest, uint32_t at,
	const struct hostile_descriptor *descriptor, uint16_t next)
{
	uint8_t *to = guest->memory.regions[0].host + at;

	if (guest->vring.is_packed) {
		const struct cv_vring_packed packed = {
			descriptor->address, descriptor->len, next, descriptor->flags};

		memcpy(to, &packed, sizeof(packed));
	} else {
		const struct vring_desc split = {
			descriptor->address, descriptor->len, descriptor->flags, next};

		memcpy(to, &split, sizeof(split));
	}
}

// A descriptor where the next one belongs, made available.
static inline void hostile_post(struct hostile *guest, struct hostile_descriptor descriptor)
{
	struct cv_vring *vring = &guest->vring;

	if (vring->is_packed) {
		descriptor.flags |= guest->wrap ? 1u << 7 : 1u << 15;
		hostile_write(guest, guest->place * 16u, &descriptor, guest->place);
		if (++guest->place >= vring->size) {
			guest->place = 0;
			guest->wrap = !guest->wrap;
		}
		return;
	}
	const uint16_t at = vring->avail->idx & (vring->size - 1u);

	hostile_write(guest, at * 16u, &descriptor, (at + 1u) & (vring->size - 1u));
	vring->avail->ring[at] = at;
	if (!(descriptor.flags & VRING_DESC_F_NEXT))
		vring->avail->idx++;
}

enum hostile_kind {
	HOSTILE_POST,
	HOSTILE_POST_TABLE,
	HOSTILE_TABLE, // a run of descriptors in the table
	HOSTILE_DESCRIPTOR, // anywhere in the ring
	HOSTILE_BYTES, // two, anywhere in the first region
	HOSTILE_AVAIL,
	HOSTILE_KINDS, // and more are the fuzzer's own
};

// What the guest does in a step of one of these kinds.
static inline void hostile_play(struct hostile *guest, const uint8_t *step)
{
	struct cv_vring *vring = &guest->vring;
	struct hostile_descriptor drawn = hostile_draw(guest, step);

	switch (step[0]) {
	case HOSTILE_POST:
		hostile_post(guest, drawn);
		break;
	case HOSTILE_POST_TABLE:
		drawn.address = BASE + TABLES_AT + 16 * (step[2] % TABLE_MOST);
		drawn.len = 16u * step[3] + step[7] % 2;
		drawn.flags |= VRING_DESC_F_INDIRECT;
		hostile_post(guest, drawn);
		break;
	case HOSTILE_TABLE:
		for (uint32_t i = 0, at = step[1]; i <= step[5] && at < TABLE_MOST; i++, at++) {
			struct hostile_descriptor one = drawn;

			if (i < step[5] && !vring->is_packed)
				one.flags |= VRING_DESC_F_NEXT;
			hostile_write(guest, TABLES_AT + 16 * at, &one, (uint16_t)(at + 1));
		}
		break;
	case HOSTILE_DESCRIPTOR:
		hostile_write(guest, step[1] % vring->size * 16u, &drawn, step[5]);
		break;
	case HOSTILE_BYTES:
		memcpy(guest->memory.regions[0].host + number_at(step + 2) % (FIRST_BYTES - 1),
			step + 4, 2);
		break;
	default:
		if (!vring->is_packed)
			vring->avail->idx = (uint16_t)(vring->avail->idx + (int8_t)step[1]);
		else
			vring->packed[step[2] % vring->size].flags = (uint16_t)(step[1] << 7);
	}
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static inline uint32_t hostile_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static inline void hostile_draw_step(uint8_t *step, unsigned kinds, uint32_t *state)
{
	for (unsigned i = 0; i < HOSTILE_STEP; i++)
		step[i] = (uint8_t)hostile_random(state);
	// Half of all: the numbers as they stand in the tables, and not linked, or as a rule.
	if (hostile_random(state) % 2)
		step[6] = step[7] = 0;
	if (hostile_random(state) % 2)
		step[4] &= VRING_DESC_F_WRITE;
	step[0] = (uint8_t)(hostile_random(state) % kinds);
}

// A fuzzer's custom mutator, for steps of so many kinds: draws, repeats, moves or drops whole
// steps, or leaves it to libFuzzer.
static inline size_t hostile_mutate(
	uint8_t *data, size_t size, size_t max_size, unsigned seed, unsigned kinds)
{
	uint32_t state = seed * 2654435761u | 1;
	const size_t steps = size > HOSTILE_HEADER ? (size - HOSTILE_HEADER) / HOSTILE_STEP : 0;
	const size_t at = steps > 0 ? hostile_random(&state) % steps : 0;
	uint8_t *step = data + HOSTILE_HEADER + at * HOSTILE_STEP;
	const uint32_t how = hostile_random(&state) % 8;
	const bool grows = size >= HOSTILE_HEADER && size + HOSTILE_STEP <= max_size;

	if (how < 3 && grows) {
		memmove(step + HOSTILE_STEP, step, size - (size_t)(step - data));
		if (how > 0 || steps == 0)
			hostile_draw_step(step, kinds, &state);
		return size + HOSTILE_STEP;
	}
	if (how == 3 && steps > 1) {
		memmove(step, step + HOSTILE_STEP, size - (size_t)(step - data) - HOSTILE_STEP);
		return size - HOSTILE_STEP;
	}
	if (how < 6 && steps > 0) {
		if (how == 4)
			hostile_draw_step(step, kinds, &state);
		else
			step[hostile_random(&state) % HOSTILE_STEP] =
				(uint8_t)hostile_random(&state);
		return size;
	}
	return LLVMFuzzerMutate(data, size, max_size);
}

#endif
