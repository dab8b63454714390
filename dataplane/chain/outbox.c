// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/outbox.h"

#include <rte_pause.h>

// A port that is full is asked again this often before its packets are dropped. Long enough for a
// peer on another core to make room, short enough not to starve the other ports.
//
// That is a credit, and a peer earns it by taking packets: one that takes none at all is asked
// once a burst, and costs the other ports no time. One that takes them as slowly as it can costs
// at most TX_EARNED attempts for each that it takes.
#define TX_ATTEMPTS 64
#define TX_EARNED 8

// A port took packets.
static CV_INLINE void earn(struct cv_outbox *box, uint16_t took)
{
	if (CV_UNLIKELY(box->waited > 0)) {
		const unsigned earned = took * TX_EARNED;

		box->waited -= RTE_MIN(earned, (unsigned)box->waited);
	}
}

// Asked once more after a port took so many of what it was given?
static bool again(struct cv_outbox *box, uint16_t took)
{
	if (took > 0)
		return true;
	if (box->waited == TX_ATTEMPTS)
		return false;
	box->waited++;
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
	struct cv_outbox *box = &depart->boxes[out];
	uint16_t sent = port->tx(port, depart->lane, frames, n);

	earn(box, sent);
	if (CV_UNLIKELY(sent < n)) {
		uint16_t took = sent;

		while (sent < n && again(box, took)) {
			took = port->tx(port, depart->lane, frames + sent, n - sent);
			earn(box, took);
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
	struct cv_outbox *box = &depart->boxes[out];
	uint16_t sent = 0;
	uint16_t took;

	cv_outbox_flush(depart, out);
	do {
		took = port->tx_views(port, depart->lane, burst->views + sent, burst->n - sent);
		earn(box, took);
		sent += took;
	} while (sent < burst->n && again(box, took));
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
