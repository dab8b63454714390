// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Buffers that hold the packets of a sequence of views: one each, or many one behind the other.
#ifndef CV_BUFFERS_H
#define CV_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define CV_BUFFERS_MAX 64
#define CV_VIEWS_MAX 256 // views that one rx_views call gives at most

// The first views[0] of the views lie in buffers[0], the next views[1] in buffers[1], and so on: no
// buffer is without a view, so that there are as many buffers as views where each has its own.
//
// Where a buffer holds several packets they lie in the views' order as in a convoy frame: 16-bit
// length (network order), packet, 16-bit length, packet; and before the first length is room for
// an outer header, CV_OUTER_MAX bytes (convoy/outer.h) if the frame is to leave without a copy.
// Where it holds one, that packet is all of its data (cv_buffer_set).
struct cv_buffers {
	uint16_t n; // buffers
	uint8_t views[CV_BUFFERS_MAX]; // 1 to 255
	struct rte_mbuf *buffers[CV_BUFFERS_MAX];
};

// Makes those bytes of a buffer in one segment its data, which it may be already.
static inline void cv_buffer_set(struct rte_mbuf *buffer, const uint8_t *data, uint32_t len)
{
	if (rte_pktmbuf_mtod(buffer, const uint8_t *) == data && buffer->pkt_len == len)
		return;
	buffer->data_off = (uint16_t)(data - (const uint8_t *)buffer->buf_addr);
	buffer->data_len = (uint16_t)len;
	buffer->pkt_len = len;
	// What a driver found out about the data before.
	buffer->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
}

// Is it its only reference, in one piece, and its pool's own? Then it goes back as it is.
static inline bool cv_buffer_is_simple(
	const struct rte_mbuf *buffer, const struct rte_mempool *pool)
{
	return rte_mbuf_refcnt_read(buffer) == 1 && buffer->nb_segs == 1 &&
	       RTE_MBUF_DIRECT(buffer) && buffer->pool == pool;
}

// As rte_pktmbuf_free_bulk(), which checks one by one, where all are simple as nearly always.
static inline void cv_buffers_free(struct rte_mbuf **buffers, unsigned n)
{
	struct rte_mempool *const pool = n > 0 ? buffers[0]->pool : NULL;
	bool simple = n > 0;

	for (unsigned i = 0; i < n; i++)
		simple &= cv_buffer_is_simple(buffers[i], pool);
	if (simple)
		rte_mempool_put_bulk(pool, (void *const *)buffers, n);
	else
		rte_pktmbuf_free_bulk(buffers, n);
}

#endif
