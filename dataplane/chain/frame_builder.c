// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/frame_builder.h"
#include "chain/lookalike.h"
#include "chain/trace_hooks.h"
#include "chain/tx_buffer.h"
#include "compress/compress.h"
#include "convoy/frame_inline.h"

// May a buffer become a frame, of packets from begin on? Not what somebody else holds too, nor what
// is not its own memory, nor what has no room for an outer header before them.
static bool may_become_frame(
	const struct rte_mbuf *buffer, const uint8_t *begin, const struct cv_outer *outer)
{
	return CV_LIKELY(rte_mbuf_refcnt_read(buffer) == 1 && RTE_MBUF_DIRECT(buffer) &&
			 buffer->nb_segs == 1) &&
	       CV_LIKELY(begin >= (const uint8_t *)buffer->buf_addr + outer->len);
}

static void drop(struct cv_tx *tx, uint8_t out, const struct cv_view *view, enum cv_drop_reason why)
{
	if (cv_trace_is_on())
		cv_trace_dropped(view, 1, why);
	cv_count(&tx->counters[out].drops[why], 1);
}

struct rte_mbuf *cv_builder_copy_packet(struct cv_tx *tx, uint8_t out, const struct cv_view *view)
{
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(tx->pool);

	if (CV_UNLIKELY(buffer == NULL)) {
		drop(tx, out, view, CV_DROP_NO_BUFFER);
		return NULL;
	}
	if (CV_UNLIKELY(rte_pktmbuf_tailroom(buffer) < len)) {
		drop(tx, out, view, CV_DROP_TOO_BIG);
		rte_pktmbuf_free(buffer);
		return NULL;
	}
	memcpy(rte_pktmbuf_mtod(buffer, uint8_t *), cv_view_packet(view), len);
	if (cv_trace_is_on())
		cv_trace_moved(view, rte_pktmbuf_mtod(buffer, uint8_t *));
	buffer->data_len = (uint16_t)len;
	buffer->pkt_len = len;
	return buffer;
}

// Sends what a buffer has for a next hop.
static void put(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, uint8_t count)
{
	cv_count(&tx->next_hop_counters[next_hop].sizes[count], 1);
	cv_tx_buffer_put(tx, tx->next_hops[next_hop].port, buffer, count);
}

// Writes a frame of several packets, which lie from begin to end, compressed if that is smaller.
// Returns its first byte, and its end.
static __rte_noinline uint8_t *make_compressed(struct cv_tx *tx, uint16_t next_hop, uint8_t *begin,
	const uint8_t **end, unsigned count, const struct cv_view *first)
{
	const struct cv_next_hop *to = &tx->next_hops[next_hop];
	struct cv_compression_counters *counters = &tx->next_hop_counters[next_hop].compression;
	const rte_be16_t sport = cv_flow_sport(first); // of the packet, before it is compressed
	const uint32_t raw = (uint32_t)(*end - begin);
	const uint32_t made = cv_compress(to->compressor, tx->tx_queue, begin, raw);
	const uint32_t bytes = made > 0 ? made : raw;
	uint8_t *data =
		cv_outer_write(&to->outer, begin - to->outer.len, (uint8_t)count, bytes, sport);

	if (made > 0)
		data[to->outer.len - CV_CONVOY_LEN] = CV_CONVOY_VERSION << 4 | CV_CONVOY_COMPRESSED;
	cv_count(made > 0 ? &counters->frames : &counters->not_smaller, 1);
	cv_count(&counters->bytes_before, to->outer.len + raw);
	cv_count(&counters->bytes_after, to->outer.len + bytes);
	*end = begin + bytes;
	return data;
}

// Sends what lies from begin to end in a buffer, which fits into a convoy.
static CV_INLINE void put_frame(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer,
	uint8_t *begin, const uint8_t *end, unsigned count, const struct cv_view *first)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	const uint8_t *data;

	if (cv_trace_is_on())
		cv_trace_convoy(buffer, next_hop, begin, end, count);
	if (CV_UNLIKELY(tx->next_hops[next_hop].compressor != NULL) && count > 1)
		data = make_compressed(tx, next_hop, begin, &end, count, first);
	else
		data = cv_frame_make(outer, begin, end, (uint8_t)count, first);
	cv_buffer_set(buffer, data, (uint32_t)(end - data));
	put(tx, next_hop, buffer, (uint8_t)count);
}

void cv_builder_close(struct cv_tx *tx, uint16_t next_hop)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	struct rte_mbuf *buffer = builder->buffer;

	if (buffer == NULL)
		return;
	builder->buffer = NULL;
	put_frame(tx, next_hop, buffer, builder->frame.begin, builder->frame.end,
		builder->frame.count, &builder->frame.first);
}

void cv_builder_close_port(struct cv_tx *tx, uint8_t out)
{
	for (unsigned i = 0; i < tx->building_count; i++)
		if (tx->next_hops[tx->building[i]].port == out)
			cv_builder_close(tx, tx->building[i]);
}

// Begins a frame with what lies from begin to end in a buffer, which the frame then owns.
static void adopt(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, uint8_t *begin,
	uint8_t *end, unsigned count, const struct cv_view *first)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const uint8_t *limit = (uint8_t *)buffer->buf_addr + buffer->buf_len;

	if (!builder->listed)
		tx->building[tx->building_count++] = next_hop;
	builder->listed = true;
	builder->due = 0;
	builder->buffer = buffer;
	cv_frame_adopt(&builder->frame, &tx->next_hops[next_hop].outer, begin, end,
		(uint32_t)(limit - end), (uint8_t)count, first);
}

// Adds a packet to the frame being built; false: there is none, or none any more, as it did not fit.
static bool append(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];

	if (builder->buffer == NULL)
		return false;
	if (CV_LIKELY(cv_frame_append(&builder->frame, view)))
		return true;
	cv_builder_close(tx, next_hop);
	return false;
}

static bool fits_a_convoy(const struct cv_outer *outer, uint32_t len)
{
	return len <= outer->packet_max && len >= CV_CONVOY_PACKET_MIN;
}

// Does a packet have to be dropped that does not fit into any convoy? One that looks like a convoy, or
// whose next hop is reached in convoys only.
static bool is_refused(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	if (tx->next_hops[next_hop].outer.encapsulate) {
		drop(tx, view->out, view, CV_DROP_TOO_BIG);
		return true;
	}
	if (CV_LIKELY(!cv_lookalike_to(tx, view, next_hop)))
		return false;
	drop(tx, view->out, view, CV_DROP_LOOKS_LIKE_CONVOY);
	return true;
}

// Sends a packet that does not fit into any convoy to a next hop. It must not overtake others.
static void pass(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer)
{
	cv_builder_close(tx, next_hop);
	if (buffer != NULL)
		put(tx, next_hop, buffer, 1);
}

void cv_builder_add_copy(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer;
	uint8_t *packet;

	if (CV_UNLIKELY(!fits_a_convoy(outer, len))) {
		if (!is_refused(tx, next_hop, view))
			pass(tx, next_hop, cv_builder_copy_packet(tx, view->out, view));
	} else if (!append(tx, next_hop, view)) {
		buffer = cv_builder_copy_packet(tx, view->out, view);
		if (buffer == NULL)
			return;
		packet = rte_pktmbuf_mtod(buffer, uint8_t *);
		adopt(tx, next_hop, buffer, packet - CV_CONVOY_PREFIX_LEN, packet + len, 1, view);
	}
}

void cv_builder_add_buffer(
	struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, const struct cv_view *view)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint8_t *begin = cv_view_packet(view) - CV_CONVOY_PREFIX_LEN;

	if (CV_UNLIKELY(!fits_a_convoy(outer, cv_view_packet_len(view)))) {
		if (is_refused(tx, next_hop, view))
			rte_pktmbuf_free(buffer);
		else
			pass(tx, next_hop, buffer);
	} else if (append(tx, next_hop, view)) {
		rte_pktmbuf_free(buffer);
	} else if (may_become_frame(buffer, begin, outer)) {
		adopt(tx, next_hop, buffer, begin, view->data + view->len, 1, view);
	} else {
		cv_builder_add_copy(tx, next_hop, view);
		rte_pktmbuf_free(buffer);
	}
}

// Bytes of n packets that lie one behind the other, with their lengths.
static CV_INLINE uint32_t bytes_of(const struct cv_view *views, unsigned n)
{
	const struct cv_view *last = &views[n - 1];

	return (uint32_t)(last->data + last->len - cv_view_packet(views)) + CV_CONVOY_PREFIX_LEN;
}

bool cv_builder_add_convoy(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer,
	const struct cv_view *views, unsigned n, unsigned behind)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	const uint32_t bytes = bytes_of(views, n);
	const uint32_t most = (uint32_t)outer->frame_max - outer->len;
	uint8_t *begin = cv_view_packet(views) - CV_CONVOY_PREFIX_LEN;

	if (bytes > most)
		return false;
	if (builder->buffer != NULL) {
		if (cv_frame_add_run(&builder->frame, begin, bytes, n)) {
			rte_pktmbuf_free(buffer);
			return true;
		}
		cv_builder_close(tx, next_hop);
	}
	if (!may_become_frame(buffer, begin, outer))
		return false;
	if (behind > 0 && bytes + bytes_of(views + n, behind) > most)
		put_frame(tx, next_hop, buffer, begin, begin + bytes, n, views);
	else
		adopt(tx, next_hop, buffer, begin, begin + bytes, n, views);
	return true;
}
