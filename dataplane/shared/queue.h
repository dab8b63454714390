// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One end of a ring of buffers: sends packets to another process of the pool, or receives them. A
// packet stays where it lies; its buffer changes hands. Each process has an mbuf of its own for each
// buffer, in memory of its own (a member) or of the pool (the owner), and never reads another's.
//
// The other end may be a process that died halfway, or one that went wrong: a descriptor whose buffer
// does not exist, or that this process has already, or that ends beyond its buffer is skipped and
// counted (malformed); an index that is impossible stops the ring (broken) until the link is made
// anew. What one call looks at is bounded by n.
#ifndef CV_SHARED_QUEUE_H
#define CV_SHARED_QUEUE_H

#include <string.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "packet/mbuf_set.h"
#include "packet/revocable.h"
#include "packet/view.h"
#include "shared/layout.h"
#include "stats/counter.h"

#define CV_SHARED_PACKET_MIN CV_ETHER_LEN

// The pool's buffers, as this process has them.
struct cv_shared_buffers {
	struct rte_mempool *pool; // of their mbufs: freed, they go there
	uint8_t *mbufs; // the first
	uint8_t *data; // what the first's packets may lie in
	uint32_t mbuf_stride, data_stride; // multiples of 64
	uint32_t count;
	uint32_t room;
	uint64_t reciprocal; // of mbuf_stride / 64, times 2^40
	uint8_t *
		marks; // 1: we have it. Relaxed atomics: the owner reads those of a member that died
};

struct cv_shared_counters {
	uint64_t packets, malformed;
};

struct cv_shared_queue {
	_Alignas(64) struct cv_revocable access; // to all of it
	bool broken; // atomic
	struct cv_shared_ring *ring;
	uint32_t mask; // slots - 1
	uint32_t next; // our index
	uint32_t seen; // the other's, as last read
	const struct cv_shared_buffers *buffers;
	struct cv_shared_counters counters; // since the beginning; atomic
};

// How many units of 64 bytes lie before, exactly, for what a pool can have.
static inline uint64_t cv_shared_reciprocal(uint32_t stride)
{
	return ((UINT64_C(1) << 40) + stride / 64 - 1) / (stride / 64);
}

static CV_INLINE uint32_t cv_shared_number(
	const struct cv_shared_buffers *buffers, const struct rte_mbuf *mbuf)
{
	const uint64_t units = (uint64_t)((const uint8_t *)mbuf - buffers->mbufs) / 64;

	return (uint32_t)(units * buffers->reciprocal >> 40);
}

static CV_INLINE struct rte_mbuf *cv_shared_mbuf(
	const struct cv_shared_buffers *buffers, uint32_t number)
{
	return (struct rte_mbuf *)(void *)(buffers->mbufs +
					   (uint64_t)number * buffers->mbuf_stride);
}

// May the buffer change hands as it is? Sets its number if so.
static CV_INLINE bool cv_shared_is_ours(
	const struct cv_shared_buffers *buffers, const struct rte_mbuf *mbuf, uint32_t *number)
{
	uint64_t rearm;

	memcpy(&rearm, &mbuf->rearm_data, sizeof(rearm));
	// One reference, one segment (mbuf_set.h has the order of these).
	if (CV_UNLIKELY(mbuf->pool != buffers->pool || (uint32_t)(rearm >> 16) != 0x10001u ||
			!RTE_MBUF_DIRECT(mbuf)))
		return false;
	*number = cv_shared_number(buffers, mbuf);
	return CV_LIKELY(__atomic_load_n(&buffers->marks[*number], __ATOMIC_RELAXED) == 1);
}

// Lines of the next n slots, which the other end used last.
static CV_INLINE void cv_shared_prefetch(
	const struct cv_shared_queue *queue, uint32_t n, bool to_write)
{
	for (uint32_t i = 0; i < n + 7; i += 8) {
		const uint64_t *slot = &queue->ring->slots[(queue->next + i) & queue->mask];

		if (to_write)
			CV_PREFETCH_WRITE(slot);
		else
			__builtin_prefetch(slot);
	}
}

// Slots that are free, at least n if there are so many.
static CV_INLINE uint32_t cv_shared_free_slots(struct cv_shared_queue *queue, uint32_t n)
{
	uint32_t used = queue->next - queue->seen;

	if (queue->mask + 1 - used < n) {
		// Pairs with the receiver's release.
		queue->seen = __atomic_load_n(&queue->ring->head, __ATOMIC_ACQUIRE);
		used = queue->next - queue->seen;
	}
	if (CV_LIKELY(used <= queue->mask + 1))
		return queue->mask + 1 - used;
	__atomic_store_n(&queue->broken, true, __ATOMIC_RELAXED);
	return 0;
}

// Gives n buffers of these numbers away that the ring has room for; all are cv_shared_is_ours(). Under
// the lock.
static CV_INLINE void cv_shared_put(struct cv_shared_queue *queue, struct rte_mbuf *const *mbufs,
	const uint32_t *numbers, uint32_t n)
{
	const struct cv_shared_buffers *buffers = queue->buffers;
	struct cv_shared_ring *ring = queue->ring;
	const uint32_t next = queue->next;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t slot = numbers[i] | (uint64_t)mbufs[i]->data_off << 32 |
				      (uint64_t)mbufs[i]->data_len << 48;

		__atomic_store_n(&ring->slots[(next + i) & queue->mask], slot, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&ring->upto, next + n, __ATOMIC_RELEASE);
	// Before the marks: who died behind this line has all up to there in the ring.
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&buffers->marks[numbers[i]], 0, __ATOMIC_RELAXED);
	queue->next = next + n;
	// Pairs with the receiver's acquire.
	__atomic_store_n(&ring->tail, next + n, __ATOMIC_RELEASE);
	cv_count(&queue->counters.packets, n);
}

// Descriptors that can be taken.
static CV_INLINE uint32_t cv_shared_ready(struct cv_shared_queue *queue, uint32_t n)
{
	uint32_t ready = queue->seen - queue->next;

	if (ready < n) {
		// Pairs with the sender's release.
		queue->seen = __atomic_load_n(&queue->ring->tail, __ATOMIC_ACQUIRE);
		ready = queue->seen - queue->next;
	}
	if (CV_LIKELY(ready <= queue->mask + 1))
		return ready < n ? ready : n;
	__atomic_store_n(&queue->broken, true, __ATOMIC_RELAXED);
	return 0;
}

// Takes up to n packets; returns how many. They belong to the caller. Under the lock.
static CV_INLINE uint16_t cv_shared_take(
	struct cv_shared_queue *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct cv_shared_buffers *buffers = queue->buffers;
	struct cv_shared_ring *ring = queue->ring;
	const uint32_t next = queue->next;
	const uint32_t ready = cv_shared_ready(queue, n);
	uint16_t got = 0;

	if (ready > 0)
		cv_shared_prefetch(queue, ready, false);
	for (uint32_t i = 0; i < ready; i++) {
		const uint64_t slot =
			__atomic_load_n(&ring->slots[(next + i) & queue->mask], __ATOMIC_RELAXED);
		const uint32_t number = (uint32_t)slot;
		const uint32_t offset = (uint16_t)(slot >> 32), len = (uint16_t)(slot >> 48);

		// Its number is checked before its mark is looked at.
		if (CV_UNLIKELY(number >= buffers->count || len < CV_SHARED_PACKET_MIN ||
				offset + len > buffers->room ||
				__atomic_load_n(&buffers->marks[number], __ATOMIC_RELAXED) != 0)) {
			cv_count(&queue->counters.malformed, 1);
			continue;
		}
		__atomic_store_n(&buffers->marks[number], 1, __ATOMIC_RELAXED);
		__builtin_prefetch(
			buffers->data + (uint64_t)number * buffers->data_stride + offset);
		mbufs[got] = cv_shared_mbuf(buffers, number);
		cv_mbuf_set(mbufs[got++], (uint16_t)offset, (uint16_t)len);
	}
	queue->next = next + ready;
	// Behind the marks. Pairs with the sender's acquire, and with the owner's when we have died.
	__atomic_store_n(&ring->head, next + ready, __ATOMIC_RELEASE);
	cv_count(&queue->counters.packets, got);
	return got;
}

#endif
