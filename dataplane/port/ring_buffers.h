// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Buffers between a node and a ring that is shared with a peer (vhost-user, memif): from the stash
// into which packets are copied, and of the packets that are copied out.
#ifndef CV_RING_BUFFERS_H
#define CV_RING_BUFFERS_H

#include "packet/compiler.h"
#include "packet/view.h"
#include "port/buffers.h"
#include "port/kind.h"
#include "port/rx_stash.h"
#include "vring/vring.h"

#define CV_RING_PACKET_MAX 65535u

// Headers that a frame of coalesced packets may get without a copy: IPv4, UDP, convoy. What is
// coalesced into one buffer leaves room for them within the MTU.
#define CV_RING_OUTER_BYTES (20u + 8 + 4)

// Offers n <= CV_RX_STASH empty buffers, or as many as the pool has: packets, and where the data of
// each goes, *room bytes at most. Returns how many; those that are used are then taken off
// rx->stashed.
static CV_INLINE uint16_t cv_ring_offer(struct cv_rx_stash *rx, struct rte_mempool *pool,
	uint16_t n, struct rte_mbuf **packets, uint8_t **to, uint16_t *room)
{
	n = cv_rx_stash_fill(rx, pool, RTE_MIN(n, CV_RX_STASH));
	// From the end: what is left stays where it is.
	for (uint16_t i = 0; i < n; i++) {
		packets[i] = rx->stash[rx->stashed - 1 - i];
		to[i] = (uint8_t *)packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;
		CV_PREFETCH_WRITE(to[i]);
	}
	*room = n > 0 ? packets[0]->buf_len - RTE_PKTMBUF_HEADROOM : 0;
	return n;
}

// The same for buffers of several packets each.
static CV_INLINE uint16_t cv_ring_offer_coalesced(struct cv_rx_stash *rx, struct rte_mempool *pool,
	uint16_t n, uint16_t mtu, struct rte_mbuf **buffers, struct cv_vring_buffer *coalesced)
{
	n = cv_rx_stash_fill(rx, pool, n);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = rx->stash[rx->stashed - 1 - i];
		// A single packet may be as long as the MTU lets it.
		const uint32_t room = mbuf->buf_len - RTE_PKTMBUF_HEADROOM;

		buffers[i] = mbuf;
		coalesced[i].data = (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
		coalesced[i].room = room;
		coalesced[i].coalesced_max = RTE_MIN(room, mtu - CV_RING_OUTER_BYTES);
	}
	return n;
}

// The first `used` of those buffers were filled.
static CV_INLINE void cv_ring_coalesced(
	struct cv_buffers *buffers, const struct cv_vring_buffer *coalesced, uint16_t used)
{
	for (uint16_t i = 0; i < used; i++) {
		const bool single = coalesced[i].packets == 1;

		// A single packet is all that its buffer holds.
		cv_mbuf_set(buffers->buffers[i], RTE_PKTMBUF_HEADROOM + (single ? 2 : 0),
			(uint16_t)(coalesced[i].len - (single ? 2 : 0)));
		buffers->views[i] = (uint8_t)coalesced[i].packets;
	}
	buffers->n = used;
}

// Makes views of the first packets of n; *simple becomes false where one cannot go back to pool as
// it is. One in several segments is linearized in bounce. Returns how many: 1 to CV_RX_STASH.
static CV_INLINE uint16_t cv_ring_views(struct rte_mbuf **packets, uint16_t n,
	struct cv_view *views, const struct rte_mempool *pool, bool *simple, uint8_t *bounce)
{
	n = RTE_MIN(n, CV_RX_STASH);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		*simple &= cv_buffer_is_simple(packet, pool);
		views[i].data = rte_pktmbuf_mtod(packet, uint8_t *);
		views[i].len = packet->data_len;
		views[i].before = 0;
		if (CV_LIKELY(packet->nb_segs == 1))
			continue;
		// One at a time: there is one place for it.
		if (i > 0)
			return i;
		views[i].len = (uint16_t)RTE_MIN(packet->pkt_len, CV_RING_PACKET_MAX);
		views[i].data =
			(uint8_t *)(uintptr_t)rte_pktmbuf_read(packet, 0, views[i].len, bounce);
		return 1;
	}
	return n;
}

// n packets were copied out.
static CV_INLINE void cv_ring_free(
	struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t n, bool simple)
{
	if (CV_LIKELY(simple))
		rte_mempool_put_bulk(pool, (void *const *)packets, n);
	else
		rte_pktmbuf_free_bulk(packets, n);
}

#endif
