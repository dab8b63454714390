// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/from_guest.h"

#include "convoy/frame_inline.h"
#include "convoy/may_be.h"
#include "convoy/walk.h"

static void drop_spares(struct cv_from_guest *from)
{
	rte_pktmbuf_free_bulk(from->spare, from->spares);
	from->spares = 0;
}

// Buffers for n frames: those that are not used this time are kept for the next, since n packets
// need a few only. Returns for how many there are.
static CV_INLINE uint16_t get_spares(
	struct cv_from_guest *from, struct rte_mempool *pool, uint16_t n)
{
	if (CV_UNLIKELY(pool != from->pool))
		drop_spares(from);
	from->pool = pool;
	if (from->spares < n &&
		rte_pktmbuf_alloc_bulk(pool, from->spare + from->spares, n - from->spares) == 0)
		from->spares = n;
	return RTE_MIN(from->spares, n);
}

static __rte_noinline bool is_convoy(const struct cv_view *packet, rte_be16_t port)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_convoy convoy;

	return cv_convoy_walk(&convoy, views, packet, port) == CV_CONVOY_OK;
}

// A coalesced buffer becomes a convoy; a single packet stays what it is unless it looks like a
// convoy. False: such a packet does not fit into one. Where none are made, only what another guest's
// queue would disaggregate is held off.
static CV_INLINE bool finish(struct cv_from_guest *from, struct rte_mbuf *mbuf,
	const struct cv_vring_buffer *coalesced, const struct cv_view *first)
{
	const struct cv_outer *outer = from->outer;
	const uint8_t *end = coalesced->data + coalesced->len;
	const uint8_t *data = first->data;

	if (CV_LIKELY(outer->len > 0))
		data = cv_frame_make(
			outer, coalesced->data, end, (uint8_t)coalesced->packets, first);
	else if (CV_UNLIKELY(cv_may_be_convoy(first, from->port)) && is_convoy(first, from->port))
		data = NULL;
	if (CV_UNLIKELY(data == NULL))
		return false;
	from->convoys += data < coalesced->data;
	mbuf->data_off += (uint16_t)(data - coalesced->data);
	mbuf->data_len = (uint16_t)(end - data);
	mbuf->pkt_len = mbuf->data_len;
	return true;
}

CV_HOT uint16_t cv_from_guest_take(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	const struct cv_outer *outer = from->outer;
	struct cv_vring_buffer coalesced[CV_FROM_BURST];
	struct cv_view views[CV_FROM_VIEWS];
	unsigned first = 0;
	uint16_t used, took = 0;

	used = cv_vring_ready(vring);
	if (used == 0)
		return 0;
	// The packed ring does not say how many there are.
	used = get_spares(from, pool, vring->is_packed ? n : RTE_MIN(n, used));
	for (uint16_t i = 0; i < used; i++) {
		struct rte_mbuf *mbuf = from->spare[from->spares - 1 - i];

		coalesced[i].data = rte_pktmbuf_mtod(mbuf, uint8_t *);
		coalesced[i].room = rte_pktmbuf_tailroom(mbuf);
		// Not even two fit where nothing is to be coalesced.
		coalesced[i].coalesced_max =
			outer->len > 0 ? RTE_MIN(coalesced[i].room,
						 (uint32_t)outer->frame_max - outer->len)
				       : 0;
	}
	cv_vring_coalesce(vring, views, CV_FROM_VIEWS, coalesced, &used);
	for (uint16_t i = 0; i < used; first += coalesced[i++].packets) {
		struct rte_mbuf *mbuf = from->spare[--from->spares];

		if (CV_LIKELY(finish(from, mbuf, &coalesced[i], &views[first]))) {
			frames[took++] = mbuf;
		} else {
			from->refused++;
			rte_pktmbuf_free(mbuf);
		}
	}
	from->frames += took;
	return took;
}

uint16_t cv_from_guest_sift(struct cv_from_guest *from, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		// As far as that is looked at; rarely in pieces.
		const uint32_t len = RTE_MIN(frames[i]->pkt_len, (uint32_t)CV_OUTER_MAX);
		uint8_t copy[CV_OUTER_MAX];
		struct cv_view packet = {0};

		cv_view_set(&packet,
			(uint8_t *)(uintptr_t)rte_pktmbuf_read(frames[i], 0, len, copy),
			(uint16_t)len);
		if (CV_LIKELY(!cv_may_be_convoy(&packet, from->port))) {
			frames[kept++] = frames[i];
		} else {
			from->refused++;
			rte_pktmbuf_free(frames[i]);
		}
	}
	return kept;
}

void cv_from_guest_drop(struct cv_from_guest *from)
{
	drop_spares(from);
}
