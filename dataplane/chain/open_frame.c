// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/open_frame.h"
#include "chain/lookalike.h"
#include "chain/outbox.h"
#include "convoy/flow.h"

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

struct rte_mbuf *cv_frame_copy_packet(
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

// What lies from begin to end in a buffer, count packets with their lengths, becomes a frame with its
// outer header, and leaves.
static CV_INLINE void send_convoy(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer,
	const uint8_t *begin, const uint8_t *end, uint8_t count, const struct cv_view *first)
{
	const struct cv_next_hop *to = &depart->hops[hop];
	uint8_t *data = (uint8_t *)(uintptr_t)begin - to->outer.len;
	rte_be16_t sport = rte_cpu_to_be_16(
		CV_CONVOY_SPORT_MIN | (cv_flow_hash(first) & CV_CONVOY_SPORT_MASK));

	cv_count(&depart->hop_counters[hop].sizes[count], 1);
	cv_outer_write(&to->outer, data, count, (uint32_t)(end - begin), sport);
	cv_buffer_set(buffer, data, (uint32_t)(end - data));
	cv_outbox_put(depart, to->port, buffer, count);
}

static void write_len(uint8_t *at, uint32_t len)
{
	rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)len);

	memcpy(at, &prefix, sizeof(prefix));
}

// A packet that is alone but must not travel as it is: its length, so far not needed, is written.
static bool is_lookalike(
	const struct cv_depart *depart, uint16_t hop, const struct cv_open_frame *frame)
{
	if (CV_LIKELY(!cv_lookalike_to(depart, &frame->first, hop)))
		return false;
	write_len(frame->begin, cv_view_packet_len(&frame->first));
	return true;
}

void cv_frame_close(struct cv_depart *depart, uint16_t hop)
{
	struct cv_open_frame *frame = &depart->frames[hop];
	struct rte_mbuf *buffer = frame->buffer;

	if (buffer == NULL)
		return;
	frame->buffer = NULL;
	if (frame->count == 1 && !is_lookalike(depart, hop, frame)) {
		const uint8_t *packet = frame->begin + CV_CONVOY_PREFIX_LEN;

		cv_count(&depart->hop_counters[hop].sizes[1], 1);
		cv_buffer_set(buffer, packet, (uint32_t)(frame->end - packet));
		cv_outbox_put(depart, depart->hops[hop].port, buffer, 1);
	} else {
		send_convoy(
			depart, hop, buffer, frame->begin, frame->end, frame->count, &frame->first);
	}
}

void cv_frame_close_port(struct cv_depart *depart, uint8_t out)
{
	for (unsigned i = 0; i < depart->open_count; i++)
		if (depart->hops[depart->open[i]].port == out)
			cv_frame_close(depart, depart->open[i]);
}

// Begins a frame with what lies from begin to end in a buffer, which the frame then owns.
static void adopt(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer, uint8_t *begin,
	uint8_t *end, uint8_t count, const struct cv_view *first)
{
	struct cv_open_frame *frame = &depart->frames[hop];
	const struct cv_outer *outer = &depart->hops[hop].outer;
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
	cv_frame_close(depart, hop);
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

// Does a packet have to be dropped? One that does not fit into any convoy, and looks like one.
static bool is_refused(struct cv_depart *depart, uint16_t hop, const struct cv_view *view)
{
	if (CV_LIKELY(!cv_lookalike_to(depart, view, hop)))
		return false;
	cv_count(&depart->counters[view->out].drops[CV_HOP_LOOKS_LIKE_CONVOY], 1);
	return true;
}

// Sends a packet that does not fit into any convoy to a next hop. It must not overtake others.
static void pass(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer)
{
	cv_frame_close(depart, hop);
	if (buffer == NULL)
		return;
	cv_count(&depart->hop_counters[hop].sizes[1], 1);
	cv_outbox_put(depart, depart->hops[hop].port, buffer, 1);
}

void cv_frame_add_copy(struct cv_depart *depart, uint16_t hop, const struct cv_view *view)
{
	const struct cv_outer *outer = &depart->hops[hop].outer;
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer;
	uint8_t *packet;

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		if (!is_refused(depart, hop, view))
			pass(depart, hop, cv_frame_copy_packet(depart, view->out, view));
	} else if (make_room(depart, hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&depart->frames[hop], view, len);
	} else {
		buffer = cv_frame_copy_packet(depart, view->out, view);
		if (buffer == NULL)
			return;
		packet = rte_pktmbuf_mtod(buffer, uint8_t *);
		adopt(depart, hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	}
}

void cv_frame_add_buffer(
	struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer, const struct cv_view *view)
{
	const struct cv_outer *outer = &depart->hops[hop].outer;
	uint8_t *packet = cv_view_packet(view);
	uint32_t len = cv_view_packet_len(view);

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		if (is_refused(depart, hop, view))
			rte_pktmbuf_free(buffer);
		else
			pass(depart, hop, buffer);
	} else if (make_room(depart, hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&depart->frames[hop], view, len);
		rte_pktmbuf_free(buffer);
	} else if (is_own(buffer) && has_headroom(buffer, packet - CV_CONVOY_PREFIX_LEN, outer)) {
		adopt(depart, hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	} else {
		cv_frame_add_copy(depart, hop, view);
		rte_pktmbuf_free(buffer);
	}
}

// Bytes of n packets that lie one behind the other, with their lengths.
static CV_INLINE uint32_t bytes_of(const struct cv_view *views, unsigned n)
{
	const struct cv_view *last = &views[n - 1];

	return (uint32_t)(last->data + last->len - cv_view_packet(views)) + CV_CONVOY_PREFIX_LEN;
}

bool cv_frame_add_convoy(struct cv_depart *depart, uint16_t hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n, unsigned behind)
{
	const struct cv_outer *outer = &depart->hops[hop].outer;
	const uint32_t bytes = bytes_of(views, n);
	const uint32_t most = (uint32_t)outer->frame_max - outer->len;
	uint8_t *begin = cv_view_packet(views) - CV_CONVOY_PREFIX_LEN;

	if (bytes > most)
		return false;
	if (make_room(depart, hop, bytes, n)) {
		memcpy(extend(&depart->frames[hop], bytes, n), begin, bytes);
		rte_pktmbuf_free(buffer);
		return true;
	}
	if (!is_own(buffer) || !has_headroom(buffer, begin, outer))
		return false;
	if (behind > 0 && bytes + bytes_of(views + n, behind) > most)
		send_convoy(depart, hop, buffer, begin, begin + bytes, (uint8_t)n, views);
	else
		adopt(depart, hop, buffer, begin, begin + bytes, (uint8_t)n, views);
	return true;
}
