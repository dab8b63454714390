// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/frame_builder.h"
#include "chain/lookalike.h"
#include "chain/tx_buffer.h"
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

static struct rte_mbuf *new_buffer(struct cv_tx *tx, uint8_t out)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(tx->pool);

	if (CV_UNLIKELY(buffer == NULL))
		cv_count(&tx->counters[out].drops[CV_DROP_NO_BUFFER], 1);
	return buffer;
}

struct rte_mbuf *cv_frame_copy_packet(struct cv_tx *tx, uint8_t out, const struct cv_view *view)
{
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer = new_buffer(tx, out);

	if (CV_UNLIKELY(buffer != NULL && rte_pktmbuf_tailroom(buffer) < len)) {
		cv_count(&tx->counters[out].drops[CV_DROP_TOO_BIG], 1);
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
static CV_INLINE void send_convoy(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer,
	const uint8_t *begin, const uint8_t *end, uint8_t count, const struct cv_view *first)
{
	const struct cv_next_hop *to = &tx->next_hops[next_hop];
	uint8_t *data = (uint8_t *)(uintptr_t)begin - to->outer.len;
	rte_be16_t sport = rte_cpu_to_be_16(
		CV_CONVOY_SPORT_MIN | (cv_flow_hash(first) & CV_CONVOY_SPORT_MASK));

	cv_count(&tx->next_hop_counters[next_hop].sizes[count], 1);
	cv_outer_write(&to->outer, data, count, (uint32_t)(end - begin), sport);
	cv_buffer_set(buffer, data, (uint32_t)(end - data));
	cv_tx_buffer_put(tx, to->port, buffer, count);
}

static void write_len(uint8_t *at, uint32_t len)
{
	rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)len);

	memcpy(at, &prefix, sizeof(prefix));
}

// A single packet that must not be sent as it is: its length, so far not needed, is written.
static bool is_lookalike(
	const struct cv_tx *tx, uint16_t next_hop, const struct cv_frame_builder *builder)
{
	if (CV_LIKELY(!cv_lookalike_to(tx, &builder->first, next_hop)))
		return false;
	write_len(builder->begin, cv_view_packet_len(&builder->first));
	return true;
}

void cv_frame_close(struct cv_tx *tx, uint16_t next_hop)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	struct rte_mbuf *buffer = builder->buffer;

	if (buffer == NULL)
		return;
	builder->buffer = NULL;
	if (builder->count == 1 && !is_lookalike(tx, next_hop, builder)) {
		const uint8_t *packet = builder->begin + CV_CONVOY_PREFIX_LEN;

		cv_count(&tx->next_hop_counters[next_hop].sizes[1], 1);
		cv_buffer_set(buffer, packet, (uint32_t)(builder->end - packet));
		cv_tx_buffer_put(tx, tx->next_hops[next_hop].port, buffer, 1);
	} else {
		send_convoy(tx, next_hop, buffer, builder->begin, builder->end, builder->count,
			&builder->first);
	}
}

void cv_frame_close_port(struct cv_tx *tx, uint8_t out)
{
	for (unsigned i = 0; i < tx->building_count; i++)
		if (tx->next_hops[tx->building[i]].port == out)
			cv_frame_close(tx, tx->building[i]);
}

// Begins a frame with what lies from begin to end in a buffer, which the frame then owns.
static void adopt(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, uint8_t *begin,
	uint8_t *end, uint8_t count, const struct cv_view *first)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint32_t by_mtu = outer->frame_max - outer->len - (uint32_t)(end - begin);
	uint32_t by_buffer = (uint32_t)((uint8_t *)buffer->buf_addr + buffer->buf_len - end);

	if (!builder->listed)
		tx->building[tx->building_count++] = next_hop;
	*builder = (struct cv_frame_builder){
		.buffer = buffer,
		.listed = true,
		.count = count,
		.begin = begin,
		.end = end,
		.room = RTE_MIN(by_mtu, by_buffer),
		.first = *first,
	};
	builder->first.data = begin + CV_CONVOY_PREFIX_LEN + first->before; // it may be a copy
}

// Closes the frame if so many more packets and bytes do not fit into it. True if one is open still.
static bool make_room(struct cv_tx *tx, uint16_t next_hop, uint32_t bytes, unsigned count)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];

	if (builder->buffer == NULL)
		return false;
	if (CV_LIKELY(bytes <= builder->room && builder->count + count <= CV_CONVOY_PACKETS_MAX))
		return true;
	cv_frame_close(tx, next_hop);
	return false;
}

// Makes room for count packets of so many bytes behind those of the frame being built; returns
// where.
static uint8_t *extend(struct cv_frame_builder *builder, uint32_t bytes, unsigned count)
{
	uint8_t *at = builder->end;

	if (builder->count == 1)
		write_len(builder->begin,
			(uint32_t)(builder->end - builder->begin) - CV_CONVOY_PREFIX_LEN);
	builder->end += bytes;
	builder->room -= bytes;
	builder->count += (uint8_t)count;
	return at;
}

static void append_packet(
	struct cv_frame_builder *builder, const struct cv_view *view, uint32_t len)
{
	uint8_t *at = extend(builder, len + CV_CONVOY_PREFIX_LEN, 1);

	write_len(at, len);
	memcpy(at + CV_CONVOY_PREFIX_LEN, cv_view_packet(view), len);
}

static bool fits_a_convoy(const struct cv_outer *outer, uint32_t len)
{
	return len <= outer->packet_max && len >= CV_CONVOY_PACKET_MIN;
}

// Does a packet have to be dropped? One that does not fit into any convoy, and looks like one.
static bool is_refused(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	if (CV_LIKELY(!cv_lookalike_to(tx, view, next_hop)))
		return false;
	cv_count(&tx->counters[view->out].drops[CV_DROP_LOOKS_LIKE_CONVOY], 1);
	return true;
}

// Sends a packet that does not fit into any convoy to a next hop. It must not overtake others.
static void pass(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer)
{
	cv_frame_close(tx, next_hop);
	if (buffer == NULL)
		return;
	cv_count(&tx->next_hop_counters[next_hop].sizes[1], 1);
	cv_tx_buffer_put(tx, tx->next_hops[next_hop].port, buffer, 1);
}

void cv_frame_add_copy(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer;
	uint8_t *packet;

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		if (!is_refused(tx, next_hop, view))
			pass(tx, next_hop, cv_frame_copy_packet(tx, view->out, view));
	} else if (make_room(tx, next_hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&tx->builders[next_hop], view, len);
	} else {
		buffer = cv_frame_copy_packet(tx, view->out, view);
		if (buffer == NULL)
			return;
		packet = rte_pktmbuf_mtod(buffer, uint8_t *);
		adopt(tx, next_hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	}
}

void cv_frame_add_buffer(
	struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, const struct cv_view *view)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint8_t *packet = cv_view_packet(view);
	uint32_t len = cv_view_packet_len(view);

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		if (is_refused(tx, next_hop, view))
			rte_pktmbuf_free(buffer);
		else
			pass(tx, next_hop, buffer);
	} else if (make_room(tx, next_hop, len + CV_CONVOY_PREFIX_LEN, 1)) {
		append_packet(&tx->builders[next_hop], view, len);
		rte_pktmbuf_free(buffer);
	} else if (is_own(buffer) && has_headroom(buffer, packet - CV_CONVOY_PREFIX_LEN, outer)) {
		adopt(tx, next_hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	} else {
		cv_frame_add_copy(tx, next_hop, view);
		rte_pktmbuf_free(buffer);
	}
}

// Bytes of n packets that lie one behind the other, with their lengths.
static CV_INLINE uint32_t bytes_of(const struct cv_view *views, unsigned n)
{
	const struct cv_view *last = &views[n - 1];

	return (uint32_t)(last->data + last->len - cv_view_packet(views)) + CV_CONVOY_PREFIX_LEN;
}

bool cv_frame_add_convoy(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n, unsigned behind)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	const uint32_t bytes = bytes_of(views, n);
	const uint32_t most = (uint32_t)outer->frame_max - outer->len;
	uint8_t *begin = cv_view_packet(views) - CV_CONVOY_PREFIX_LEN;

	if (bytes > most)
		return false;
	if (make_room(tx, next_hop, bytes, n)) {
		memcpy(extend(&tx->builders[next_hop], bytes, n), begin, bytes);
		rte_pktmbuf_free(buffer);
		return true;
	}
	if (!is_own(buffer) || !has_headroom(buffer, begin, outer))
		return false;
	if (behind > 0 && bytes + bytes_of(views + n, behind) > most)
		send_convoy(tx, next_hop, buffer, begin, begin + bytes, (uint8_t)n, views);
	else
		adopt(tx, next_hop, buffer, begin, begin + bytes, (uint8_t)n, views);
	return true;
}
