// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Empty buffers for a port that copies what it receives: taken from the pool in bulk, before it is
// known how many packets there are; what is left waits for the next call.
#ifndef CV_RX_STASH_H
#define CV_RX_STASH_H

#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "packet/compiler.h"
#include "packet/mbuf_set.h"

#define CV_RX_STASH 64 // packets with a buffer each that one rx call gives

struct cv_rx_stash {
	uint16_t stashed;
	uint64_t no_buffer; // times that the pool had none
	struct rte_mbuf *stash[CV_RX_STASH]; // taken from the pool, still empty
};

// Makes sure of n empty buffers, or as many as the pool has. Returns how many.
static CV_INLINE uint16_t cv_rx_stash_fill(
	struct cv_rx_stash *rx, struct rte_mempool *pool, uint16_t n)
{
	const uint16_t missing = n - rx->stashed;

	if (rx->stashed >= n)
		return n;
	if (CV_LIKELY(rte_mempool_get_bulk(pool, (void **)&rx->stash[rx->stashed], missing) == 0)) {
		rx->stashed = n;
		return n;
	}
	rx->no_buffer++;
	return rx->stashed;
}

static inline void cv_rx_stash_empty(struct cv_rx_stash *rx, struct rte_mempool *pool)
{
	rte_mempool_put_bulk(pool, (void **)rx->stash, rx->stashed);
	rx->stashed = 0;
}

#endif
