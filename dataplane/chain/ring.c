// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/ring.h"

#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#define BUFFERS_MAX (1u << 20)
#define CLOCK_EACH 61 // pushes

// Where a side is: positions count from the beginning and wrap around at 2^32; a slot is the
// position modulo the size. One word, so that both move at once.
struct position {
	uint32_t buffers;
	uint32_t views;
} __attribute__((aligned(8)));

static_assert(sizeof(struct position) == 8, "moves in one store");

// Each side writes a line of its own and keeps there what it last saw of the other's, so that it
// reads the other's line only when the ring looks full (or empty).
struct cv_ring {
	uint32_t buffers_mask;
	uint32_t views_mask;
	struct rte_mbuf **buffers;
	struct cv_view *views;
	uint8_t *counts; // views of each buffer

	_Alignas(RTE_CACHE_LINE_SIZE) struct position pushed; // written by the pusher
	struct position popped_seen; // the pusher's copy
	uint32_t pushes; // until a clock is set
	_Alignas(RTE_CACHE_LINE_SIZE) struct position popped; // written by the popper
	struct position pushed_seen; // the popper's copy
	uint32_t done; // buffers that were popped before the last pop: what came of them has left
	uint64_t waited; // TSC ticks, of the last pop; 0: no clock ran out with it
	// A clock: set by the pusher where there is none, taken by the popper.
	_Alignas(RTE_CACHE_LINE_SIZE) uint64_t clock; // TSC; 0: there is none
	uint32_t clocked; // position behind what it runs for, in buffers
	_Alignas(RTE_CACHE_LINE_SIZE) char end[];
};

struct cv_ring *cv_ring_create(
	const char *name, uint32_t buffers, uint32_t views, struct cv_error *error)
{
	uint32_t most = RTE_MAX(buffers, views);
	struct cv_ring *ring;
	uint32_t size;

	if (buffers == 0 || most > BUFFERS_MAX) {
		cv_error_set(
			error, "ring \"%s\": %u packets; give 1 to %u", name, most, BUFFERS_MAX);
		return NULL;
	}
	size = rte_align32pow2(buffers);
	views = rte_align32pow2(most);
	ring = rte_zmalloc("cv_ring",
		sizeof(*ring) + views * sizeof(struct cv_view) +
			size * (sizeof(struct rte_mbuf *) + sizeof(uint8_t)),
		RTE_CACHE_LINE_SIZE);
	if (ring == NULL) {
		cv_error_set(error,
			"ring \"%s\": no memory for %u packets; raise eal.memory_mb in the plan",
			name, size);
		return NULL;
	}
	ring->buffers_mask = size - 1;
	ring->views_mask = views - 1;
	ring->views = (struct cv_view *)ring->end;
	ring->buffers = (struct rte_mbuf **)(ring->views + views);
	ring->counts = (uint8_t *)(ring->buffers + size);
	return ring;
}

void cv_ring_free(struct cv_ring *ring)
{
	struct cv_view views[CV_VIEWS_MAX];
	struct cv_buffers buffers;

	if (ring == NULL)
		return;
	while (cv_ring_pop(ring, &buffers, views, CV_VIEWS_MAX) > 0)
		rte_pktmbuf_free_bulk(buffers.buffers, buffers.n);
	rte_free(ring);
}

// n elements into a ring of mask + 1 slots, or out of it.
#define COPY_IN(ring, mask, at, from, n)                                         \
	do {                                                                     \
		uint32_t slot_ = (at) & (mask);                                  \
		uint32_t first_ = RTE_MIN((mask) + 1 - slot_, (uint32_t)(n));    \
                                                                                 \
		memcpy((ring) + slot_, (from), first_ * sizeof(*(ring)));        \
		memcpy((ring), (from) + first_, ((n)-first_) * sizeof(*(ring))); \
	} while (0)
#define COPY_OUT(to, ring, mask, at, n)                                        \
	do {                                                                   \
		uint32_t slot_ = (at) & (mask);                                \
		uint32_t first_ = RTE_MIN((mask) + 1 - slot_, (uint32_t)(n));  \
                                                                               \
		memcpy((to), (ring) + slot_, first_ * sizeof(*(ring)));        \
		memcpy((to) + first_, (ring), ((n)-first_) * sizeof(*(ring))); \
	} while (0)

// How many of the n buffers fit into room for so many of them and for so many views; *views is how
// many they have.
static CV_INLINE uint16_t fitting(const uint8_t *counts, uint32_t n, uint32_t buffers_room,
	uint32_t views_room, uint32_t *views)
{
	uint32_t fit = 0;

	*views = 0;
	while (fit < n && fit < buffers_room && *views + counts[fit] <= views_room)
		*views += counts[fit++];
	return (uint16_t)fit;
}

// A clock runs for what is pushed now, up to a position.
static __rte_noinline void set_clock(struct cv_ring *ring, uint32_t end)
{
	ring->pushes = CLOCK_EACH;
	// Pairs with the release store in take_clock(): `clocked` was read.
	if (__atomic_load_n(&ring->clock, __ATOMIC_ACQUIRE) != 0)
		return;
	ring->clocked = end;
	__atomic_store_n(&ring->clock, rte_rdtsc(), __ATOMIC_RELEASE);
}

// What was popped up to a position had waited so long, if a clock ran for it.
static CV_INLINE uint64_t take_clock(struct cv_ring *ring, uint32_t end)
{
	// Pairs with the release store in set_clock(): `clocked` is there.
	const uint64_t clock = __atomic_load_n(&ring->clock, __ATOMIC_ACQUIRE);

	if (CV_LIKELY(clock == 0) || (int32_t)(end - ring->clocked) < 0)
		return 0;
	// Pairs with the acquire load in set_clock().
	__atomic_store_n(&ring->clock, 0, __ATOMIC_RELEASE);
	return rte_rdtsc() - clock;
}

uint16_t cv_ring_push(struct cv_ring *ring, const struct cv_buffers *buffers,
	const struct cv_view *views, uint16_t n)
{
	const struct position at = ring->pushed;
	uint32_t views_count = n;
	uint16_t taken = buffers->n;
	struct position next;

	for (int again = 0;; again++) {
		uint32_t buffers_room =
			ring->buffers_mask + 1 - (at.buffers - ring->popped_seen.buffers);
		uint32_t views_room = ring->views_mask + 1 - (at.views - ring->popped_seen.views);

		if (CV_LIKELY(taken <= buffers_room && n <= views_room))
			break;
		if (again > 0) {
			taken = fitting(
				buffers->views, taken, buffers_room, views_room, &views_count);
			break;
		}
		// Pairs with the release store in cv_ring_pop(): what was popped may be overwritten.
		__atomic_load(&ring->popped, &ring->popped_seen, __ATOMIC_ACQUIRE);
	}
	COPY_IN(ring->buffers, ring->buffers_mask, at.buffers, buffers->buffers, taken);
	COPY_IN(ring->counts, ring->buffers_mask, at.buffers, buffers->views, taken);
	COPY_IN(ring->views, ring->views_mask, at.views, views, views_count);
	next = (struct position){at.buffers + taken, at.views + views_count};
	if (taken > 0 && CV_UNLIKELY(ring->pushes-- == 0))
		set_clock(ring, next.buffers);
	// Pairs with the acquire load in cv_ring_pop(): the packets are there before they count.
	__atomic_store(&ring->pushed, &next, __ATOMIC_RELEASE);
	return taken;
}

// The views of as many buffers as one burst has at most.
static CV_INLINE uint32_t sum(const uint8_t counts[CV_BUFFERS_MAX])
{
	uint32_t views = 0;

	for (unsigned i = 0; i < CV_BUFFERS_MAX; i++)
		views += counts[i];
	return views;
}

uint16_t cv_ring_pop(
	struct cv_ring *ring, struct cv_buffers *buffers, struct cv_view *views, uint16_t n)
{
	const struct position at = ring->popped;
	uint32_t there = ring->pushed_seen.buffers - at.buffers;
	struct position next;
	uint32_t views_count;
	bool some; // more are there than one burst has

	if (ring->done != at.buffers) // pairs with the acquire load in cv_ring_done()
		__atomic_store_n(&ring->done, at.buffers, __ATOMIC_RELEASE);
	if (there < CV_BUFFERS_MAX) {
		// Pairs with the release store in cv_ring_push(): the packets are there.
		__atomic_load(&ring->pushed, &ring->pushed_seen, __ATOMIC_ACQUIRE);
		there = ring->pushed_seen.buffers - at.buffers;
	}
	if (there == 0) {
		buffers->n = 0;
		return 0;
	}
	some = there > CV_BUFFERS_MAX;
	there = RTE_MIN(there, (uint32_t)CV_BUFFERS_MAX);
	COPY_OUT(buffers->views, ring->counts, ring->buffers_mask, at.buffers, there);
	views_count = some ? sum(buffers->views) : ring->pushed_seen.views - at.views;
	if (CV_UNLIKELY(views_count > n))
		there = fitting(buffers->views, there, there, n, &views_count);
	buffers->n = (uint16_t)there;
	COPY_OUT(buffers->buffers, ring->buffers, ring->buffers_mask, at.buffers, there);
	COPY_OUT(views, ring->views, ring->views_mask, at.views, views_count);
	next = (struct position){at.buffers + there, at.views + views_count};
	// Pairs with the acquire load in cv_ring_push(): the slots are free.
	__atomic_store(&ring->popped, &next, __ATOMIC_RELEASE);
	ring->waited = take_clock(ring, next.buffers);
	// The other worker's cache has the packets' first lines; a function reads them next.
	for (uint32_t i = 0; i < views_count; i++)
		rte_prefetch0(views[i].data);
	return (uint16_t)views_count;
}

uint64_t cv_ring_waited(const struct cv_ring *ring)
{
	return ring->waited;
}

uint32_t cv_ring_pushed(const struct cv_ring *ring)
{
	return ring->pushed.buffers;
}

bool cv_ring_is_done(const struct cv_ring *ring, uint32_t pushed)
{
	return (int32_t)(__atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) - pushed) >= 0;
}

static struct position load(const struct position *position)
{
	struct position value;

	// An estimate needs no partner.
	__atomic_load(position, &value, __ATOMIC_RELAXED);
	return value;
}

bool cv_ring_has_room(const struct cv_ring *ring, uint32_t buffers, uint32_t views)
{
	struct position popped =
		ring->popped_seen; // without the other side's line, if that is enough

	for (int again = 0; again < 2; again++) {
		if (ring->buffers_mask + 1 - (ring->pushed.buffers - popped.buffers) >= buffers &&
			ring->views_mask + 1 - (ring->pushed.views - popped.views) >= views)
			return true;
		popped = load(&ring->popped);
	}
	return false;
}

uint32_t cv_ring_count(const struct cv_ring *ring)
{
	// Popped first, so that the difference cannot be negative for the pusher and the popper.
	struct position popped = load(&ring->popped);
	struct position pushed = load(&ring->pushed);

	return RTE_MIN(pushed.views - popped.views, ring->views_mask + 1);
}
