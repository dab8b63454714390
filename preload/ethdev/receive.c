// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/receive.h"

#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "packet/ether.h"
#include "packet/udp.h"

// The shortest frame that can be a convoy: IPv4, one packet that is nothing but its header.
#define SHORTEST                                                                 \
	(CV_ETHER_LEN + 20 + CV_UDP_LEN + CV_CONVOY_LEN + CV_CONVOY_PREFIX_LEN + \
		CV_CONVOY_PACKET_MIN)
#define AHEAD 16 // frames that are taken from the driver at once when they are convoys

static CV_INLINE void prefetch_frame(const struct rte_mbuf *frame)
{
	const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);

	for (uint32_t at = 0; at < frame->data_len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(data + at);
}

// Whether the frame must be looked into at all.
static CV_INLINE bool is_long_enough(const struct rte_mbuf *frame)
{
	return frame->pkt_len >= SHORTEST && frame->pkt_len <= UINT16_MAX;
}

static CV_INLINE struct rte_mbuf *first(const struct cv_rx_queue *queue)
{
	return queue->stash[queue->stash_at];
}

static CV_INLINE void next(struct cv_rx_queue *queue)
{
	queue->stash_at++;
	queue->walked = false;
}

// Empty before, and convoys come; false: it still is.
static CV_INLINE bool fill_stash(struct cv_rx_queue *queue)
{
	queue->stash_at = 0;
	queue->stash_count = queue->receive(queue->driver, queue->stash, AHEAD);
	queue->counts.frames += queue->stash_count;
	if (queue->stash_count == 0)
		return false;
	for (uint16_t i = 0; i < queue->stash_count; i++)
		if (is_long_enough(queue->stash[i]))
			rte_prefetch0(rte_pktmbuf_mtod(queue->stash[i], void *));
	prefetch_frame(queue->stash[0]);
	return true;
}

// Makes the frame one piece, if it is not and there is room behind its first.
static bool is_whole(struct rte_mbuf *frame)
{
	return CV_LIKELY(frame->nb_segs == 1) || rte_pktmbuf_linearize(frame) == 0;
}

// What the first frame of the stash is: its convoy and views are in the queue if it is one.
static CV_INLINE enum cv_convoy_reason classify(struct cv_rx_queue *queue)
{
	struct rte_mbuf *frame = first(queue);
	struct cv_view view;

	if (queue->walked)
		return CV_CONVOY_OK;
	if (!is_long_enough(frame) || !is_whole(frame))
		return CV_CONVOY_NOT_A_CONVOY;
	cv_view_set(&view, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
	view.in = view.out = 0;
	return cv_convoy_walk(&queue->convoy, queue->views, &view, queue->port);
}

// Copies a packet into mbuf, and puts that at *at. False: it does not fit, and is lost.
static CV_INLINE bool copy_packet(struct cv_rx_queue *queue, struct rte_mbuf *mbuf,
	const struct cv_view *view, uint16_t port, struct rte_mbuf **at)
{
	if (CV_UNLIKELY(rte_pktmbuf_tailroom(mbuf) < view->len)) {
		rte_pktmbuf_free(mbuf);
		queue->counts.no_buffer++;
		return false;
	}
	rte_memcpy(rte_pktmbuf_mtod(mbuf, void *), view->data, view->len);
	mbuf->data_len = view->len;
	mbuf->pkt_len = view->len;
	mbuf->port = port;
	if (queue->from.id != 0)
		cv_return_name_set(mbuf, queue->from);
	*at = mbuf;
	return true;
}

// As many as there are buffers for; the rest are lost, as a driver loses what it has none for.
static uint16_t copy_some(struct cv_rx_queue *queue, struct rte_mbuf **mbufs)
{
	struct rte_mbuf *frame = first(queue);
	uint16_t n = 0;

	for (uint16_t i = 0; i < queue->convoy.count; i++) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(frame->pool);

		if (mbuf == NULL)
			queue->counts.no_buffer++;
		else
			n += copy_packet(queue, mbuf, &queue->views[i], frame->port, &mbufs[n]);
	}
	queue->counts.copied += n;
	rte_pktmbuf_free(frame);
	return n;
}

// The packets of the first frame in buffers of their own, from where the frame's came; as if the
// driver had received them one by one.
static uint16_t copy_apart(struct cv_rx_queue *queue, struct rte_mbuf **mbufs)
{
	struct rte_mbuf *frame = first(queue);
	const uint16_t count = queue->convoy.count;
	uint16_t n = 0;

	if (CV_UNLIKELY(rte_pktmbuf_alloc_bulk(frame->pool, mbufs, count) != 0))
		return copy_some(queue, mbufs);
	for (uint16_t i = 0; i < count; i++)
		n += copy_packet(queue, mbufs[i], &queue->views[i], frame->port, &mbufs[n]);
	queue->counts.copied += n;
	rte_pktmbuf_free(frame);
	return n;
}

static CV_INLINE void set_once(_Atomic bool *flag)
{
	if (CV_UNLIKELY(!atomic_load_explicit(flag, memory_order_relaxed)))
		atomic_store_explicit(flag, true, memory_order_relaxed);
}

// Where the first frame's packets came from.
static CV_INLINE void learn_from(struct cv_rx_queue *queue)
{
	set_once(queue->any_convoys);
	if (queue->config->fixed)
		return; // nobody asks
	queue->from.id = cv_return_next_hop_learn(
		&queue->returns, queue->mac, queue->config, &queue->convoy);
	if (queue->from.id != 0)
		set_once(queue->speaks);
}

// The packets of the first frame, at most CV_CONVOY_PACKETS_MAX; returns how many.
static CV_INLINE uint16_t take_apart(struct cv_rx_queue *queue, struct rte_mbuf **mbufs)
{
	struct rte_mbuf *frame = first(queue);
	struct cv_mbuf_set *set = NULL;

	learn_from(queue);
	queue->counts.convoys++;
	if (queue->sets != NULL && queue->convoy.count <= CV_MBUF_SET_VIEWS &&
		!cv_headroom_sample_due(&queue->headroom, queue->convoy.count) &&
		RTE_MBUF_DIRECT(frame) && rte_mbuf_refcnt_read(frame) == 1)
		set = cv_mbuf_set_get(queue->sets);
	if (CV_UNLIKELY(set == NULL))
		return copy_apart(queue, mbufs);
	set->from = queue->from;
	cv_mbuf_set_show(set, frame, &queue->convoy, queue->views, mbufs);
	queue->counts.viewed += queue->convoy.count;
	return queue->convoy.count;
}

static uint16_t give_ready(struct cv_rx_queue *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t left = queue->ready_count - queue->ready_at;

	n = n < left ? n : left;
	memcpy(mbufs, &queue->ready[queue->ready_at], n * sizeof(*mbufs));
	queue->ready_at += n;
	return n;
}

// Packets of convoys, and what else waits in the queue, behind those that mbufs has already.
CV_HOT static uint16_t receive_convoys(
	struct cv_rx_queue *queue, struct rte_mbuf **mbufs, uint16_t got, uint16_t n)
{
	if (CV_UNLIKELY(queue->ready_at < queue->ready_count))
		got = give_ready(queue, mbufs, n);
	else if (queue->stash_at == queue->stash_count && !fill_stash(queue))
		return 0;
	while (got < n && queue->stash_at < queue->stash_count) {
		enum cv_convoy_reason reason;

		if (queue->convoys && queue->stash_at + 1 < queue->stash_count)
			prefetch_frame(queue->stash[queue->stash_at + 1]);
		reason = classify(queue);
		if (reason == CV_CONVOY_NOT_A_CONVOY) {
			mbufs[got++] = first(queue);
			queue->convoys = false;
			next(queue);
			continue;
		}
		if (CV_UNLIKELY(reason != CV_CONVOY_OK)) {
			queue->counts.refused[reason]++;
			rte_pktmbuf_free(first(queue));
			next(queue);
			continue;
		}
		queue->convoys = true;
		if (CV_LIKELY(queue->convoy.count <= n - got)) {
			got += take_apart(queue, mbufs + got);
			next(queue);
			continue;
		}
		queue->walked = true;
		if (got > 0)
			break; // whole, next time
		// The program takes fewer at once than there are in it.
		queue->ready_at = 0;
		queue->ready_count = take_apart(queue, queue->ready);
		next(queue);
		got = give_ready(queue, mbufs, n);
	}
	queue->engaged = queue->convoys || queue->ready_at < queue->ready_count ||
			 queue->stash_at < queue->stash_count;
	queue->counts.pkts += got;
	return got;
}

// Sets frames aside from the first on that may be a convoy. Returns how many stay.
static uint16_t set_aside(struct cv_rx_queue *queue, struct rte_mbuf **mbufs, uint16_t frames)
{
	uint16_t passed = 0;

	while (!is_long_enough(mbufs[passed]))
		passed++;
	queue->stash_at = 0;
	queue->stash_count = frames - passed;
	for (uint16_t i = 0; i < queue->stash_count; i++) {
		queue->stash[i] = mbufs[passed + i];
		rte_prefetch0(rte_pktmbuf_mtod(queue->stash[i], void *));
	}
	return passed;
}

// While no convoys come, frames go straight from the driver to the program, and this is all that it
// costs: many of the calls find nothing.
uint16_t cv_receive(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct cv_rx_queue *queue = arg;
	bool long_enough = false;
	uint16_t frames;

	if (queue->engaged)
		return receive_convoys(queue, mbufs, 0, n);
	frames = queue->receive(queue->driver, mbufs, RTE_MIN(n, CV_STASH));
	if (frames == 0)
		return 0;
	for (uint16_t i = 0; i < frames; i++)
		long_enough |= is_long_enough(mbufs[i]);
	queue->counts.frames += frames;
	if (long_enough)
		return receive_convoys(queue, mbufs, set_aside(queue, mbufs, frames), n);
	queue->counts.pkts += frames;
	return frames;
}

void cv_receive_clear(struct cv_rx_queue *queue)
{
	while (queue->ready_at < queue->ready_count)
		rte_pktmbuf_free(queue->ready[queue->ready_at++]);
	while (queue->stash_at < queue->stash_count)
		rte_pktmbuf_free(queue->stash[queue->stash_at++]);
	queue->walked = false;
	queue->engaged = queue->convoys;
}

uint32_t cv_receive_held(const struct cv_rx_queue *queue)
{
	return (uint32_t)(queue->ready_count - queue->ready_at) +
	       (uint32_t)(queue->stash_count - queue->stash_at);
}
