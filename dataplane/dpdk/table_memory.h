// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Memory for large tables that DPDK makes: on large pages, also where there are no hugepages. DPDK's
// own memory is then a file of the kernel's, on small pages: a look-up in a large table misses the
// TLB as well as the caches.
#ifndef CV_TABLE_MEMORY_H
#define CV_TABLE_MEMORY_H

#include <stddef.h>

// The NUMA node to tell rte_fib_create() and the like, for tables of about this many bytes in all:
// where there are no hugepages, that of a heap of DPDK's with room for them. It grows by what is
// missing, up to the limit, and does not shrink: what was freed in it is used again. All that it
// grows by is touched. SOCKET_ID_ANY, DPDK's memory, with hugepages, or where that fails; tables
// that turn out to be larger do not fit, and may be tried there. Needs the EAL; by one thread at a
// time.
int cv_table_memory(size_t bytes);

// Bytes that the heap grows to at most; at first as many as there are. Before it is used.
void cv_table_memory_limit(size_t bytes);

#endif
