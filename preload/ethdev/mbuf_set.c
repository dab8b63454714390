// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/mbuf_set.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_spinlock.h>

#define HEADER RTE_CACHE_LINE_SIZE // before each view, as a mempool has it before its objects
#define SETS_MIN 256u
#define SETS_MAX 4096u
#define SPARE 64u // sets that a thread keeps to itself: those it used last are still in its cache

int cv_mbuf_set_ops = -1;

static struct cv_mbuf_set_pool pools[CV_MBUF_SET_POOLS_MAX];
static uint32_t pool_count;
static rte_spinlock_t making = RTE_SPINLOCK_INITIALIZER;

struct spare {
	uint32_t count;
	struct cv_mbuf_set *set[SPARE];
};
static __thread struct spare spares[CV_MBUF_SET_POOLS_MAX];
static __thread bool known; // spares go back when the thread ends
static pthread_key_t ending;

static void put_back(void *unused)
{
	for (uint32_t i = 0; i < pool_count; i++) {
		if (spares[i].count > 0)
			rte_ring_mp_enqueue_bulk(
				pools[i].free, (void **)spares[i].set, spares[i].count, NULL);
		spares[i].count = 0;
	}
}

static void know_thread(void)
{
	known = true;
	pthread_setspecific(ending, &known);
}

struct cv_mbuf_set *cv_mbuf_set_get(struct cv_mbuf_set_pool *pool)
{
	struct spare *spare = &spares[pool->index];

	if (CV_UNLIKELY(spare->count == 0)) {
		if (!known)
			know_thread();
		spare->count =
			rte_ring_mc_dequeue_burst(pool->free, (void **)spare->set, SPARE / 2, NULL);
		if (spare->count == 0)
			return NULL;
	}
	return spare->set[--spare->count];
}

void cv_mbuf_set_put(struct cv_mbuf_set *set)
{
	struct cv_mbuf_set_pool *pool = set->pool;
	struct spare *spare = &spares[pool->index];

	if (CV_UNLIKELY(spare->count == SPARE)) {
		if (!known)
			know_thread();
		spare->count = SPARE / 2;
		rte_ring_mp_enqueue_bulk(
			pool->free, (void **)&spare->set[SPARE / 2], SPARE / 2, NULL);
	}
	spare->set[spare->count++] = set;
}

uint32_t cv_mbuf_sets_in_use(void)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < pool_count; i++)
		used += pools[i].sets - rte_ring_count(pools[i].free) - spares[i].count;
	return used;
}

// n views, or the bytes, came back.
static void came_back(struct cv_mbuf_set *set, uint32_t n)
{
	// Acquire and release: whoever is last sees what all others did to the set.
	if (atomic_fetch_sub_explicit(&set->away, n, memory_order_acq_rel) == n)
		cv_mbuf_set_put(set);
}

// Nobody shows the bytes any more: neither a view nor a clone of one.
static void free_carrier(void *address, void *opaque)
{
	struct cv_mbuf_set *set = opaque;

	rte_pktmbuf_free(set->carrier);
	set->carrier = NULL;
	came_back(set, 1);
}

void cv_mbuf_set_drop(struct cv_mbuf_set *set, struct rte_mbuf **mbufs, uint32_t n)
{
	if (rte_mbuf_ext_refcnt_update(&set->shared, -(int16_t)n) == 0)
		free_carrier(NULL, set);
	came_back(set, n);
}

// A view as each set has it before its first use, and again after the program had it: what lies
// in the second cache line is not written when packets are received.
static void reset_view(struct rte_mbuf *view, struct cv_mbuf_set *set)
{
	view->next = NULL;
	view->nb_segs = 1;
	view->shinfo = &set->shared;
	view->priv_size = (uint16_t)(set->pool->stride - HEADER - sizeof(*view));
	view->tx_offload = 0;
}

static void add_set(struct cv_mbuf_set_pool *pool, struct cv_mbuf_set *set)
{
	memset(set, 0, pool->views_at + CV_MBUF_SET_VIEWS * pool->stride - HEADER);
	set->pool = pool;
	set->shared.free_cb = free_carrier;
	set->shared.fcb_opaque = set;
	for (uint32_t i = 0; i < CV_MBUF_SET_VIEWS; i++) {
		struct rte_mbuf *view = cv_mbuf_set_view(set, i);
		struct rte_mempool_objhdr *header = rte_mempool_get_header(view);

		header->next.stqe_next = (struct rte_mempool_objhdr *)(void *)set;
		header->mp = pool->mempool;
		header->iova = RTE_BAD_IOVA;
		view->pool = pool->mempool;
		reset_view(view, set);
	}
	rte_ring_mp_enqueue(pool->free, set);
}

// The views that a program frees come here, a few or many at once.
static int enqueue(struct rte_mempool *mempool, void *const *objects, unsigned n)
{
	struct cv_mbuf_set_pool *pool = mempool->pool_config;

	if (!pool->ready) {
		for (unsigned i = 0; i < n; i++)
			add_set(pool, objects[i]);
		return 0;
	}
	for (unsigned i = 0; i < n;) {
		struct cv_mbuf_set *set = cv_mbuf_set_of(objects[i]);
		unsigned run = 0;

		while (i < n && cv_mbuf_set_of(objects[i]) == set) {
			reset_view(objects[i++], set);
			run++;
		}
		came_back(set, run);
	}
	return 0;
}

// Programs take mbufs from where a packet came from, for copies and clones: from their own pool.
static int dequeue(struct rte_mempool *mempool, void **objects, unsigned n)
{
	struct cv_mbuf_set_pool *pool = mempool->pool_config;

	return rte_mempool_get_bulk(pool->program, objects, n);
}

static unsigned count_free(const struct rte_mempool *mempool)
{
	const struct cv_mbuf_set_pool *pool = mempool->pool_config;

	return rte_ring_count(pool->free);
}

static int allocate(struct rte_mempool *mempool)
{
	return 0;
}

static void release(struct rte_mempool *mempool)
{
}

static const struct rte_mempool_ops ops = {
	.name = "convoy_views",
	.alloc = allocate,
	.free = release,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.get_count = count_free,
};

static int make_pool(struct cv_mbuf_set_pool *pool, struct rte_mempool *program, uint32_t sets)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = 0,
		.mbuf_priv_size = rte_pktmbuf_priv_size(program),
	};
	char name[RTE_MEMZONE_NAMESIZE];

	pool->index = (uint32_t)(pool - pools);
	pool->program = program;
	pool->sets = sets;
	pool->views_at = RTE_ALIGN(sizeof(struct cv_mbuf_set), RTE_CACHE_LINE_SIZE) + HEADER;
	pool->stride = HEADER + sizeof(struct rte_mbuf) +
		       RTE_ALIGN(private.mbuf_priv_size, RTE_CACHE_LINE_SIZE);
	snprintf(name, sizeof(name), "cv_free_%u", pool->index);
	pool->free = rte_ring_create(name, sets + 1, program->socket_id, RING_F_EXACT_SZ);
	snprintf(name, sizeof(name), "cv_views_%u", pool->index);
	pool->mempool = rte_mempool_create_empty(name, sets,
		pool->views_at + CV_MBUF_SET_VIEWS * pool->stride, 0, sizeof(private),
		program->socket_id, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool->free == NULL || pool->mempool == NULL)
		return -rte_errno;
	if (rte_mempool_set_ops_byname(pool->mempool, ops.name, pool) != 0)
		return -EINVAL;
	cv_mbuf_set_ops = pool->mempool->ops_index;
	rte_pktmbuf_pool_init(pool->mempool, &private);
	if (rte_mempool_populate_default(pool->mempool) != (int)sets)
		return -ENOMEM;
	pool->ready = true;
	return 0;
}

// Of as many sets as the program has mbufs, if there is memory for them; else of fewer.
static struct cv_mbuf_set_pool *add_pool(struct rte_mempool *program)
{
	struct cv_mbuf_set_pool *pool = &pools[pool_count];
	const uint32_t most = RTE_MIN(SETS_MAX, program->size);

	for (uint32_t sets = RTE_MAX(SETS_MIN, most); sets >= SETS_MIN; sets /= 4) {
		if (make_pool(pool, program, sets) == 0) {
			pool_count++;
			return pool;
		}
		rte_mempool_free(pool->mempool);
		rte_ring_free(pool->free);
		memset(pool, 0, sizeof(*pool));
	}
	return NULL;
}

bool cv_mbuf_set_pool_has(const struct rte_mempool *program)
{
	for (uint32_t i = 0; i < CV_MBUF_SET_POOLS_MAX; i++)
		if (pools[i].ready && pools[i].program == program)
			return true;
	return false;
}

struct cv_mbuf_set_pool *cv_mbuf_set_pool_get(struct rte_mempool *program)
{
	struct cv_mbuf_set_pool *pool = NULL;

	rte_spinlock_lock(&making);
	if (pool_count == 0) {
		// Registered but once: further pools find it by its name.
		pthread_key_create(&ending, put_back);
		rte_mempool_register_ops(&ops);
	}
	for (uint32_t i = 0; i < pool_count; i++)
		if (pools[i].program == program)
			pool = &pools[i];
	if (pool == NULL && pool_count < CV_MBUF_SET_POOLS_MAX)
		pool = add_pool(program);
	rte_spinlock_unlock(&making);
	return pool;
}

CV_HOT void cv_mbuf_set_show(struct cv_mbuf_set *set, struct rte_mbuf *carrier,
	const struct cv_convoy *convoy, const struct cv_view *views, struct rte_mbuf **mbufs)
{
	const uint64_t rearm = 0x000100010000 | (uint64_t)carrier->port << 48;
	const rte_iova_t iova = rte_pktmbuf_iova(carrier) - (uintptr_t)convoy->data;
	uint8_t *at = (uint8_t *)cv_mbuf_set_view(set, 0);
	struct rte_mempool *pool = set->pool->mempool;
	const uint32_t stride = set->pool->stride;

	set->carrier = carrier;
	set->convoy = *convoy;
	set->count = convoy->count;
	set->port = carrier->port;
	atomic_store_explicit(&set->away, convoy->count + 1u, memory_order_relaxed);
	rte_mbuf_ext_refcnt_set(&set->shared, convoy->count);
	for (uint32_t i = 0; i < convoy->count; i++) {
		struct rte_mbuf *view = (struct rte_mbuf *)at;
		const uint16_t len = views[i].len;

		view->buf_addr = views[i].data;
		view->buf_iova = iova + (uintptr_t)views[i].data;
		*cv_view_rearm(view) = rearm;
		view->ol_flags = RTE_MBUF_F_EXTERNAL;
		view->packet_type = 0;
		view->pkt_len = len;
		view->data_len = len;
		view->vlan_tci = 0;
		view->hash.fdir.lo = 0;
		view->hash.fdir.hi = 0;
		view->vlan_tci_outer = 0;
		view->buf_len = len;
		view->pool = pool;
		set->len[i] = len;
		mbufs[i] = view;
		at += stride;
	}
}
