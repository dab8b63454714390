// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/tx_buffer.h"

#include <rte_pause.h>

#include "chain/trace_hooks.h"

// A port that is full is asked again this often before its packets are dropped. Long enough for a
// peer on another core to make room, short enough not to starve the other ports.
//
// That is a credit, and a peer earns it by taking packets: one that takes none at all is asked
// once a burst, and costs the other ports no time. One that takes them as slowly as it can costs
// at most TX_EARNED attempts for each that it takes.
#define TX_ATTEMPTS 64
#define TX_EARNED 8

// A port took packets.
static CV_INLINE void earn(struct cv_tx_buffer *pending, uint16_t took)
{
	if (CV_UNLIKELY(pending->waited > 0)) {
		const unsigned earned = took * TX_EARNED;

		pending->waited -= RTE_MIN(earned, (unsigned)pending->waited);
	}
}

// Is a port tried again after it took so many of what it was given?
static bool again(struct cv_tx_buffer *pending, uint16_t took)
{
	if (took > 0)
		return true;
	if (pending->waited == TX_ATTEMPTS)
		return false;
	pending->waited++;
	rte_pause();
	return true;
}

// What is left of n frames, the first of which were sent, is dropped. Returns the packets in them.
static __rte_noinline uint64_t drop_unsent(struct cv_port_counters *counters,
	struct rte_mbuf **frames, const uint8_t *counts, uint16_t n, uint64_t *bytes)
{
	uint64_t packets = 0;

	for (uint16_t i = 0; i < n; i++) {
		packets += counts != NULL ? counts[i] : 1;
		*bytes -= frames[i]->pkt_len;
	}
	if (cv_trace_is_on())
		cv_trace_unsent(frames, n);
	cv_count(&counters->drops[CV_DROP_TX_FULL], packets);
	rte_pktmbuf_free_bulk(frames, n);
	return packets;
}

// Sends n frames of packets packets and bytes altogether by a port, or drops what it does not take.
// counts: packets of each; NULL: one.
static void send(struct cv_tx *tx, uint8_t out, struct rte_mbuf **frames, const uint8_t *counts,
	uint16_t n, uint64_t packets, uint64_t bytes)
{
	struct cv_port *port = tx->ports[out];
	struct cv_port_counters *counters = &tx->counters[out];
	struct cv_tx_buffer *pending = &tx->pending[out];
	uint16_t sent = port->tx(port, tx->tx_queue, frames, n);

	earn(pending, sent);
	if (CV_UNLIKELY(sent < n)) {
		uint16_t took = sent;

		while (sent < n && again(pending, took)) {
			took = port->tx(port, tx->tx_queue, frames + sent, n - sent);
			earn(pending, took);
			sent += took;
		}
		if (sent < n)
			packets -= drop_unsent(counters, frames + sent,
				counts != NULL ? counts + sent : NULL, n - sent, &bytes);
	}
	cv_count(&counters->tx_packets, packets);
	cv_count(&counters->tx_frames, sent);
	cv_count(&counters->tx_bytes, bytes);
}

void cv_tx_buffer_flush(struct cv_tx *tx, uint8_t out)
{
	struct cv_tx_buffer *pending = &tx->pending[out];
	uint64_t packets = 0;
	uint64_t bytes = 0;

	if (pending->n == 0)
		return;
	for (uint16_t i = 0; i < pending->n; i++) {
		packets += pending->counts[i];
		bytes += pending->frames[i]->pkt_len;
	}
	send(tx, out, pending->frames, pending->counts, pending->n, packets, bytes);
	pending->n = 0;
}

void cv_tx_buffer_put(struct cv_tx *tx, uint8_t out, struct rte_mbuf *frame, uint8_t count)
{
	struct cv_tx_buffer *pending = &tx->pending[out];

	if (pending->n == CV_BURST_MAX)
		cv_tx_buffer_flush(tx, out);
	pending->counts[pending->n] = count;
	pending->frames[pending->n++] = frame;
}

// Sends a burst by a port that copies from views.
static void send_views(struct cv_tx *tx, uint8_t out, struct cv_burst *burst, uint32_t bytes)
{
	struct cv_port *port = tx->ports[out];
	struct cv_port_counters *counters = &tx->counters[out];
	struct cv_tx_buffer *pending = &tx->pending[out];
	uint16_t sent = 0;
	uint16_t took;

	cv_tx_buffer_flush(tx, out);
	do {
		took = port->tx_views(port, tx->tx_queue, burst->views + sent, burst->n - sent);
		earn(pending, took);
		sent += took;
	} while (sent < burst->n && again(pending, took));
	for (unsigned i = sent; i < burst->n; i++)
		bytes -= cv_view_packet_len(&burst->views[i]);
	if (CV_UNLIKELY(sent < burst->n)) {
		if (cv_trace_is_on())
			cv_trace_dropped(burst->views + sent, burst->n - sent, CV_DROP_TX_FULL);
		cv_count(&counters->drops[CV_DROP_TX_FULL], burst->n - sent);
	}
	cv_count(&counters->tx_packets, sent);
	cv_count(&counters->tx_frames, sent);
	cv_count(&counters->tx_bytes, bytes);
	cv_buffers_free(burst->buffers.buffers, burst->buffers.n);
}

bool cv_tx_buffer_send_burst(struct cv_tx *tx, uint8_t out, struct cv_burst *burst, uint32_t bytes)
{
	if (tx->ports[out]->tx_views != NULL) {
		send_views(tx, out, burst, bytes);
		return true;
	}
	if (burst->n != burst->buffers.n)
		return false;
	cv_tx_buffer_flush(tx, out);
	send(tx, out, burst->buffers.buffers, NULL, burst->n, burst->n, bytes);
	return true;
}
