// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>

#define LARGE_PAGE ((size_t)2 << 20)

static void free_pool(struct cv_shared_pool *own)
{
	if (own->mapped != NULL)
		munmap(own->mapped, own->layout.size + LARGE_PAGE);
	if (own->file >= 0)
		close(own->file);
	free(own->marks);
	free(own);
}

// As the mempool calls it when it is freed.
static void freed(struct rte_mempool_memhdr *chunk, void *own)
{
	(void)chunk;
	free_pool(own);
}

struct cv_shared_pool *cv_shared_pool_of(const struct rte_mempool *pool)
{
	const struct rte_mempool_memhdr *chunk = STAILQ_FIRST(&pool->mem_list);

	return chunk != NULL && chunk->free_cb == freed ? chunk->opaque : NULL;
}

static int make_file(uint64_t bytes)
{
	const int fd = memfd_create("convoy-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	// Nobody can take the memory back.
	if (ftruncate(fd, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool map(struct cv_shared_pool *own)
{
	const size_t bytes = own->layout.size;
	void *mapped = mmap(NULL, bytes + LARGE_PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapped == MAP_FAILED)
		return false;
	own->mapped = mapped;
	own->base = RTE_PTR_ALIGN_CEIL(mapped, LARGE_PAGE);
	own->file = make_file(bytes);
	if (own->file < 0 || mmap(own->base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				     own->file, 0) != own->base)
		return false;
	madvise(own->base, bytes, MADV_HUGEPAGE); // a kernel without them refuses: small pages then
	return true;
}

static void check_place(struct rte_mempool *pool, void *own, void *object, unsigned number)
{
	struct cv_shared_pool *shared = own;

	(void)pool;
	// One behind the other, as the members count them.
	if ((uint8_t *)object != (uint8_t *)cv_shared_mbuf(&shared->buffers, number))
		shared->buffers.count = 0;
}

// False: own is freed, or the pool's.
static bool populate(struct rte_mempool *pool, struct cv_shared_pool *own)
{
	const size_t bytes = own->layout.size - own->layout.data;
	uint8_t *data = own->base + own->layout.data;
	int rc;

	own->buffers = (struct cv_shared_buffers){.pool = pool,
		.mbufs = data + pool->header_size,
		.data = data + own->layout.first,
		.mbuf_stride = own->layout.stride,
		.data_stride = own->layout.stride,
		.count = pool->size,
		.room = own->layout.room,
		.reciprocal = cv_shared_reciprocal(own->layout.stride),
		.marks = own->marks};
	rc = rte_mempool_populate_iova(
		pool, (char *)data, (rte_iova_t)(uintptr_t)data, bytes, freed, own);
	if (rc <= 0)
		free_pool(own);
	if (rc != (int)pool->size)
		return false;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	rte_mempool_obj_iter(pool, check_place, own);
	return own->buffers.count == pool->size; // else freed with the pool
}

struct rte_mempool *cv_shared_pool_create(
	const char *name, unsigned n, unsigned cache, uint16_t room, struct cv_error *error)
{
	struct rte_pktmbuf_pool_private layout = {.mbuf_data_room_size = room};
	struct rte_mempool *pool = rte_mempool_create_empty(name, n,
		(unsigned)sizeof(struct rte_mbuf) + room, cache, sizeof(layout), SOCKET_ID_ANY,
		RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NO_SPREAD);
	struct cv_shared_pool *own = calloc(1, sizeof(*own));

	if (pool == NULL || own == NULL)
		goto fail;
	rte_pktmbuf_pool_init(pool, &layout);
	own->file = -1;
	own->layout = (struct cv_shared_layout){.buffers = n,
		.stride = pool->header_size + pool->elt_size + pool->trailer_size,
		.first = pool->header_size + (uint32_t)sizeof(struct rte_mbuf),
		.room = room};
	own->marks = malloc(n);
	if (own->marks == NULL || !cv_shared_layout_make(&own->layout) || !map(own) ||
		rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) != 0)
		goto fail;
	memset(own->marks, 1, n);
	if (populate(pool, own))
		return pool;
	own = NULL;
fail:
	if (own != NULL)
		free_pool(own);
	rte_mempool_free(pool);
	cv_error_set(error, "no memory to share for %u packets of %u bytes", n, room);
	return NULL;
}
