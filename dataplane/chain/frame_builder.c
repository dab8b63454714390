// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_random.h>

#include "chain/frame_builder.h"
#include "chain/lookalike.h"
#include "chain/repack.h"
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

static rte_be16_t stream_sport(struct cv_frame_builder *builder)
{
	while (CV_UNLIKELY(builder->stream.id == 0))
		builder->stream.id = (uint32_t)rte_rand();
	return cv_fragment_sport(builder->stream.id);
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

// Writes a frame to a next hop that takes packets in two. The receiver must get all of them by one queue.
// total: of the packet that begins at its end; 0: none does.
static __rte_noinline uint8_t *make_fragments(struct cv_tx *tx, uint16_t next_hop, uint8_t *begin,
	const uint8_t *end, unsigned count, const struct cv_view *first, uint16_t total)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const rte_be16_t sport = stream_sport(builder);
	const bool rest = builder->rest;
	uint8_t *data;

	builder->rest = false;
	if (rest || total > 0)
		return cv_fragment_make(
			outer, &builder->stream, begin, end, (uint8_t)count, rest, total);
	data = cv_frame_make(outer, begin, end, (uint8_t)count, first);
	if (data == begin - outer->len && !outer->sport_fixed)
		memcpy(data + outer->len - CV_CONVOY_LEN - CV_UDP_LEN, &sport, sizeof(sport));
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
	if (CV_UNLIKELY(outer->fragment))
		data = make_fragments(tx, next_hop, begin, end, count, first, 0);
	else if (CV_UNLIKELY(tx->next_hops[next_hop].compressor != NULL) && count > 1)
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

// Fills the frame being built with the beginning of a packet that does not fit any more, and sends it.
// Returns how many bytes of the packet that took, which must come first in the next frame; 0: nothing is
// done, as the packet would not be in two parts then, or these would be too short.
static __rte_noinline uint32_t begin_fragment(
	struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	struct cv_frame *frame = &builder->frame;
	const uint32_t header =
		builder->rest ? 0 : CV_FRAGMENTS_LEN; // that there is no room for yet
	const uint32_t len = cv_view_packet_len(view);
	struct rte_mbuf *buffer = builder->buffer;
	const uint8_t *data;
	uint32_t taken;

	if (buffer == NULL || frame->count == CV_CONVOY_PACKETS_MAX ||
		frame->room < header + CV_FRAGMENT_MIN || len < 2 * CV_FRAGMENT_MIN ||
		frame->begin < (uint8_t *)buffer->buf_addr + outer->len + CV_FRAGMENTS_LEN)
		return 0;
	taken = RTE_MIN(frame->room - header, len - 1);
	if (len - taken > cv_fragment_rest_max(outer))
		return 0;
	if (frame->count == 1)
		cv_frame_write_first_len(frame);
	if (cv_trace_is_on())
		cv_trace_convoy(buffer, next_hop, frame->begin, frame->end, frame->count);
	memcpy(frame->end, cv_view_packet(view), taken);
	frame->end += taken;
	builder->buffer = NULL;
	data = make_fragments(
		tx, next_hop, frame->begin, frame->end, frame->count, &frame->first, (uint16_t)len);
	cv_buffer_set(buffer, data, (uint32_t)(frame->end - data));
	put(tx, next_hop, buffer, frame->count);
	return taken;
}

// What is left of a packet whose beginning is in the frame before.
static struct cv_view rest_of(const struct cv_view *view, uint32_t taken)
{
	struct cv_view rest = *view;

	rest.data = cv_view_packet(view) + taken;
	rest.len = (uint16_t)(cv_view_packet_len(view) - taken);
	rest.before = 0;
	if (cv_trace_is_on())
		cv_trace_cut(view, &rest);
	return rest;
}

// Begins a frame with the rest of a packet, which lies in a buffer.
static void adopt_rest(struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, uint8_t *at,
	const struct cv_view *rest)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];

	adopt(tx, next_hop, buffer, at - CV_CONVOY_PREFIX_LEN, at + rest->len, 1, rest);
	builder->rest = true;
	builder->frame.room -= RTE_MIN(builder->frame.room, CV_FRAGMENTS_LEN);
	// It is not written when others come, as that of a packet that may leave alone.
	cv_frame_write_first_len(&builder->frame);
}

// The same of one that lies in a buffer with others.
static void add_rest_copy(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *rest)
{
	struct rte_mbuf *buffer = cv_builder_copy_packet(tx, rest->out, rest);

	if (buffer != NULL)
		adopt_rest(tx, next_hop, buffer, rte_pktmbuf_mtod(buffer, uint8_t *), rest);
}

// The same in a buffer that has nothing else, and is given away. Where its end is too near for a full
// frame the rest is moved to its begin.
static void add_rest_buffer(
	struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, const struct cv_view *rest)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	const uint32_t before = outer->len + CV_FRAGMENTS_LEN + CV_CONVOY_PREFIX_LEN;
	uint8_t *first = (uint8_t *)buffer->buf_addr + before;
	const uint8_t *limit = (uint8_t *)buffer->buf_addr + buffer->buf_len;
	uint8_t *at = rest->data;

	if (!may_become_frame(buffer, at - (before - outer->len), outer)) {
		add_rest_copy(tx, next_hop, rest);
		rte_pktmbuf_free(buffer);
		return;
	}
	if (at > first && limit - at < outer->frame_max - (int)before) {
		memmove(first, at, rest->len);
		if (cv_trace_is_on())
			cv_trace_moved(rest, first);
		at = first;
	}
	adopt_rest(tx, next_hop, buffer, at, rest);
}

// The same in a frame that has nothing else, for a packet that must not leave as it is.
static uint32_t begin_alone(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(tx->pool);
	uint32_t taken;
	uint8_t *at;

	cv_builder_close(tx, next_hop);
	if (buffer == NULL)
		return 0;
	at = rte_pktmbuf_mtod(buffer, uint8_t *);
	adopt(tx, next_hop, buffer, at, at, 0, view);
	taken = begin_fragment(tx, next_hop, view);
	if (taken == 0) {
		tx->builders[next_hop].buffer = NULL;
		rte_pktmbuf_free(buffer);
	}
	return taken;
}

// The packet does not fit into the frame being built. Cuts it in two, if that may be: its beginning leaves
// with that frame, and its rest begins another. False: nothing is done. buffer: as cv_builder_add_buffer()
// has it; NULL: it stays the caller's.
static __rte_noinline bool cut(
	struct cv_tx *tx, uint16_t next_hop, struct rte_mbuf *buffer, const struct cv_view *view)
{
	const struct cv_outer *outer = &tx->next_hops[next_hop].outer;
	uint32_t taken = begin_fragment(tx, next_hop, view);
	struct cv_view rest;

	if (taken == 0 && cv_view_packet_len(view) > outer->packet_max &&
		(outer->encapsulate || cv_lookalike_to(tx, view, next_hop)))
		taken = begin_alone(tx, next_hop, view);
	if (taken == 0)
		return false;
	rest = rest_of(view, taken);
	if (buffer != NULL)
		add_rest_buffer(tx, next_hop, buffer, &rest);
	else
		add_rest_copy(tx, next_hop, &rest);
	return true;
}

// Adds a packet to the frame being built; false: there is none, or it does not fit.
static bool append(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];

	return builder->buffer != NULL && CV_LIKELY(cv_frame_append(&builder->frame, view));
}

static bool fits_a_convoy(const struct cv_outer *outer, uint32_t len)
{
	return len <= outer->packet_max && len >= CV_CONVOY_PACKET_MIN;
}

// Does a packet have to be dropped that does not fit into any convoy? One that looks like a convoy,
// whose next hop is reached in convoys only, or that is too long for the port to it, which need not be
// the one that it was to leave by.
static bool is_refused(struct cv_tx *tx, uint16_t next_hop, const struct cv_view *view)
{
	const struct cv_next_hop *to = &tx->next_hops[next_hop];

	if (to->outer.encapsulate ||
		CV_UNLIKELY(cv_view_packet_len(view) > cv_frame_max(tx->ports[to->port]))) {
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
		if (outer->fragment && cut(tx, next_hop, NULL, view))
			return;
		if (!is_refused(tx, next_hop, view))
			pass(tx, next_hop, cv_builder_copy_packet(tx, view->out, view));
	} else if (!append(tx, next_hop, view)) {
		if (CV_UNLIKELY(outer->fragment) && cut(tx, next_hop, NULL, view))
			return;
		cv_builder_close(tx, next_hop);
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
		if (outer->fragment && cut(tx, next_hop, buffer, view))
			return;
		if (is_refused(tx, next_hop, view))
			rte_pktmbuf_free(buffer);
		else
			pass(tx, next_hop, buffer);
	} else if (append(tx, next_hop, view)) {
		rte_pktmbuf_free(buffer);
	} else {
		if (CV_UNLIKELY(outer->fragment) && cut(tx, next_hop, buffer, view))
			return;
		cv_builder_close(tx, next_hop);
		if (may_become_frame(buffer, begin, outer)) {
			adopt(tx, next_hop, buffer, begin, view->data + view->len, 1, view);
			return;
		}
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
		if (CV_UNLIKELY(outer->fragment)) // packet by packet the frame is filled
			return false;
		cv_builder_close(tx, next_hop);
	}
	if (!may_become_frame(buffer, begin, outer))
		return false;
	if (behind > 0 && CV_LIKELY(!outer->fragment) && bytes + bytes_of(views + n, behind) > most)
		put_frame(tx, next_hop, buffer, begin, begin + bytes, n, views);
	else
		adopt(tx, next_hop, buffer, begin, begin + bytes, n, views);
	return true;
}
