// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_pause.h>

#include "depart.h"
#include "flow.h"

// A port that takes nothing is asked again this often before its packets are dropped. Long enough
// for a peer on another core to make room, short enough not to starve the other ports.
#define TX_ATTEMPTS 64

void cv_depart_drop(struct cv_burst *burst, struct cv_port_counters *counters, enum cv_hop_drop why)
{
	cv_count(&counters->drops[why], burst->n);
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

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

static void flush(struct cv_depart *depart, uint8_t out)
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

static void put(struct cv_depart *depart, uint8_t out, struct rte_mbuf *frame, uint8_t count)
{
	struct cv_outbox *box = &depart->boxes[out];

	if (box->n == CV_BURST_MAX)
		flush(depart, out);
	box->counts[box->n] = count;
	box->frames[box->n++] = frame;
}

// The longest frame that fits through a port: two VLAN tags more than its MTU's.
static unsigned frame_max(const struct cv_port *port)
{
	return port->mtu + CV_ETHER_LEN + 2 * CV_VLAN_LEN;
}

// May a buffer become a frame? Not what somebody else holds too, nor what is not its own memory.
static bool is_own(const struct rte_mbuf *buffer)
{
	return CV_LIKELY(rte_mbuf_refcnt_read(buffer) == 1 && RTE_MBUF_DIRECT(buffer) &&
			 buffer->nb_segs == 1);
}

// Is there room for an outer header before what begins here in a buffer?
static bool has_headroom(
	const struct rte_mbuf *buffer, const uint8_t *begin, const struct cv_outer *outer)
{
	return CV_LIKELY(begin >= (const uint8_t *)buffer->buf_addr + outer->len);
}

static struct rte_mbuf *new_buffer(struct cv_depart *depart, uint8_t out)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(depart->pool);

	if (CV_UNLIKELY(buffer == NULL))
		cv_count(&depart->counters[out].drops[CV_HOP_NO_BUFFER], 1);
	return buffer;
}

// A packet that lies in a buffer of others, in one of its own. NULL: there was none, it is counted.
static struct rte_mbuf *copy_packet(
	struct cv_depart *depart, uint8_t out, const struct cv_view *view)
{
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer = new_buffer(depart, out);

	if (CV_UNLIKELY(buffer != NULL && rte_pktmbuf_tailroom(buffer) < len)) {
		cv_count(&depart->counters[out].drops[CV_HOP_TOO_BIG], 1);
		rte_pktmbuf_free(buffer);
		return NULL;
	}
	if (CV_LIKELY(buffer != NULL)) {
		memcpy(rte_pktmbuf_mtod(buffer, uint8_t *), cv_view_packet(view), len);
		buffer->data_len = (uint16_t)len;
		buffer->pkt_len = len;
	}
	return buffer;
}

// Sends the open frame of a next hop on: with its outer header, or a packet alone as it is.
static void close_frame(struct cv_depart *depart, uint16_t hop)
{
	struct cv_open_frame *frame = &depart->frames[hop];
	const struct cv_next_hop *to = cv_next_hop_at(depart->table, hop);
	struct rte_mbuf *buffer = frame->buffer;

	if (buffer == NULL)
		return;
	frame->buffer = NULL;
	cv_count(&depart->hop_counters[hop].sizes[frame->count], 1);
	if (frame->count == 1) {
		const uint8_t *packet = frame->begin + CV_CONVOY_PREFIX_LEN;

		cv_buffer_set(buffer, packet, (uint32_t)(frame->end - packet));
	} else {
		uint8_t *data = frame->begin - to->outer.len;
		rte_be16_t sport = rte_cpu_to_be_16(
			CV_CONVOY_SPORT_MIN | (cv_flow_hash(&frame->first) & CV_CONVOY_SPORT_MASK));

		cv_outer_write(&to->outer, data, frame->count,
			(uint32_t)(frame->end - frame->begin), sport);
		cv_buffer_set(buffer, data, (uint32_t)(frame->end - data));
	}
	put(depart, to->port, buffer, frame->count);
}

static void write_len(uint8_t *at, uint32_t len)
{
	rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)len);

	memcpy(at, &prefix, sizeof(prefix));
}

// Begins a frame with what lies from begin to end in a buffer, which the frame then owns.
static void adopt(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer, uint8_t *begin,
	uint8_t *end, uint8_t count, const struct cv_view *first)
{
	struct cv_open_frame *frame = &depart->frames[hop];
	const struct cv_outer *outer = &cv_next_hop_at(depart->table, hop)->outer;
	uint32_t by_mtu = outer->frame_max - outer->len - (uint32_t)(end - begin);
	uint32_t by_buffer = (uint32_t)((uint8_t *)buffer->buf_addr + buffer->buf_len - end);

	if (!frame->listed)
		depart->open[depart->open_count++] = hop;
	*frame = (struct cv_open_frame){
		.buffer = buffer,
		.listed = true,
		.count = count,
		.begin = begin,
		.end = end,
		.room = RTE_MIN(by_mtu, by_buffer),
		.first = *first,
	};
	frame->first.data = begin + CV_CONVOY_PREFIX_LEN + first->before; // it may be a copy
}

// Closes the frame if so many more packets and bytes do not fit into it. True if one is open still.
static bool make_room(struct cv_depart *depart, uint16_t hop, uint32_t bytes, unsigned count)
{
	struct cv_open_frame *frame = &depart->frames[hop];

	if (frame->buffer == NULL)
		return false;
	if (CV_LIKELY(bytes <= frame->room && frame->count + count <= CV_CONVOY_PACKETS_MAX))
		return true;
	close_frame(depart, hop);
	return false;
}

// Makes room for count packets of so many bytes behind those of an open frame; returns where.
static uint8_t *extend(struct cv_open_frame *frame, uint32_t bytes, unsigned count)
{
	uint8_t *at = frame->end;

	if (frame->count == 1)
		write_len(
			frame->begin, (uint32_t)(frame->end - frame->begin) - CV_CONVOY_PREFIX_LEN);
	frame->end += bytes;
	frame->room -= bytes;
	frame->count += (uint8_t)count;
	return at;
}

static void append_packet(struct cv_open_frame *frame, const struct cv_view *view, uint32_t len)
{
	uint8_t *at = extend(frame, len + CV_CONVOY_PREFIX_LEN, 1);

	write_len(at, len);
	memcpy(at + CV_CONVOY_PREFIX_LEN, cv_view_packet(view), len);
}

static bool fits_a_convoy(const struct cv_outer *outer, uint32_t len)
{
	return len <= outer->packet_max && len >= CV_CONVOY_PACKET_MIN;
}

// Sends a packet that does not fit into any convoy to a next hop. It must not overtake others.
static void pass(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer)
{
	close_frame(depart, hop);
	if (buffer == NULL)
		return;
	cv_count(&depart->hop_counters[hop].sizes[1], 1);
	put(depart, cv_next_hop_at(depart->table, hop)->port, buffer, 1);
}

// Adds a packet whose buffer stays the caller's to the frame of a next hop.
static void add_copy(struct cv_depart *depart, uint16_t hop, const struct cv_view *view)
{
	const struct cv_outer *outer = &cv_next_hop_at(depart->table, hop)->outer;
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer;
	uint8_t *packet;

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		pass(depart, hop, copy_packet(depart, view->out, view));
	} else if (make_room(depart, hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&depart->frames[hop], view, len);
	} else {
		buffer = copy_packet(depart, view->out, view);
		if (buffer == NULL)
			return;
		packet = rte_pktmbuf_mtod(buffer, uint8_t *);
		adopt(depart, hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	}
}

// Adds a packet whose buffer has nothing else, and is given away.
static void add_alone(
	struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer, const struct cv_view *view)
{
	const struct cv_outer *outer = &cv_next_hop_at(depart->table, hop)->outer;
	uint8_t *packet = cv_view_packet(view);
	uint32_t len = cv_view_packet_len(view);

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		pass(depart, hop, buffer);
	} else if (make_room(depart, hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&depart->frames[hop], view, len);
		rte_pktmbuf_free(buffer);
	} else if (is_own(buffer) && has_headroom(buffer, packet - CV_CONVOY_PREFIX_LEN, outer)) {
		adopt(depart, hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	} else {
		add_copy(depart, hop, view);
		rte_pktmbuf_free(buffer);
	}
}

// Adds packets that lie one behind the other in a buffer, with their lengths before them: copied,
// or the buffer becomes the frame. False if that cannot be: they do not fit into one frame.
static bool add_convoy(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n)
{
	const struct cv_outer *outer = &cv_next_hop_at(depart->table, hop)->outer;
	const struct cv_view *last = &views[n - 1];
	uint8_t *begin = cv_view_packet(&views[0]) - CV_CONVOY_PREFIX_LEN;
	uint8_t *end = last->data + last->len;
	uint32_t bytes = (uint32_t)(end - begin);

	if (bytes > (uint32_t)outer->frame_max - outer->len)
		return false;
	if (make_room(depart, hop, bytes, n)) {
		memcpy(extend(&depart->frames[hop], bytes, n), begin, bytes);
		rte_pktmbuf_free(buffer);
		return true;
	}
	if (!is_own(buffer) || !has_headroom(buffer, begin, outer))
		return false;
	adopt(depart, hop, buffer, begin, end, (uint8_t)n, views);
	return true;
}

// The next hops of a burst's packets.
static void find_hops(struct cv_depart *depart, const struct cv_burst *burst, uint16_t *hops)
{
	uint32_t keys[CV_BURST_MAX];

	for (unsigned at = 0; at < burst->n; at += CV_BURST_MAX) {
		uint16_t n = (uint16_t)RTE_MIN(burst->n - at, (unsigned)CV_BURST_MAX);

		for (unsigned i = 0; i < n; i++)
			keys[i] = cv_next_hop_key_of(&burst->views[at + i]);
		cv_next_hop_find(depart->table, keys, hops + at, n);
	}
}

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
	unsigned max = frame_max(depart->ports[views[0].out]);
	unsigned differ = 0;

	for (unsigned i = 0; i < n; i++) {
		differ |= (unsigned)(hops[i] ^ hops[0]) | (unsigned)(views[i].out ^ views[0].out);
		differ |= cv_view_packet_len(&views[i]) > max;
	}
	return differ == 0;
}

// Sends a packet on, without its buffer.
static void depart_copy(struct cv_depart *depart, const struct cv_view *view, uint16_t hop)
{
	struct rte_mbuf *copy;

	if (cv_view_packet_len(view) > frame_max(depart->ports[view->out])) {
		cv_count(&depart->counters[view->out].drops[CV_HOP_TOO_BIG], 1);
	} else if (hop != CV_NEXT_HOP_NONE) {
		add_copy(depart, hop, view);
	} else {
		copy = copy_packet(depart, view->out, view);
		if (copy != NULL)
			put(depart, view->out, copy, 1);
	}
}

// Sends the packet that is alone in a buffer on.
static void depart_alone(
	struct cv_depart *depart, struct rte_mbuf *buffer, const struct cv_view *view, uint16_t hop)
{
	if (cv_view_packet_len(view) > frame_max(depart->ports[view->out])) {
		cv_count(&depart->counters[view->out].drops[CV_HOP_TOO_BIG], 1);
		rte_pktmbuf_free(buffer);
	} else if (hop != CV_NEXT_HOP_NONE) {
		add_alone(depart, hop, buffer, view);
	} else {
		put(depart, view->out, buffer, 1);
	}
}

// Sends a burst buffer by buffer, each packet where it goes.
static void depart_each(struct cv_depart *depart, struct cv_burst *burst, const uint16_t *hops)
{
	const struct cv_view *views = burst->views;

	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *buffer = burst->buffers.buffers[b];
		unsigned n = burst->buffers.views[b];

		if (n == 1) {
			depart_alone(depart, buffer, views, hops[0]);
		} else if (hops[0] == CV_NEXT_HOP_NONE || !go_together(depart, views, hops, n) ||
			   !are_whole(views, n) || !add_convoy(depart, hops[0], buffer, views, n)) {
			for (unsigned i = 0; i < n; i++)
				depart_copy(depart, &views[i], hops[i]);
			rte_pktmbuf_free(buffer);
		}
		views += n;
		hops += n;
	}
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

	flush(depart, out);
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
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

// Sends a burst by a port that takes all of it as it is. False: packets share buffers, which the
// port cannot send.
static bool send_burst(
	struct cv_depart *depart, uint8_t out, struct cv_burst *burst, uint32_t bytes)
{
	if (depart->ports[out]->tx_views != NULL) {
		send_views(depart, out, burst, bytes);
		return true;
	}
	if (burst->n != burst->buffers.n)
		return false;
	flush(depart, out);
	send(depart, out, burst->buffers.buffers, NULL, burst->n, burst->n, bytes);
	return true;
}

// Would it cost more than it saves to put these packets together? They came singly, and are so long
// that too few of them share a frame.
static bool better_alone(
	const struct cv_depart *depart, const struct cv_burst *burst, const uint16_t *hops)
{
	uint8_t first = burst->views[0].out;

	if (!burst->singly)
		return false;
	for (unsigned i = 0; i < burst->n; i++) {
		const struct cv_next_hop *to;

		if (hops[i] == CV_NEXT_HOP_NONE)
			continue;
		to = cv_next_hop_at(depart->table, hops[i]);
		if (cv_view_packet_len(&burst->views[i]) <= to->outer.share_max ||
			to->port != first)
			return false;
	}
	return true;
}

// What waits for company must not be overtaken by packets that leave by the same port.
static void close_frames(struct cv_depart *depart, uint8_t out)
{
	for (unsigned i = 0; i < depart->open_count; i++)
		if (cv_next_hop_at(depart->table, depart->open[i])->port == out)
			close_frame(depart, depart->open[i]);
}

static void count_alone(struct cv_depart *depart, const uint16_t *hops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (hops[i] != CV_NEXT_HOP_NONE)
			cv_count(&depart->hop_counters[hops[i]].sizes[1], 1);
}

// Do all packets of a burst leave by the first one's port, which takes them as they are? Adds the
// bytes of the tunnels before them.
static bool leave_alike(
	const struct cv_depart *depart, const struct cv_burst *burst, uint32_t *bytes)
{
	uint8_t first = burst->views[0].out;
	unsigned different = 0;
	uint32_t before = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		different |= burst->views[i].out ^ first;
		before += burst->views[i].before;
	}
	*bytes = burst->bytes + before;
	return different == 0 && burst->longest <= frame_max(depart->ports[first]);
}

void cv_depart(struct cv_depart *depart, struct cv_burst *burst)
{
	uint16_t hops[CV_BURST_VIEWS];
	uint8_t first = burst->views[0].out;
	uint32_t bytes;
	bool leads;
	bool alike;

	if (depart->next_hops != NULL && depart->table == NULL)
		depart->table = cv_next_hops_table(depart->next_hops);
	alike = leave_alike(depart, burst, &bytes);
	leads = depart->table != NULL && cv_next_hop_leads(depart->table, first);
	if (CV_LIKELY(alike && !leads) && CV_LIKELY(send_burst(depart, first, burst, bytes)))
		return;
	if (depart->table != NULL)
		find_hops(depart, burst, hops);
	else
		memset(hops, 0xff, burst->n * sizeof(hops[0])); // CV_NEXT_HOP_NONE
	if (alike && leads && better_alone(depart, burst, hops)) {
		uint16_t n = burst->n;

		close_frames(depart, first);
		if (send_burst(depart, first, burst, bytes)) {
			count_alone(depart, hops, n);
			return;
		}
	}
	depart_each(depart, burst, hops);
}

void cv_depart_flush(struct cv_depart *depart)
{
	for (unsigned i = 0; i < depart->open_count; i++) {
		close_frame(depart, depart->open[i]);
		depart->frames[depart->open[i]].listed = false;
	}
	depart->open_count = 0;
	for (unsigned i = 0; i < depart->ports_count; i++)
		flush(depart, (uint8_t)i);
	if (depart->next_hops != NULL) {
		depart->table = NULL;
		cv_next_hops_done(depart->next_hops, depart->lane);
	}
}
