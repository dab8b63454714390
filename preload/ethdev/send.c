// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/send.h"

#include "convoy/frame.h"
#include "convoy/may_be.h"

#define FRAMES 64 // given to the driver at once

enum how { AS_IT_IS, IN_PLACE, COPIED };

// Frames on their way to the driver, and what becomes of the program's packets when it takes them.
struct batch {
	struct rte_mbuf *frame[FRAMES];
	uint16_t upto[FRAMES]; // the program's packets that are in it end here
	enum how how[FRAMES];
	struct cv_mbuf_set *set[FRAMES]; // IN_PLACE
	uint16_t count;
	bool drop; // the program's packet behind them
};

// The return next hop of a packet, which came by the port that it leaves by. id 0: none.
static CV_INLINE struct cv_return_name name_of(
	const struct cv_tx_queue *queue, const struct rte_mbuf *mbuf)
{
	const struct cv_return_name name =
		cv_is_view(mbuf) ? cv_mbuf_set_of(mbuf)->from : cv_return_name_get(mbuf);

	return name.id != 0 && name.port == queue->port ? name : (struct cv_return_name){0};
}

static __rte_noinline bool read_outer(struct cv_tx_queue *queue, struct cv_return_name name)
{
	struct cv_outer outer;

	if (name.id == 0 || name.queue >= queue->returns_count ||
		!cv_return_next_hop_read(queue->returns[name.queue], name.id, &outer))
		return false;
	queue->name = name;
	queue->outer = outer;
	return true;
}

// The header to send a packet with; valid until the next is asked for. NULL: it has no next hop.
static CV_INLINE const struct cv_outer *outer_of(
	struct cv_tx_queue *queue, const struct rte_mbuf *mbuf)
{
	struct cv_return_name name;

	if (queue->fixed != NULL)
		return queue->fixed;
	name = name_of(queue, mbuf);
	if (CV_LIKELY(name.id != 0 && cv_return_name_same(name, queue->name)))
		return &queue->outer;
	return read_outer(queue, name) ? &queue->outer : NULL;
}

// Does a packet go the way of the one that was asked about last?
static CV_INLINE bool goes_along(const struct cv_tx_queue *queue, const struct rte_mbuf *mbuf)
{
	return queue->fixed != NULL || cv_return_name_same(name_of(queue, mbuf), queue->name);
}

// Would somebody on a link with convoys take the packet for one?
static CV_INLINE bool is_lookalike(const struct cv_tx_queue *queue, const struct rte_mbuf *mbuf)
{
	const uint32_t len = RTE_MIN(mbuf->pkt_len, (uint32_t)CV_OUTER_MAX);
	struct cv_view view = {0};
	uint8_t copy[CV_OUTER_MAX]; // of headers in pieces

	cv_view_set(
		&view, (uint8_t *)(uintptr_t)rte_pktmbuf_read(mbuf, 0, len, copy), (uint16_t)len);
	return cv_may_be_convoy(&view, queue->udp_port);
}

// Only a packet of one segment without offload flags can be sent in a convoy.
static CV_INLINE bool may_join(const struct rte_mbuf *mbuf)
{
	return mbuf->nb_segs == 1 && (mbuf->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK) == 0 &&
	       mbuf->data_len >= CV_CONVOY_PACKET_MIN;
}

static CV_INLINE void set_view(struct cv_view *view, struct rte_mbuf *mbuf)
{
	cv_view_set(view, rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len);
	view->in = view->out = 0;
}

static CV_INLINE bool add(struct batch *batch, struct rte_mbuf *frame, uint16_t upto, enum how how,
	struct cv_mbuf_set *set)
{
	const uint16_t i = batch->count++;

	batch->frame[i] = frame;
	batch->upto[i] = upto;
	batch->how[i] = how;
	batch->set[i] = set;
	return true;
}

// The set that begins with mbufs[0] and is all there, or NULL.
static CV_INLINE struct cv_mbuf_set *whole_set(
	struct cv_tx_queue *queue, struct rte_mbuf *const *mbufs, uint16_t n)
{
	struct cv_mbuf_set *set;

	if (!cv_is_view(mbufs[0]))
		return NULL;
	set = cv_mbuf_set_of(mbufs[0]);
	if (mbufs[0] != cv_mbuf_set_view(set, 0) || set->count > n ||
		!cv_mbuf_set_whole(set, mbufs) || outer_of(queue, mbufs[0]) == NULL)
		return NULL;
	return set;
}

// Small convoys are better aggregated with what follows them than forwarded in place: a frame costs
// the driver, and everybody behind it, as much as copying several packets does.
static CV_INLINE bool is_worth_it(
	const struct cv_mbuf_set *set, const struct cv_outer *outer, uint16_t left)
{
	return set->count == left || 2u * set->convoy.len > outer->frame_max;
}

// What follows, the same way, is forwarded in place, untouched.
static CV_INLINE bool is_pointer_case(struct cv_tx_queue *queue, const struct cv_outer *outer,
	struct rte_mbuf *const *mbufs, uint16_t n)
{
	const struct cv_mbuf_set *set = whole_set(queue, mbufs, n);

	return set != NULL && is_worth_it(set, outer, n);
}

// The convoy itself, with a new header in front. False: it does not fit.
static CV_INLINE bool in_place(
	struct batch *batch, struct cv_mbuf_set *set, uint16_t upto, const struct cv_outer *outer)
{
	struct rte_mbuf *carrier = set->carrier;
	const uint32_t headroom = (uint32_t)(set->convoy.data - (uint8_t *)carrier->buf_addr);
	const uint8_t *data = cv_convoy_readdress(&set->convoy, outer, headroom);

	if (CV_UNLIKELY(data == NULL))
		return false;
	carrier->data_off = (uint16_t)(data - (uint8_t *)carrier->buf_addr);
	carrier->data_len = set->convoy.len;
	carrier->pkt_len = set->convoy.len;
	carrier->ol_flags = 0;
	return add(batch, carrier, upto, IN_PLACE, set);
}

// A buffer of ours with a copy of one packet, for what must not be given to the driver. False: no
// buffer.
static bool add_copy(
	struct cv_tx_queue *queue, struct batch *batch, struct rte_mbuf *mbuf, uint16_t upto)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, queue->buffers, 0, UINT32_MAX);

	if (copy == NULL) {
		queue->counts.no_buffer++;
		return false;
	}
	copy->tx_offload = mbuf->tx_offload;
	return add(batch, copy, upto, COPIED, NULL);
}

static bool add_packet(
	struct cv_tx_queue *queue, struct batch *batch, struct rte_mbuf *mbuf, uint16_t upto)
{
	for (const struct rte_mbuf *piece = mbuf; piece != NULL; piece = piece->next)
		if (cv_is_view(piece))
			return add_copy(queue, batch, mbuf, upto);
	cv_headroom_check(queue->headroom, mbuf);
	return add(batch, mbuf, upto, AS_IT_IS, NULL);
}

// Samples come a convoy at a time: where the first packet is a view, nobody looks at the others.
static void check_headroom(struct cv_headroom *headroom, struct rte_mbuf *const *mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if (!cv_is_view(mbufs[i]))
			cv_headroom_check(headroom, mbufs[i]);
}

// A packet that is to go by itself, as it is if it may. Returns how many were taken, one or none.
static uint16_t unaggregated(struct cv_tx_queue *queue, struct batch *batch, struct rte_mbuf *mbuf,
	uint16_t upto, bool has_next_hop)
{
	if ((has_next_hop || atomic_load_explicit(queue->speaks, memory_order_relaxed)) &&
		CV_UNLIKELY(is_lookalike(queue, mbuf))) {
		batch->drop = true;
		return 0;
	}
	return add_packet(queue, batch, mbuf, upto);
}

// One frame with the first of mbufs, which are not a whole set, and what may be aggregated with it.
// Returns how many it took; 0: no buffer, or the first is to be dropped.
static uint16_t pack(struct cv_tx_queue *queue, struct batch *batch, struct rte_mbuf **mbufs,
	uint16_t at, uint16_t n)
{
	const struct cv_outer *outer = outer_of(queue, mbufs[at]);
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct rte_mbuf *frame;
	uint16_t count = 0, taken, len;
	struct cv_frame built;
	uint32_t room;
	uint8_t *data;

	if (outer == NULL || !may_join(mbufs[at]))
		return unaggregated(queue, batch, mbufs[at], at + 1, outer != NULL);
	room = outer->frame_max - outer->len;
	for (uint16_t i = at; i < n && count < CV_CONVOY_PACKETS_MAX; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if (!may_join(mbuf) || mbuf->data_len + (uint32_t)CV_CONVOY_PREFIX_LEN > room ||
			!goes_along(queue, mbuf))
			break;
		if (i > at && is_pointer_case(queue, outer, mbufs + i, n - i))
			break;
		room -= mbuf->data_len + CV_CONVOY_PREFIX_LEN;
		set_view(&views[count++], mbuf);
	}
	if (count == 0 || (count == 1 && !is_lookalike(queue, mbufs[at])))
		return unaggregated(queue, batch, mbufs[at], at + 1, count == 0);
	if (queue->headroom != NULL && !cv_is_view(mbufs[at]))
		check_headroom(queue->headroom, mbufs + at, count);
	frame = rte_pktmbuf_alloc(queue->buffers);
	if (CV_UNLIKELY(frame == NULL)) {
		queue->counts.no_buffer++;
		return 0;
	}
	data = rte_pktmbuf_mtod(frame, uint8_t *);
	cv_frame_begin(&built, outer, data, rte_pktmbuf_tailroom(frame));
	taken = cv_frame_add(&built, views, count);
	data = cv_frame_close(&built, &len);
	if (CV_UNLIKELY(taken < RTE_MIN(count, 2))) {
		rte_pktmbuf_free(frame);
		return unaggregated(queue, batch, mbufs[at], at + 1, true);
	}
	frame->data_off += (uint16_t)(data - rte_pktmbuf_mtod(frame, uint8_t *));
	frame->data_len = len;
	frame->pkt_len = len;
	add(batch, frame, at + taken, COPIED, NULL);
	return taken;
}

// Plans frames for packets from *at on. False: it ended early, for want of buffers, or before a packet
// that is to be dropped.
static CV_INLINE bool plan(struct cv_tx_queue *queue, struct batch *batch, struct rte_mbuf **mbufs,
	uint16_t *at, uint16_t n)
{
	batch->count = 0;
	batch->drop = false;
	while (*at < n && batch->count < FRAMES) {
		struct cv_mbuf_set *set = whole_set(queue, mbufs + *at, (uint16_t)(n - *at));
		const struct cv_outer *outer = set != NULL ? outer_of(queue, mbufs[*at]) : NULL;
		uint16_t taken;

		if (outer != NULL && is_worth_it(set, outer, (uint16_t)(n - *at)) &&
			in_place(batch, set, *at + set->count, outer)) {
			*at += set->count;
			continue;
		}
		taken = pack(queue, batch, mbufs, *at, n);
		if (taken == 0)
			return false;
		*at += taken;
	}
	return true;
}

// Frees the program's packets, whose bytes were copied: views by their set, others in bulk.
static void free_copied(struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n;) {
		struct cv_mbuf_set *set = cv_is_view(mbufs[i]) ? cv_mbuf_set_of(mbufs[i]) : NULL;
		uint16_t run = 0;

		if (set == NULL) {
			while (i + run < n && !cv_is_view(mbufs[i + run]))
				run++;
			rte_pktmbuf_free_bulk(mbufs + i, run);
			i += run;
			continue;
		}
		while (i + run < n && cv_is_view(mbufs[i + run]) &&
			cv_mbuf_set_of(mbufs[i + run]) == set &&
			rte_mbuf_refcnt_read(mbufs[i + run]) == 1 && mbufs[i + run]->nb_segs == 1 &&
			mbufs[i + run]->shinfo == &set->shared)
			run++;
		if (run > 0) {
			cv_mbuf_set_drop(set, mbufs + i, run);
			i += run;
		} else {
			rte_pktmbuf_free(mbufs[i++]);
		}
	}
}

// The driver took the first `sent` frames. Returns the end of the program's packets in them.
static CV_INLINE uint16_t settle(struct cv_tx_queue *queue, const struct batch *batch,
	struct rte_mbuf **mbufs, uint16_t from, uint16_t sent)
{
	for (uint16_t i = 0; i < sent; i++) {
		const uint16_t count = batch->upto[i] - from;

		switch (batch->how[i]) {
		case IN_PLACE:
			cv_mbuf_set_put(batch->set[i]);
			queue->counts.in_place += count;
			queue->counts.convoys++;
			break;
		case COPIED:
			free_copied(mbufs + from, count);
			if (count == 1) {
				queue->counts.unaggregated++;
			} else {
				queue->counts.repacked += count;
				queue->counts.convoys++;
			}
			break;
		case AS_IT_IS:
			queue->counts.unaggregated++;
		}
		from = batch->upto[i];
	}
	queue->counts.frames += sent;
	// Copies that were not taken; the originals stay the program's.
	for (uint16_t i = sent; i < batch->count; i++)
		if (batch->how[i] == COPIED)
			rte_pktmbuf_free(batch->frame[i]);
	return from;
}

CV_HOT static uint16_t send_convoys(struct cv_tx_queue *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t at = 0, done = 0, dropped = 0;
	struct batch batch;
	bool planned;

	while (done < n) {
		uint16_t sent;

		planned = plan(queue, &batch, mbufs, &at, n);
		// Also with no frames: drivers take back buffers that were sent when they are called.
		sent = queue->send(queue->driver, batch.frame, batch.count);
		done = settle(queue, &batch, mbufs, done, sent);
		if (sent < batch.count || (!planned && !batch.drop))
			break;
		if (CV_UNLIKELY(batch.drop)) {
			rte_pktmbuf_free(mbufs[done]);
			dropped++;
			at = ++done;
		}
	}
	queue->counts.pkts += done - dropped;
	queue->counts.looks_like_convoy += dropped;
	return done;
}

// While there is no next hop, nor was a convoy received by any port, this is all that it costs.
uint16_t cv_send(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct cv_tx_queue *queue = arg;
	uint16_t done;

	if (queue->fixed != NULL || atomic_load_explicit(queue->convoys, memory_order_relaxed))
		return send_convoys(queue, mbufs, n);
	done = queue->send(queue->driver, mbufs, n);
	queue->counts.pkts += done;
	queue->counts.frames += done;
	queue->counts.unaggregated += done;
	return done;
}
