// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_pause.h>

#include "outbox.h"

// A port that takes nothing is asked again this often before its packets are dropped. Long enough
// for a peer on another core to make room, short enough not to starve the other ports.
#define TX_ATTEMPTS 64

// Asked once more after a port took so many of what it was given? Counts the times it took none.
static bool again(unsigned *attempts, uint16_t took)
{
	if (took > 0) {
		*attempts = 0;
		return true;
	}
	rte_pause();
	return ++*attempts < TX_ATTEMPTS;
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
	cv_count(&counters->drops[CV_HOP_TX_FULL], packets);
	rte_pktmbuf_free_bulk(frames, n);
	return packets;
}

// Sends n frames of packets packets and bytes altogether by a port, or drops what it does not take.
// counts: packets of each; NULL: one.
static void send(struct cv_depart *depart, uint8_t out, struct rte_mbuf **frames,
	const uint8_t *counts, uint16_t n, uint64_t packets, uint64_t bytes)
{
	struct cv_port *port = depart->ports[out];
	struct cv_port_counters *counters = &depart->counters[out];
	uint16_t sent = port->tx(port, depart->lane, frames, n);

	if (CV_UNLIKELY(sent < n)) {
		unsigned attempts = 0;
		uint16_t took = sent;

		while (sent < n && again(&attempts, took)) {
			took = port->tx(port, depart->lane, frames + sent, n - sent);
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

void cv_outbox_flush(struct cv_depart *depart, uint8_t out)
{
	struct cv_outbox *box = &depart->boxes[out];
	uint64_t packets = 0;
	uint64_t bytes = 0;

	if (box->n == 0)
		return;
	for (uint16_t i = 0; i < box->n; i++) {
		packets += box->counts[i];
		bytes += box->frames[i]->pkt_len;
	}
	send(depart, out, box->frames, box->counts, box->n, packets, bytes);
	box->n = 0;
}

void cv_outbox_put(struct cv_depart *depart, uint8_t out, struct rte_mbuf *frame, uint8_t count)
{
	struct cv_outbox *box = &depart->boxes[out];

	if (box->n == CV_BURST_MAX)
		cv_outbox_flush(depart, out);
	box->counts[box->n] = count;
	box->frames[box->n++] = frame;
}

// Sends a burst by a port that copies from views.
static void send_views(
	struct cv_depart *depart, uint8_t out, struct cv_burst *burst, uint32_t bytes)
{
	struct cv_port *port = depart->ports[out];
	struct cv_port_counters *counters = &depart->counters[out];
	unsigned attempts = 0;
	uint16_t sent = 0;
	uint16_t took;

	cv_outbox_flush(depart, out);
	do {
		took = port->tx_views(port, depart->lane, burst->views + sent, burst->n - sent);
		sent += took;
	} while (sent < burst->n && again(&attempts, took));
	for (unsigned i = sent; i < burst->n; i++)
		bytes -= cv_view_packet_len(&burst->views[i]);
	if (CV_UNLIKELY(sent < burst->n))
		cv_count(&counters->drops[CV_HOP_TX_FULL], burst->n - sent);
	cv_count(&counters->tx_packets, sent);
	cv_count(&counters->tx_frames, sent);
	cv_count(&counters->tx_bytes, bytes);
	cv_buffers_free(burst->buffers.buffers, burst->buffers.n);
}

bool cv_outbox_send_burst(
	struct cv_depart *depart, uint8_t out, struct cv_burst *burst, uint32_t bytes)
{
	if (depart->ports[out]->tx_views != NULL) {
		send_views(depart, out, burst, bytes);
		return true;
	}
	if (burst->n != burst->buffers.n)
		return false;
	cv_outbox_flush(depart, out);
	send(depart, out, burst->buffers.buffers, NULL, burst->n, burst->n, bytes);
	return true;
}
