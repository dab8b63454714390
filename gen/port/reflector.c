// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/reflector.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "gen/traffic/stamp.h"

#define BURST 32u
#define HEADER 12u // VERSION_1

// Where the device is in a ring.
struct side {
	uint16_t avail, used;
};

// Frames up to 64 bytes are one copy of a cache line: both buffers are padded to that.
static inline void copy_frame(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	if (bytes <= 64)
		memcpy(to, from, 64);
	else
		memcpy(to, from, bytes);
}

static inline uint32_t available(const struct gen_vring *ring, uint16_t taken)
{
	// Pairs with gen_vring_publish.
	return (uint16_t)(__atomic_load_n(&ring->avail->idx, __ATOMIC_ACQUIRE) - taken);
}

static inline uint8_t *frame_of(const struct gen_vring *ring, uint16_t index)
{
	return (uint8_t *)(uintptr_t)ring->desc[index & (ring->size - 1)].addr + HEADER;
}

static inline uint32_t bytes_of(const struct gen_vring *ring, uint16_t index)
{
	return ring->desc[index & (ring->size - 1)].len;
}

static inline void give(struct gen_vring *to, uint16_t index, uint32_t bytes)
{
	const uint32_t slot = index & (to->size - 1);
	const uint64_t element = slot | (uint64_t)bytes << 32;

	gen_vring_set_element(to, slot, element);
}

// Copies as many as both sides have, at most a burst.
static uint32_t pass(struct gen_direction *direction, struct side *from, struct side *to)
{
	uint32_t count = available(direction->from, from->avail);

	if (count == 0)
		return 0;
	const uint32_t room = available(direction->to, to->avail);
	count = count < room ? count : room;
	count = count < BURST ? count : BURST;
	for (uint32_t i = 0; i < count; i++) {
		__builtin_prefetch(frame_of(direction->from, (uint16_t)(from->avail + i)));
		__builtin_prefetch(frame_of(direction->to, (uint16_t)(to->avail + i)), 1);
	}
	for (uint32_t i = 0; i < count; i++) {
		const uint16_t in = (uint16_t)(from->avail + i), out = (uint16_t)(to->avail + i);
		const uint32_t bytes = bytes_of(direction->from, in);

		copy_frame(frame_of(direction->to, out), frame_of(direction->from, in),
			bytes - HEADER);
		give(direction->to, out, bytes);
	}
	from->avail = (uint16_t)(from->avail + count);
	to->avail = (uint16_t)(to->avail + count);
	// Both pair with gen_vring_used.
	__atomic_store_n(&direction->to->used->idx, to->avail, __ATOMIC_RELEASE);
	__atomic_store_n(&direction->from->used->idx, from->avail, __ATOMIC_RELEASE);
	direction->seen += count;
	return count;
}

// One packet at a time, as the plan says.
struct held {
	bool full;
	uint32_t bytes;
	uint8_t frame[2048];
};

static void put(
	struct gen_direction *direction, struct side *to, const uint8_t *frame, uint32_t bytes)
{
	memcpy(frame_of(direction->to, to->avail), frame, bytes - HEADER);
	give(direction->to, to->avail, bytes);
	to->avail++;
}

static uint32_t pass_planned(struct gen_reflector *reflector, uint32_t number, struct side *from,
	struct side *to, struct held *held)
{
	struct gen_direction *direction = &reflector->directions[number];
	uint8_t copy[2048];

	if (available(direction->from, from->avail) == 0 || available(direction->to, to->avail) < 3)
		return 0;
	const uint32_t bytes = bytes_of(direction->from, from->avail);
	const uint8_t *frame = frame_of(direction->from, from->avail);
	uint8_t *stamp = copy + gen_stamp_offset(bytes - HEADER);
	memcpy(copy, frame, bytes - HEADER);
	const enum gen_fate fate = reflector->fate(number, direction->seen);

	switch (fate) {
	case GEN_DROP:
		break;
	case GEN_HOLD:
		memcpy(held->frame, frame, bytes - HEADER);
		held->bytes = bytes;
		held->full = true;
		break;
	case GEN_DOUBLE:
		put(direction, to, copy, bytes);
		put(direction, to, copy, bytes);
		break;
	case GEN_SPOIL:
		stamp[3] ^= 0x40;
		put(direction, to, copy, bytes);
		break;
	case GEN_BLANK:
		memset(stamp, 0, GEN_STAMP_BYTES);
		put(direction, to, copy, bytes);
		break;
	case GEN_PASS:
		put(direction, to, copy, bytes);
		if (held->full) {
			put(direction, to, held->frame, held->bytes);
			held->full = false;
		}
	}
	direction->seen++;
	from->avail++;
	__atomic_store_n(&direction->to->used->idx, to->avail, __ATOMIC_RELEASE);
	__atomic_store_n(&direction->from->used->idx, from->avail, __ATOMIC_RELEASE);
	return 1;
}

static void *reflect(void *argument)
{
	struct gen_reflector *reflector = argument;
	struct side from[4] = {0}, to[4] = {0};
	static struct held held[4];

	memset(held, 0, sizeof(held));
	if (reflector->core != UINT32_MAX) {
		cpu_set_t cpus;
		CPU_ZERO(&cpus);
		CPU_SET(reflector->core, &cpus);
		pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	}
	while (!atomic_load_explicit(&reflector->stop, memory_order_relaxed)) {
		for (uint32_t i = 0; i < reflector->direction_count; i++) {
			if (reflector->fate != NULL)
				pass_planned(reflector, i, &from[i], &to[i], &held[i]);
			else
				pass(&reflector->directions[i], &from[i], &to[i]);
		}
	}
	return NULL;
}

int gen_reflector_start(struct gen_reflector *reflector)
{
	sigset_t all, before;

	atomic_store(&reflector->stop, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&reflector->thread, NULL, reflect, reflector);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

void gen_reflector_stop(struct gen_reflector *reflector)
{
	atomic_store(&reflector->stop, true);
	pthread_join(reflector->thread, NULL);
}
