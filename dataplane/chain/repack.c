// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/repack.h"
#include "chain/lookalike.h"
#include "chain/open_frame.h"
#include "chain/outbox.h"

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
static bool go_together(const struct cv_depart *depart, const struct cv_view *views,
	const uint16_t *hops, unsigned n)
{
	unsigned max = cv_frame_max(depart->ports[views[0].out]);
	unsigned differ = 0;

	for (unsigned i = 0; i < n; i++) {
		differ |= (unsigned)(hops[i] ^ hops[0]) | (unsigned)(views[i].out ^ views[0].out);
		differ |= cv_view_packet_len(&views[i]) > max;
	}
	return differ == 0;
}

// Must a packet be dropped? It is too long for its port, or has no next hop and looks like a convoy.
static CV_INLINE bool is_refused(struct cv_depart *depart, const struct cv_view *view, uint16_t hop)
{
	struct cv_port_counters *counters = &depart->counters[view->out];

	if (cv_view_packet_len(view) > cv_frame_max(depart->ports[view->out]))
		cv_count(&counters->drops[CV_HOP_TOO_BIG], 1);
	else if (hop == CV_NEXT_HOP_NONE && CV_UNLIKELY(cv_lookalike(depart, view)))
		cv_count(&counters->drops[CV_HOP_LOOKS_LIKE_CONVOY], 1);
	else
		return false;
	return true;
}

// Sends a packet on, without its buffer.
static void depart_copy(struct cv_depart *depart, const struct cv_view *view, uint16_t hop)
{
	struct rte_mbuf *copy;

	if (is_refused(depart, view, hop))
		return;
	if (hop != CV_NEXT_HOP_NONE) {
		cv_frame_add_copy(depart, hop, view);
	} else {
		copy = cv_frame_copy_packet(depart, view->out, view);
		if (copy != NULL)
			cv_outbox_put(depart, view->out, copy, 1);
	}
}

// Sends the packet that is alone in a buffer on.
static void depart_alone(
	struct cv_depart *depart, struct rte_mbuf *buffer, const struct cv_view *view, uint16_t hop)
{
	if (is_refused(depart, view, hop)) {
		rte_pktmbuf_free(buffer);
	} else if (hop != CV_NEXT_HOP_NONE) {
		cv_frame_add_buffer(depart, hop, buffer, view);
	} else {
		cv_outbox_put(depart, view->out, buffer, 1);
	}
}

void cv_repack(struct cv_depart *depart, struct cv_burst *burst, const uint16_t *hops)
{
	const struct cv_view *views = burst->views;

	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *buffer = burst->buffers.buffers[b];
		unsigned n = burst->buffers.views[b];

		if (n == 1) {
			depart_alone(depart, buffer, views, hops[0]);
		} else if (hops[0] == CV_NEXT_HOP_NONE || !go_together(depart, views, hops, n) ||
			   !(burst->whole || are_whole(views, n)) ||
			   !cv_frame_add_convoy(depart, hops[0], buffer, views, n, 0)) {
			for (unsigned i = 0; i < n; i++)
				depart_copy(depart, &views[i], hops[i]);
			rte_pktmbuf_free(buffer);
		}
		views += n;
		hops += n;
	}
}

void cv_repack_to(struct cv_depart *depart, struct cv_burst *burst, uint16_t hop)
{
	const struct cv_buffers *buffers = &burst->buffers;
	const struct cv_view *views = burst->views;

	for (unsigned b = 0; b < buffers->n; b++) {
		struct rte_mbuf *buffer = buffers->buffers[b];
		unsigned n = buffers->views[b];
		unsigned behind = burst->whole && b + 1u < buffers->n ? buffers->views[b + 1] : 0;

		if (n == 1) {
			cv_frame_add_buffer(depart, hop, buffer, views);
		} else if (!(burst->whole || are_whole(views, n)) ||
			   !cv_frame_add_convoy(depart, hop, buffer, views, n, behind)) {
			for (unsigned i = 0; i < n; i++)
				cv_frame_add_copy(depart, hop, &views[i]);
			rte_pktmbuf_free(buffer);
		}
		views += n;
	}
}
