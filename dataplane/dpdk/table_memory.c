// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "dpdk/table_memory.h"

#include <stdint.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#define HEAP "tables"
#define LARGE_PAGE ((size_t)2 << 20)

static size_t limit = SIZE_MAX;

void cv_table_memory_limit(size_t bytes)
{
	limit = bytes;
}

static bool grow(size_t bytes)
{
	char *mapped, *memory;

	mapped = mmap(NULL, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return false;
	memory = RTE_PTR_ALIGN_CEIL(mapped, LARGE_PAGE);
	madvise(memory, bytes, MADV_HUGEPAGE); // a kernel without them refuses: small pages then
	if (rte_malloc_heap_memory_add(HEAP, memory, bytes, NULL, bytes / LARGE_PAGE, LARGE_PAGE) ==
		0)
		return true;
	munmap(mapped, bytes + LARGE_PAGE);
	return false;
}

int cv_table_memory(size_t bytes)
{
	struct rte_malloc_socket_stats stats = {0};
	int socket = rte_malloc_heap_get_socket(HEAP);
	// An estimate, and what lies between tables.
	const size_t need = RTE_ALIGN_CEIL(bytes + bytes / 16 + LARGE_PAGE, LARGE_PAGE);

	if (rte_eal_has_hugepages() || need > limit)
		return SOCKET_ID_ANY;
	if (socket < 0 && rte_malloc_heap_create(HEAP) == 0)
		socket = rte_malloc_heap_get_socket(HEAP);
	if (socket < 0)
		return SOCKET_ID_ANY;
	rte_malloc_get_socket_stats(socket, &stats);
	if (stats.greatest_free_size >= need)
		return socket;
	return stats.heap_totalsz_bytes <= limit - need && grow(need) ? socket : SOCKET_ID_ANY;
}
