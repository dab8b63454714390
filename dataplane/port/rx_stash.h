// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Empty buffers for a port that copies what it receives: taken from the pool in bulk, before it is
// known how many packets there are; what is left waits for the next call.
#ifndef CV_RX_STASH_H
#define CV_RX_STASH_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "packet/compiler.h"

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

// An empty buffer becomes a packet, or several: what rte_pktmbuf_alloc() would set, and where. By
// words, as drivers do it: buffers come back to the pool with one reference, one segment and no next.
static CV_INLINE void cv_rx_stash_set(struct rte_mbuf *mbuf, uint16_t offset, uint16_t len)
{
	uint64_t *words = (uint64_t *)(void *)&mbuf->rearm_data;

	static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are composed here");
	static_assert(
		offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
			offsetof(struct rte_mbuf, nb_segs) ==
				offsetof(struct rte_mbuf, data_off) + 4 &&
			offsetof(struct rte_mbuf, port) ==
				offsetof(struct rte_mbuf, data_off) + 6 &&
			offsetof(struct rte_mbuf, ol_flags) ==
				offsetof(struct rte_mbuf, data_off) + 8 &&
			offsetof(struct rte_mbuf, packet_type) ==
				offsetof(struct rte_mbuf, data_off) + 16 &&
			offsetof(struct rte_mbuf, pkt_len) ==
				offsetof(struct rte_mbuf, data_off) + 20 &&
			offsetof(struct rte_mbuf, data_len) ==
				offsetof(struct rte_mbuf, data_off) + 24 &&
			offsetof(struct rte_mbuf, vlan_tci) ==
				offsetof(struct rte_mbuf, data_off) + 26,
		"as in DPDK since 20.11");
	words[0] = offset | 1ull << 16 | 1ull << 32 | (uint64_t)RTE_MBUF_PORT_INVALID << 48;
	words[1] = 0; // ol_flags, by which nobody reads a hash or a VLAN tag
	words[2] = (uint64_t)len << 32; // packet_type, pkt_len
	words[3] = len; // data_len, vlan_tci, half of the hash
}

static inline void cv_rx_stash_empty(struct cv_rx_stash *rx, struct rte_mempool *pool)
{
	rte_mempool_put_bulk(pool, (void **)rx->stash, rx->stashed);
	rx->stashed = 0;
}

#endif
