// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/packet_pool.h"

#include <errno.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include "packet/view.h"

#define LARGE_PAGE ((size_t)2 << 20)

// mapped: with a page more than the chunk, to align it by.
static void unmap(struct rte_mempool_memhdr *chunk, void *mapped)
{
	munmap(mapped, chunk->len + LARGE_PAGE);
}

// Gives a pool memory of this process for all its buffers, one chunk, which is freed with the
// pool. Returns whether it is enough.
static bool populate(struct rte_mempool *pool)
{
	struct rte_mempool_objsz size;
	char *mapped, *chunk;
	size_t bytes;
	int rc;

	rte_mempool_calc_obj_size(pool->elt_size, pool->flags, &size);
	bytes = RTE_ALIGN_CEIL(pool->size * (size_t)size.total_size, LARGE_PAGE);
	mapped = mmap(NULL, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return false;
	chunk = RTE_PTR_ALIGN_CEIL(mapped, LARGE_PAGE);
	madvise(chunk, bytes, MADV_HUGEPAGE); // a kernel without them refuses: small pages then
	rc = rte_mempool_populate_iova(
		pool, chunk, (rte_iova_t)(uintptr_t)chunk, bytes, unmap, mapped);
	if (rc <= 0)
		munmap(mapped, bytes + LARGE_PAGE);
	return rc == (int)pool->size;
}

struct rte_mempool *cv_packet_pool_create(
	const char *name, unsigned n, unsigned cache, uint16_t room, bool shares)
{
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = room};
	struct rte_mempool *pool;

	if (shares || rte_eal_has_hugepages())
		return rte_pktmbuf_pool_create(name, n, cache, 0, room, SOCKET_ID_ANY);
	// No device reads them, so that a buffer need not lie within one small page.
	pool = rte_mempool_create_empty(name, n, sizeof(struct rte_mbuf) + room, cache,
		sizeof(layout), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(pool, &layout);
	if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0 ||
		!populate(pool)) {
		rte_mempool_free(pool);
		rte_errno = ENOMEM;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

bool cv_packet_pool_fits(struct rte_mempool *pool, uint16_t mtu, struct cv_error *error)
{
	const unsigned room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	const unsigned frame = mtu + CV_ETHER_LEN + 2 * CV_VLAN_LEN;

	if (frame > room)
		cv_error_set(error,
			"mtu: %u: its frames of %u bytes do not fit into the node's buffers of %u",
			mtu, frame, room);
	return frame <= room;
}
