// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/from_guest.h"

#include <rte_cycles.h>

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
	// Not from where it began: packets that were taken out may be before these.
	mbuf->data_off = (uint16_t)(data - (uint8_t *)mbuf->buf_addr);
	mbuf->data_len = (uint16_t)(end - data);
	mbuf->pkt_len = mbuf->data_len;
	return true;
}

// Coalesces what the ring has into n buffers at most, those that spares end with, the last one first.
// Returns into how many.
static CV_INLINE uint16_t receive(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, uint16_t n, struct cv_vring_buffer *coalesced,
	struct cv_view *views)
{
	const struct cv_outer *outer = from->outer;
	uint16_t used = cv_vring_ready(vring);

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
	return used;
}

// Makes frames of buffers. Returns how many.
static CV_INLINE uint16_t finish_all(struct cv_from_guest *from,
	const struct cv_vring_buffer *coalesced, const struct cv_view *views, uint16_t n,
	struct rte_mbuf **frames)
{
	unsigned first = 0;
	uint16_t took = 0;

	for (uint16_t i = 0; i < n; first += coalesced[i++].packets) {
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

CV_HOT uint16_t cv_from_guest_take(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	struct cv_vring_buffer coalesced[CV_FROM_BURST];
	struct cv_view views[CV_FROM_VIEWS];
	const uint16_t used = receive(from, vring, pool, n, coalesced, views);

	return finish_all(from, coalesced, views, used, frames);
}

// What waits becomes a frame. Returns how many: 0 or 1.
static uint16_t end_waiting(
	struct cv_from_guest *from, struct rte_mbuf **frame, struct cv_waiting_frame *waiting)
{
	const uint8_t *begin = waiting->frame.begin;
	const bool is_shared = waiting->of_count > 1;

	*frame = cv_waiting_frame_end(waiting);
	if (CV_UNLIKELY(*frame == NULL)) {
		from->refused++;
		return 0;
	}
	from->frames++;
	from->convoys += rte_pktmbuf_mtod(*frame, uint8_t *) < begin;
	from->shared += is_shared;
	return 1;
}

uint16_t cv_from_guest_take_due(
	struct cv_from_guest *from, struct rte_mbuf **frames, struct cv_waiting_frame *waiting)
{
	return cv_waiting_frame_is_due(waiting, from, rte_rdtsc())
		       ? end_waiting(from, frames, waiting)
		       : 0;
}

// Takes the first packets out of a buffer.
static void skip(struct cv_vring_buffer *buffer, const struct cv_view *views, uint16_t packets)
{
	const uint32_t bytes =
		(uint32_t)(views[packets].data - CV_CONVOY_PREFIX_LEN - buffer->data);

	buffer->data += bytes;
	buffer->room -= bytes;
	buffer->len -= bytes;
	buffer->packets -= packets;
}

// Makes frames of buffers, of which the last waits, unless it is full.
static uint16_t finish_but_last(struct cv_from_guest *from, const struct cv_vring_buffer *coalesced,
	const struct cv_view *views, uint16_t n, struct rte_mbuf **frames,
	struct cv_waiting_frame *waiting)
{
	const uint16_t took = finish_all(from, coalesced, views, n - 1, frames);
	const struct cv_vring_buffer *last = &coalesced[n - 1];

	for (uint16_t i = 0; i + 1 < n; i++)
		views += coalesced[i].packets;
	if (!cv_waiting_frame_begin(waiting, from, from->outer, from->spare[from->spares - 1],
		    last->data, last->data + last->len, (uint8_t)last->packets, views, rte_rdtsc()))
		return took + finish_all(from, last, views, 1, frames + took);
	from->spares--;
	return took;
}

uint16_t cv_from_guest_take_waiting(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n,
	struct cv_waiting_frame *waiting)
{
	struct cv_vring_buffer coalesced[CV_FROM_BURST];
	struct cv_view views[CV_FROM_VIEWS];
	uint16_t took, used, packets, added = 0;

	if (n == 0)
		return 0;
	took = n == 1 && cv_waiting_frame_is_of(waiting, from)
		       ? end_waiting(from, frames, waiting)
		       : cv_from_guest_take_due(from, frames, waiting);
	if (n == 1 && took == 0 && waiting->mbuf != NULL) // another queue's
		return cv_from_guest_take(from, vring, pool, frames, n);
	n -= took + (waiting->mbuf != NULL); // what waits may have to go before
	used = n > 0 ? receive(from, vring, pool, n, coalesced, views) : 0;
	if (used == 0)
		return took;
	if (waiting->mbuf == NULL)
		return took + finish_but_last(from, coalesced, views, used, frames + took, waiting);
	packets = coalesced[0].packets;
	if (used == 1) // else a full frame, at least
		added = cv_waiting_frame_add(waiting, from, views, packets);
	if (!cv_waiting_frame_is_of(waiting, from))
		return took + finish_all(from, coalesced, views, used, frames + took);
	if (added == packets && !cv_waiting_frame_is_full(waiting) &&
		!cv_waiting_frame_is_due(waiting, from, rte_rdtsc()))
		return took;
	took += end_waiting(from, frames + took, waiting);
	if (added == packets)
		return took;
	if (added > 0)
		skip(&coalesced[0], views, added);
	return took + finish_but_last(from, coalesced, views + added, used, frames + took, waiting);
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
	from->lost += cv_waiting_frames_drop(&from->waiting, from);
	drop_spares(from);
}
