// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "ring.h"

#include <string.h>

#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#define PACKETS_MAX (1u << 20)

// Positions count packets since the beginning and wrap around at 2^32; a slot is the position
// modulo the size. Each side writes a line of its own and keeps there what it last saw of the
// other's, so that it reads the other's line only when the ring looks full (or empty).
struct cv_ring {
	uint32_t mask;
	struct rte_mbuf **packets;
	struct cv_view *views;

	_Alignas(RTE_CACHE_LINE_SIZE) uint32_t pushed; // written by the pusher
	uint32_t popped_seen; // the pusher's copy
	_Alignas(RTE_CACHE_LINE_SIZE) uint32_t popped; // written by the popper
	uint32_t pushed_seen; // the popper's copy
	_Alignas(RTE_CACHE_LINE_SIZE) char end[];
};

struct cv_ring *cv_ring_create(const char *name, uint32_t packets, struct cv_error *error)
{
	const size_t slot = sizeof(struct cv_view) + sizeof(struct rte_mbuf *);
	struct cv_ring *ring;
	uint32_t size;

	if (packets == 0 || packets > PACKETS_MAX) {
		cv_error_set(
			error, "ring \"%s\": %u packets; give 1 to %u", name, packets, PACKETS_MAX);
		return NULL;
	}
	size = rte_align32pow2(packets);
	ring = rte_zmalloc("cv_ring", sizeof(*ring) + size * slot, RTE_CACHE_LINE_SIZE);
	if (ring == NULL) {
		cv_error_set(error,
			"ring \"%s\": no memory for %u packets; raise eal.memory_mb in the plan",
			name, size);
		return NULL;
	}
	ring->mask = size - 1;
	ring->views = (struct cv_view *)ring->end;
	ring->packets = (struct rte_mbuf **)(ring->views + size);
	return ring;
}

void cv_ring_free(struct cv_ring *ring)
{
	struct rte_mbuf *packet;
	struct cv_view view;

	if (ring == NULL)
		return;
	while (cv_ring_pop(ring, &packet, &view, 1) == 1)
		rte_pktmbuf_free(packet);
	rte_free(ring);
}

uint16_t cv_ring_push(struct cv_ring *ring, struct rte_mbuf *const *packets,
	const struct cv_view *views, uint16_t n)
{
	const uint32_t size = ring->mask + 1;
	const uint32_t at = ring->pushed;
	uint32_t room = size - (at - ring->popped_seen);
	uint32_t slot, before_end;

	if (CV_UNLIKELY(room < n)) {
		// Pairs with the release store in cv_ring_pop(): what was popped may be overwritten.
		ring->popped_seen = __atomic_load_n(&ring->popped, __ATOMIC_ACQUIRE);
		room = size - (at - ring->popped_seen);
		if (n > room)
			n = (uint16_t)room;
	}
	slot = at & ring->mask;
	before_end = RTE_MIN(size - slot, (uint32_t)n);
	memcpy(ring->packets + slot, packets, before_end * sizeof(*packets));
	memcpy(ring->views + slot, views, before_end * sizeof(*views));
	memcpy(ring->packets, packets + before_end, (n - before_end) * sizeof(*packets));
	memcpy(ring->views, views + before_end, (n - before_end) * sizeof(*views));
	// Pairs with the acquire load in cv_ring_pop(): the packets are there before they count.
	__atomic_store_n(&ring->pushed, at + n, __ATOMIC_RELEASE);
	return n;
}

uint16_t cv_ring_pop(
	struct cv_ring *ring, struct rte_mbuf **packets, struct cv_view *views, uint16_t n)
{
	const uint32_t size = ring->mask + 1;
	const uint32_t at = ring->popped;
	uint32_t there = ring->pushed_seen - at;
	uint32_t slot, before_end;

	if (there < n) {
		// Pairs with the release store in cv_ring_push(): the packets are there.
		ring->pushed_seen = __atomic_load_n(&ring->pushed, __ATOMIC_ACQUIRE);
		there = ring->pushed_seen - at;
		if (n > there)
			n = (uint16_t)there;
	}
	slot = at & ring->mask;
	before_end = RTE_MIN(size - slot, (uint32_t)n);
	memcpy(packets, ring->packets + slot, before_end * sizeof(*packets));
	memcpy(views, ring->views + slot, before_end * sizeof(*views));
	memcpy(packets + before_end, ring->packets, (n - before_end) * sizeof(*packets));
	memcpy(views + before_end, ring->views, (n - before_end) * sizeof(*views));
	// Pairs with the acquire load in cv_ring_push(): the slots are free.
	__atomic_store_n(&ring->popped, at + n, __ATOMIC_RELEASE);
	// The other worker's cache has the packets' first lines; a function reads them next.
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(views[i].data);
	return n;
}

uint32_t cv_ring_room(const struct cv_ring *ring)
{
	return ring->mask + 1 - cv_ring_count(ring);
}

uint32_t cv_ring_count(const struct cv_ring *ring)
{
	// An estimate needs no partner: popped first, so that the difference cannot be negative
	// for the pusher and the popper.
	uint32_t popped = __atomic_load_n(&ring->popped, __ATOMIC_RELAXED);
	uint32_t pushed = __atomic_load_n(&ring->pushed, __ATOMIC_RELAXED);

	return RTE_MIN(pushed - popped, ring->mask + 1);
}
