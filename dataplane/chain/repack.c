// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/repack.h"
#include "chain/lookalike.h"
#include "chain/frame_builder.h"
#include "chain/trace_hooks.h"
#include "chain/tx_buffer.h"

// Do n packets lie one behind the other, with nothing but their lengths between them?
static bool are_whole(const struct cv_view *views, unsigned n)
{
	const struct cv_view *last = &views[n - 1];
	uint32_t bytes = (n - 1) * CV_CONVOY_PREFIX_LEN;

	for (unsigned i = 0; i < n; i++)
		bytes += cv_view_packet_len(&views[i]);
	return cv_view_packet(&views[0]) + bytes == last->data + last->len;
}

// All n packets of a buffer fit through their ports, and go to one next hop or by one port?
static bool have_one_destination(
	const struct cv_tx *tx, const struct cv_view *views, const uint16_t *next_hops, unsigned n)
{
	unsigned max = cv_frame_max(tx->ports[views[0].out]);
	unsigned differ = 0;

	for (unsigned i = 0; i < n; i++) {
		differ |= (unsigned)(next_hops[i] ^ next_hops[0]) |
			  (unsigned)(views[i].out ^ views[0].out);
		differ |= cv_view_packet_len(&views[i]) > max;
	}
	return differ == 0;
}

static void drop(struct cv_tx *tx, const struct cv_view *view, enum cv_drop_reason why)
{
	if (cv_trace_is_on())
		cv_trace_dropped(view, 1, why);
	cv_count(&tx->counters[view->out].drops[why], 1);
}

// Must a packet be dropped? It is too long for its port, or has no next hop and looks like a convoy.
static CV_INLINE bool is_refused(struct cv_tx *tx, const struct cv_view *view, uint16_t next_hop)
{
	if (cv_view_packet_len(view) > cv_frame_max(tx->ports[view->out]))
		drop(tx, view, CV_DROP_TOO_BIG);
	else if (next_hop == CV_NEXT_HOP_NONE && CV_UNLIKELY(cv_lookalike(tx, view)))
		drop(tx, view, CV_DROP_LOOKS_LIKE_CONVOY);
	else
		return false;
	return true;
}

// Sends a packet on, without its buffer.
static void tx_copy(struct cv_tx *tx, const struct cv_view *view, uint16_t next_hop)
{
	struct rte_mbuf *copy;

	if (is_refused(tx, view, next_hop))
		return;
	if (next_hop != CV_NEXT_HOP_NONE) {
		cv_builder_add_copy(tx, next_hop, view);
	} else {
		copy = cv_builder_copy_packet(tx, view->out, view);
		if (copy != NULL)
			cv_tx_buffer_put(tx, view->out, copy, 1);
	}
}

// Sends the only packet of a buffer.
static void tx_single(
	struct cv_tx *tx, struct rte_mbuf *buffer, const struct cv_view *view, uint16_t next_hop)
{
	if (is_refused(tx, view, next_hop)) {
		rte_pktmbuf_free(buffer);
	} else if (next_hop != CV_NEXT_HOP_NONE) {
		cv_builder_add_buffer(tx, next_hop, buffer, view);
	} else {
		cv_tx_buffer_put(tx, view->out, buffer, 1);
	}
}

void cv_repack(struct cv_tx *tx, struct cv_burst *burst, const uint16_t *next_hops)
{
	const struct cv_view *views = burst->views;

	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *buffer = burst->buffers.buffers[b];
		unsigned n = burst->buffers.views[b];

		if (n == 1) {
			tx_single(tx, buffer, views, next_hops[0]);
		} else if (next_hops[0] == CV_NEXT_HOP_NONE ||
			   !have_one_destination(tx, views, next_hops, n) ||
			   !(burst->whole || are_whole(views, n)) ||
			   !cv_builder_add_convoy(tx, next_hops[0], buffer, views, n, 0)) {
			for (unsigned i = 0; i < n; i++)
				tx_copy(tx, &views[i], next_hops[i]);
			rte_pktmbuf_free(buffer);
		}
		views += n;
		next_hops += n;
	}
}

void cv_repack_to(struct cv_tx *tx, struct cv_burst *burst, uint16_t next_hop)
{
	const struct cv_buffers *buffers = &burst->buffers;
	const struct cv_view *views = burst->views;

	for (unsigned b = 0; b < buffers->n; b++) {
		struct rte_mbuf *buffer = buffers->buffers[b];
		unsigned n = buffers->views[b];
		unsigned behind = burst->whole && b + 1u < buffers->n ? buffers->views[b + 1] : 0;

		if (n == 1) {
			cv_builder_add_buffer(tx, next_hop, buffer, views);
		} else if (!(burst->whole || are_whole(views, n)) ||
			   !cv_builder_add_convoy(tx, next_hop, buffer, views, n, behind)) {
			for (unsigned i = 0; i < n; i++)
				cv_builder_add_copy(tx, next_hop, &views[i]);
			rte_pktmbuf_free(buffer);
		}
		views += n;
	}
}
