// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/to_guest.h"

#include "convoy/walk.h"

#define BURST 64 // frames disaggregated in one go
#define VIEWS (256 + CV_CONVOY_PACKETS_MAX)

// The packets of one frame. Returns how many.
static CV_INLINE unsigned unpack(
	const struct cv_to_guest *to, struct rte_mbuf *frame, struct cv_view *views)
{
	struct cv_convoy convoy;
	struct cv_view whole = {0};

	cv_view_set(&whole, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
	if (cv_convoy_walk(&convoy, views, &whole, to->port) == CV_CONVOY_OK)
		return convoy.count;
	views[0] = whole;
	return 1;
}

static CV_INLINE bool in_one_piece(struct rte_mbuf *frame)
{
	return CV_LIKELY(frame->nb_segs == 1) || rte_pktmbuf_linearize(frame) == 0;
}

// Puts the packets of frames, as far as there is room; of the first one all but *done. Returns of
// how many frames the guest has all packets; *done: how many it has of the next.
static CV_INLINE uint16_t put(struct cv_to_guest *to, struct cv_vring *vring,
	struct rte_mbuf **frames, uint16_t n, unsigned *done)
{
	struct cv_view views[VIEWS];
	uint16_t sent = 0;

	while (sent < n) {
		uint16_t ends[BURST], end = 0;
		unsigned count = 0, before = *done, took;

		while (sent + end < n && end < BURST && count + CV_CONVOY_PACKETS_MAX <= VIEWS &&
			in_one_piece(frames[sent + end])) {
			count += unpack(to, frames[sent + end], views + count);
			ends[end++] = (uint16_t)count;
		}
		if (CV_UNLIKELY(end == 0))
			break;
		to->convoys = count > end;
		before = RTE_MIN(before, ends[0]); // whoever else has the frame may have changed it
		took = before + cv_vring_enqueue(vring, views + before, (uint16_t)(count - before));
		*done = 0;
		for (uint16_t i = 0; i < end; i++) {
			const unsigned from = i > 0 ? ends[i - 1] : 0;

			if (CV_UNLIKELY(ends[i] > took)) {
				*done = took - from;
				return sent;
			}
			to->opened += ends[i] - from > 1;
			sent++;
		}
	}
	return sent;
}

static void set_count(struct cv_to_guest *to, unsigned count)
{
	__atomic_store_n(&to->count, (uint16_t)count, __ATOMIC_RELAXED);
}

// Takes over as many frames as may wait.
static uint16_t hold(struct cv_to_guest *to, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t took = 0;

	if (to->first > 0)
		memmove(to->held, to->held + to->first, to->count * sizeof(*to->held));
	to->first = 0;
	while (took < n && to->count < CV_HELD_MAX && frames[took]->nb_segs == 1) {
		// The program frees it when it likes, and the bytes stay.
		rte_mbuf_refcnt_update(frames[took], 1);
		to->held[to->count] = frames[took++];
		set_count(to, to->count + 1u);
	}
	return took;
}

bool cv_to_guest_flush(struct cv_to_guest *to, struct cv_vring *vring)
{
	const uint16_t sent = put(to, vring, to->held + to->first, to->count, &to->done);

	rte_pktmbuf_free_bulk(to->held + to->first, sent);
	to->first += sent;
	set_count(to, to->count - sent);
	return to->count == 0;
}

CV_HOT uint16_t cv_to_guest_put(
	struct cv_to_guest *to, struct cv_vring *vring, struct rte_mbuf **frames, uint16_t n)
{
	unsigned done = 0;
	uint16_t sent = 0;

	if (CV_LIKELY(to->count == 0) || cv_to_guest_flush(to, vring)) {
		sent = put(to, vring, frames, n, &done);
		if (CV_LIKELY(sent == n) || !to->convoys)
			return sent;
		to->done = done;
	}
	return sent + hold(to, frames + sent, n - sent);
}

void cv_to_guest_drop(struct cv_to_guest *to)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];

	for (uint16_t i = 0; i < to->count; i++)
		to->lost += unpack(to, to->held[to->first + i], views);
	to->lost -= to->done;
	rte_pktmbuf_free_bulk(to->held + to->first, to->count);
	to->first = 0;
	to->done = 0;
	set_count(to, 0);
}
