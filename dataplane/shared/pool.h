// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The owner's pool: a mempool like any other whose buffers lie in a file of memory, so that other
// processes may have it mapped.
#ifndef CV_SHARED_POOL_H
#define CV_SHARED_POOL_H

#include "packet/error.h"
#include "shared/queue.h"

struct cv_shared_pool {
	struct cv_shared_layout layout;
	struct cv_shared_buffers buffers;
	uint8_t *base; // of all of the memory
	void *mapped; // with what it takes to begin at a multiple of a large page
	int file;
	uint8_t *marks; // the owner's own: 0: another process has the buffer
};

// As rte_pktmbuf_pool_create(): n buffers of room bytes each, headroom included, of which every lcore
// keeps up to cache. rte_mempool_free() frees all of it. NULL with error set.
struct rte_mempool *cv_shared_pool_create(
	const char *name, unsigned n, unsigned cache, uint16_t room, struct cv_error *error);

// NULL: it is another kind of pool.
struct cv_shared_pool *cv_shared_pool_of(const struct rte_mempool *pool);

#endif
