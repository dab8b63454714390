// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A received convoy as mbufs that show its packets where they lie.
//
// A convoy mbuf set is the convoy's own buffer (its carrier, from the driver) and an mbuf for each
// of its packets (its views), which never belong to another set. To the program a view is an mbuf
// with an external buffer: it may be freed, cloned, trimmed, held back, given to another thread,
// each by itself. It has neither headroom nor tailroom: before and behind it are its neighbours.
//
// Freed views come back to their set through the enqueue operation of the views' mempool; clones
// keep the set's shared info alive. When the last of both is back, the carrier is freed and the
// set may be used again. Who finds all views of a set in their place, and nobody else looking
// at the bytes, may take the carrier away instead and send it (cv_mbuf_set_whole).
#ifndef CV_ETHDEV_MBUF_SET_H
#define CV_ETHDEV_MBUF_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "convoy/walk.h"
#include "preload/ethdev/return_next_hop.h"

// How many packets a set takes; a larger convoy is copied packet by packet.
#define CV_MBUF_SET_VIEWS 32
#define CV_MBUF_SET_POOLS_MAX 16

struct cv_mbuf_set_pool {
	struct rte_mempool *mempool; // of the views; its objects are sets
	struct rte_mempool *program; // the program's, from which mbufs are taken if asked for
	struct rte_ring *free; // sets that no thread has to itself
	uint32_t stride; // bytes from view to view
	uint32_t views_at; // bytes from a set to its first view
	uint32_t index; // among the pools
	uint32_t sets;
	bool ready; // populated: what comes back now are views
};

struct cv_mbuf_set {
	struct rte_mbuf *carrier; // owned
	struct cv_mbuf_set_pool *pool;
	struct cv_return_name from; // where the convoy came from
	struct rte_mbuf_ext_shared_info shared; // one reference for each view that shows bytes
	_Atomic uint32_t away; // views that are not back, and one for the bytes
	uint16_t count; // views in use
	uint16_t port; // received at
	struct cv_convoy convoy;
	uint16_t len[CV_MBUF_SET_VIEWS];
} __attribute__((aligned(RTE_CACHE_LINE_SIZE)));

// The pool of sets for packets from queues that fill `program`'s mbufs; made once for each such
// mempool; of fewer sets where there is little memory. NULL: none, or too many pools.
struct cv_mbuf_set_pool *cv_mbuf_set_pool_get(struct rte_mempool *program);

// Whether packets are received in this pool's mbufs.
bool cv_mbuf_set_pool_has(const struct rte_mempool *program);

// A set, or NULL if all are in use. To be shown or put back.
struct cv_mbuf_set *cv_mbuf_set_get(struct cv_mbuf_set_pool *pool);
void cv_mbuf_set_put(struct cv_mbuf_set *set);

// Writes the views of a convoy that was walked into the set's mbufs, and those to `mbufs`. Takes
// the carrier over. Count is at most CV_MBUF_SET_VIEWS.
void cv_mbuf_set_show(struct cv_mbuf_set *set, struct rte_mbuf *carrier,
	const struct cv_convoy *convoy, const struct cv_view *views, struct rte_mbuf **mbufs);

// Frees the first n of mbufs, all views of this set as cv_mbuf_set_whole() says, unshared.
void cv_mbuf_set_drop(struct cv_mbuf_set *set, struct rte_mbuf **mbufs, uint32_t n);

// Sets whose views or bytes somebody has; those that other threads keep to themselves count too.
uint32_t cv_mbuf_sets_in_use(void);

extern int cv_mbuf_set_ops; // index of the views' mempool operations; -1 before the first pool

static CV_INLINE bool cv_is_view(const struct rte_mbuf *mbuf)
{
	return mbuf->pool->ops_index == cv_mbuf_set_ops;
}

static CV_INLINE struct rte_mbuf *cv_mbuf_set_view(struct cv_mbuf_set *set, uint32_t i)
{
	const struct cv_mbuf_set_pool *pool = set->pool;

	return (struct rte_mbuf *)((uint8_t *)set + pool->views_at + (size_t)i * pool->stride);
}

// Of a view; what lies before each is set once and for all.
static CV_INLINE struct cv_mbuf_set *cv_mbuf_set_of(const struct rte_mbuf *view)
{
	const struct rte_mempool_objhdr *header =
		(const struct rte_mempool_objhdr *)((const uint8_t *)view - sizeof(*header));

	return (struct cv_mbuf_set *)(void *)header->next.stqe_next;
}

// data_off, refcnt, nb_segs and port at once, from the lowest bits up.
static CV_INLINE uint64_t *cv_view_rearm(struct rte_mbuf *mbuf)
{
	return (uint64_t *)((uint8_t *)mbuf + offsetof(struct rte_mbuf, rearm_data));
}

// What an unchanged view's first 16 bytes behind its address are.
static CV_INLINE bool cv_view_unchanged(
	const struct rte_mbuf *mbuf, const uint8_t *data, uint16_t len)
{
	const uint64_t offload = RTE_MBUF_F_TX_OFFLOAD_MASK | RTE_MBUF_F_INDIRECT;

	// data_off 0, refcnt 1, nb_segs 1.
	return mbuf->buf_addr == data &&
	       (*cv_view_rearm((struct rte_mbuf *)(uintptr_t)mbuf) & 0xffffffffffff) ==
		       0x000100010000 &&
	       (mbuf->ol_flags & (offload | RTE_MBUF_F_EXTERNAL)) == RTE_MBUF_F_EXTERNAL &&
	       mbuf->pkt_len == len && mbuf->data_len == len;
}

// Whether mbufs are all views of the set in their order, neither resized nor shared with
// anybody: there must be set->count of them.
static CV_INLINE bool cv_mbuf_set_whole(struct cv_mbuf_set *set, struct rte_mbuf *const *mbufs)
{
	const uint8_t *data = set->convoy.data + set->convoy.packets_at;
	uint8_t *view = (uint8_t *)cv_mbuf_set_view(set, 0);
	const uint32_t stride = set->pool->stride;
	bool same = true;

	for (uint32_t i = 0; i < set->count; i++) {
		data += CV_CONVOY_PREFIX_LEN;
		if (CV_UNLIKELY((uint8_t *)mbufs[i] != view))
			return false;
		same &= cv_view_unchanged(mbufs[i], data, set->len[i]);
		data += set->len[i];
		view += stride;
	}
	return same && rte_mbuf_ext_refcnt_read(&set->shared) == set->count;
}

#endif
