// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#ifndef CV_MBUF_SET_H
#define CV_MBUF_SET_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/compiler.h"

// An empty buffer becomes a packet, or several: what rte_pktmbuf_alloc() would set, and where. By
// words, as drivers do it: buffers come back to the pool with one reference, one segment and no next.
static CV_INLINE void cv_mbuf_set(struct rte_mbuf *mbuf, uint16_t offset, uint16_t len)
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

#endif
