// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Memory of tables that are read at random, and stay with the process: in large pages where the kernel has some, so that a new
// flow does not wait for page walks.
#ifndef CV_NAT_MEMORY_H
#define CV_NAT_MEMORY_H

#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>

// Places of a bucket's list that are walked. With keyed hashes and no more entries than buckets none has a
// quarter of it: what is longer is a ring, which another process wrote.
#define CV_NAT_CHAIN_MAX 64

#define CV_NAT_LARGE_PAGE ((size_t)2 << 20)

// As calloc(), for free(). A kernel without large pages refuses: small ones then.
static inline void *cv_nat_zalloc(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes), *first;

	if (memory == NULL || count * bytes < 2 * CV_NAT_LARGE_PAGE)
		return memory;
	first = RTE_PTR_ALIGN_CEIL(memory, CV_NAT_LARGE_PAGE);
	madvise(first, RTE_PTR_DIFF(RTE_PTR_ADD(memory, count * bytes), first), MADV_HUGEPAGE);
	return memory;
}

#endif
