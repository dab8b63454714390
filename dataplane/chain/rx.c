// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_prefetch.h>

#include "chain/rx.h"
#include "chain/trace_hooks.h"
#include "convoy/may_be.h"

// Headers are read this many packets after they were asked for.
#define PREFETCH_AHEAD 8u

// Frees a received frame that goes nowhere, and counts it as one packet.
static __rte_noinline void refuse(struct rte_mbuf *frame, uint8_t in, enum cv_drop_reason why,
	struct cv_port_counters *counters)
{
	if (cv_trace_is_on())
		cv_trace_refused(frame, in, why);
	cv_count(&counters->drops[why], 1);
	rte_pktmbuf_free(frame);
}

// Puts a packet in several segments into one buffer; false: it is freed, and counted.
static __rte_noinline bool linearize(
	struct rte_mbuf *packet, uint8_t in, struct cv_port_counters *counters)
{
	if (rte_pktmbuf_linearize(packet) == 0)
		return true;
	cv_count(&counters->rx_bytes, packet->pkt_len);
	refuse(packet, in, CV_DROP_SEGMENTED, counters);
	return false;
}

static CV_INLINE void show(struct cv_view *view, struct rte_mbuf *packet, uint8_t in, uint8_t out)
{
	cv_view_set(view, rte_pktmbuf_mtod(packet, uint8_t *), packet->data_len);
	view->in = in;
	view->out = out;
}

CV_HOT void cv_burst_load(struct cv_burst *burst, struct rte_mbuf **packets, uint16_t n, uint8_t in,
	uint8_t out, struct cv_port_counters *counters)
{
	uint32_t bytes = 0;
	unsigned longest = 0;
	unsigned shortest = UINT16_MAX;
	unsigned kept = 0;

	for (unsigned i = 0; i < RTE_MIN((unsigned)n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (unsigned i = 0; i < n; i++) {
		// Past the end the last one is asked for again, which is cheaper than to ask whether.
		struct rte_mbuf *ahead = packets[RTE_MIN(i + PREFETCH_AHEAD, n - 1u)];
		struct rte_mbuf *packet = packets[i];

		rte_prefetch0(rte_pktmbuf_mtod(ahead, void *));
		if (CV_UNLIKELY(packet->nb_segs > 1) && !linearize(packet, in, counters))
			continue;
		show(&burst->views[kept], packet, in, out);
		bytes += packet->data_len;
		longest = RTE_MAX(longest, packet->data_len);
		shortest = RTE_MIN(shortest, packet->data_len);
		burst->buffers.buffers[kept++] = packet;
	}
	memset(burst->buffers.views, 1, sizeof(burst->buffers.views));
	burst->buffers.n = kept;
	burst->n = kept;
	burst->bytes = bytes;
	burst->longest = (uint16_t)longest;
	burst->shortest = (uint16_t)shortest;
	burst->whole = true;
	cv_count(&counters->rx_packets, n);
	cv_count(&counters->rx_frames, n);
	cv_count(&counters->rx_bytes, bytes);
}

// Is the address, of an IP header that the walk found good, this one?
static CV_INLINE bool is_address(
	const struct cv_view *frame, const uint8_t *at, const struct cv_convoy_address *address)
{
	return address->len == (frame->proto == CV_PROTO_IPV4 ? 4 : 16) &&
	       memcmp(at, address->bytes, address->len) == 0;
}

// Why a convoy is not taken that is addressed to somebody else, or comes from somebody who may not
// send any; CV_DROP_REASONS: it is taken.
static __rte_noinline enum cv_drop_reason refusal_of(
	const struct cv_view *frame, const struct cv_convoy_rx *rx)
{
	const bool ipv4 = frame->proto == CV_PROTO_IPV4;
	const uint8_t *ip = frame->data + frame->l3;

	if (rx->address.len > 0 && !is_address(frame, ip + (ipv4 ? 16 : 24), &rx->address))
		return CV_DROP_OTHERS_CONVOY;
	for (unsigned i = 0; i < rx->senders_count; i++)
		if (is_address(frame, ip + (ipv4 ? 12 : 8), &rx->senders[i]))
			return CV_DROP_REASONS;
	return rx->senders_count > 0 ? CV_DROP_UNKNOWN_SENDER : CV_DROP_REASONS;
}

// Whether a convoy that was walked is taken, as refusal_of() says it. Where chains match NFI-IDs its
// packets get their class.
static __rte_noinline enum cv_drop_reason admit(const struct cv_view *frame,
	const struct cv_convoy *convoy, struct cv_burst *burst, unsigned at,
	const struct cv_convoy_rx *rx)
{
	const enum cv_drop_reason refusal = refusal_of(frame, rx);
	uint8_t class;

	if (refusal != CV_DROP_REASONS || rx->by_nfi == NULL)
		return refusal;
	class = cv_classify_nfi(rx->by_nfi, convoy->nfi);
	if (class == CV_CLASS_NONE)
		return CV_DROP_UNKNOWN_NFI;
	for (unsigned i = 0; i < convoy->count; i++)
		burst->views[at + i].out = class;
	cv_count(&rx->nfi_convoys[convoy->nfi], 1);
	return CV_DROP_REASONS;
}

// A frame that the walk refused. If it is a compressed one it is expanded into a buffer of its own,
// which takes the frame's place: that is walked next. CV_DROP_REASONS: done. Else the frame is to be
// dropped for that, and nothing has changed; a malformed one is counted.
static __rte_noinline enum cv_drop_reason take_other(struct rte_mbuf **frame,
	const struct cv_view *outer, enum cv_convoy_reason reason, const struct cv_convoy_rx *rx)
{
	struct cv_compression_counters *counters = &rx->counters->compression;
	enum cv_drop_reason refusal;
	struct rte_mbuf *expanded;
	uint16_t len;

	if (reason != CV_CONVOY_BAD_TYPE || !rx->expander.on) {
		cv_count(&rx->counters->refused[reason], 1);
		return CV_DROP_BAD_CONVOY;
	}
	refusal = refusal_of(outer, rx);
	if (refusal != CV_DROP_REASONS)
		return refusal;
	expanded = rte_pktmbuf_alloc(rx->pool);
	if (CV_UNLIKELY(expanded == NULL))
		return CV_DROP_NO_BUFFER;
	reason = cv_expand(&rx->expander, outer, rx->udp_port,
		rte_pktmbuf_mtod(expanded, uint8_t *), rte_pktmbuf_tailroom(expanded), &len);
	if (CV_UNLIKELY(reason != CV_CONVOY_OK)) {
		cv_count(&rx->counters->refused[reason], 1);
		rte_pktmbuf_free(expanded);
		return CV_DROP_BAD_CONVOY;
	}
	expanded->data_len = len;
	expanded->pkt_len = len;
	cv_count(&counters->frames, 1);
	cv_count(&counters->bytes_before, len);
	cv_count(&counters->bytes_after, outer->len);
	rte_pktmbuf_free(*frame);
	*frame = expanded;
	return CV_DROP_REASONS;
}

// Whose streams a convoy's fragments are among.
static struct cv_beginning *find_beginning(const struct cv_view *frame,
	const struct cv_fragments *fragments, const struct cv_convoy_rx *rx)
{
	const bool ipv4 = frame->proto == CV_PROTO_IPV4;
	const uint8_t *from = frame->data + frame->l3 + (ipv4 ? 12 : 8);
	struct cv_convoy_address address = {.len = ipv4 ? 4 : 16};
	unsigned sender = 0;

	memcpy(address.bytes, from, address.len);
	if (rx->senders_count == 0)
		for (unsigned i = 0; i < address.len; i++)
			sender = sender * 31 + address.bytes[i];
	while (sender < rx->senders_count &&
		memcmp(&rx->senders[sender], &address, sizeof(address)) != 0)
		sender++;
	return cv_reassembly_find(
		rx->reassembly, sender % CV_REASSEMBLY_SENDERS, address.bytes, fragments->stream);
}

// A packet whose rest came, in a buffer of its own. NULL: why says why there is none.
static struct rte_mbuf *reassemble(const struct cv_beginning *beginning,
	const struct cv_fragments *fragments, const struct cv_convoy_rx *rx,
	enum cv_drop_reason *why)
{
	const uint16_t len = cv_reassembly_completes(beginning, fragments);
	struct rte_mbuf *packet;

	*why = len == 0 ? CV_DROP_LOST_FRAGMENT : CV_DROP_NO_BUFFER;
	packet = len > 0 ? rte_pktmbuf_alloc(rx->pool) : NULL;
	if (CV_UNLIKELY(packet == NULL))
		return NULL;
	if (CV_UNLIKELY(rte_pktmbuf_append(packet, len) == NULL)) {
		rte_pktmbuf_free(packet);
		return NULL;
	}
	cv_reassembly_complete(beginning, fragments, rte_pktmbuf_mtod(packet, uint8_t *));
	return packet;
}

static CV_INLINE void add_buffer(
	struct cv_buffers *buffers, struct rte_mbuf *buffer, unsigned views)
{
	buffers->buffers[buffers->n] = buffer;
	buffers->views[buffers->n++] = (uint8_t)views;
}

// Takes a walked frame of fragments, whose count views are the burst's from `at` on: a packet whose rest
// it has gets a buffer of its own, and those that are whole stay where they lie. Returns how many views
// there are then: one less, which is counted, where the packet's beginning is missing.
static unsigned take_fragments(struct cv_burst *burst, unsigned at, struct rte_mbuf *frame,
	const struct cv_view *outer, unsigned count, const struct cv_fragments *fragments,
	const struct cv_convoy_rx *rx, struct cv_port_counters *counters)
{
	struct cv_beginning *beginning = find_beginning(outer, fragments, rx);
	struct cv_view *views = &burst->views[at];
	struct rte_mbuf *packet;
	enum cv_drop_reason why;
	unsigned taken = 0;

	if (fragments->rest_len > 0) {
		packet = reassemble(beginning, fragments, rx, &why);
		count--;
		if (CV_LIKELY(packet != NULL)) {
			cv_view_set(views++, rte_pktmbuf_mtod(packet, uint8_t *), packet->data_len);
			add_buffer(&burst->buffers, packet, 1);
			taken++;
		} else {
			if (cv_trace_is_on())
				cv_trace_refused(frame, outer->in, why);
			cv_count(&counters->drops[why], 1);
			memmove(views, views + 1, count * sizeof(*views));
		}
	}
	cv_reassembly_keep(rx->reassembly, beginning, fragments);
	if (count == 0) {
		rte_pktmbuf_free(frame);
		return taken;
	}
	if (count == 1)
		cv_buffer_set(frame, views->data, views->len);
	add_buffer(&burst->buffers, frame, count);
	return taken + count;
}

// A function reads, and most write, something of every packet: nearly all lines of a convoy of so many.
#define DENSE 8u

static CV_INLINE void prefetch_all(const struct rte_mbuf *frame)
{
	const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);

	// Four at a time; beyond the end does no harm.
	for (uint32_t at = 0; at < frame->data_len; at += 4 * RTE_CACHE_LINE_SIZE) {
		rte_prefetch0(data + at);
		rte_prefetch0(data + at + RTE_CACHE_LINE_SIZE);
		rte_prefetch0(data + at + 2 * RTE_CACHE_LINE_SIZE);
		rte_prefetch0(data + at + 3 * RTE_CACHE_LINE_SIZE);
	}
}

// How long the packets of a burst are, as far as it is loaded.
struct lengths {
	uint32_t bytes;
	unsigned longest;
	unsigned shortest;
};

static CV_INLINE struct lengths measure(struct lengths lengths, unsigned len, unsigned count)
{
	return (struct lengths){
		.bytes = lengths.bytes + len * count,
		.longest = RTE_MAX(lengths.longest, len),
		.shortest = RTE_MIN(lengths.shortest, len),
	};
}

// Not inlined: where the packets of a convoy differ in their lengths.
static __rte_noinline struct lengths measure_each(
	struct lengths lengths, const struct cv_view *views, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		lengths = measure(lengths, views[i].len, 1);
	return lengths;
}

uint16_t cv_burst_load_convoys(struct cv_burst *burst, struct rte_mbuf **frames, uint16_t n,
	uint8_t in, uint8_t out, const struct cv_convoy_rx *rx, struct cv_port_counters *counters)
{
	const bool choosy = rx->address.len > 0 || rx->senders_count > 0 || rx->by_nfi != NULL;
	struct cv_buffers *buffers = &burst->buffers;
	struct lengths lengths = {.shortest = UINT16_MAX};
	bool dense = false; // the last frame was a convoy of short packets; where one is, more are
	uint32_t frame_bytes = 0;
	uint32_t refused = 0;
	unsigned at = 0;
	unsigned i;

	buffers->n = 0;
	for (i = 0; i < RTE_MIN((unsigned)n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
	for (i = 0; i < n && at <= CV_BURST_VIEWS - CV_CONVOY_PACKETS_MAX &&
		    buffers->n < CV_BUFFERS_MAX;
		i++) {
		struct rte_mbuf *frame = frames[i];
		struct cv_fragments fragments;
		enum cv_convoy_reason reason;
		enum cv_drop_reason refusal;
		struct cv_convoy convoy;
		struct cv_view outer;
		unsigned count = 1;
		bool convoys;

		if (dense && !rx->copies && i + 1u < n)
			prefetch_all(frames[i + 1]);
		else
			rte_prefetch0(rte_pktmbuf_mtod(
				frames[RTE_MIN(i + PREFETCH_AHEAD, n - 1u)], void *));
		if (CV_UNLIKELY(frame->nb_segs > 1) && !linearize(frame, in, counters)) {
			refused++;
			continue;
		}
		show(&outer, frame, in, out);
		frame_bytes += outer.len;
	walk:
		reason = cv_convoy_walk(&convoy, burst->views + at, &outer, rx->udp_port);
		convoys = reason == CV_CONVOY_OK;
		dense = convoys && convoy.count >= DENSE;
		if (CV_LIKELY(convoys)) {
			if (choosy && CV_UNLIKELY((refusal = admit(&outer, &convoy, burst, at,
							   rx)) != CV_DROP_REASONS)) {
				refuse(frame, in, refusal, counters);
				refused++;
				continue;
			}
			count = convoy.count;
			if (CV_UNLIKELY(count == 1))
				cv_buffer_set(frame, burst->views[at].data, burst->views[at].len);
		} else if (CV_LIKELY(reason == CV_CONVOY_NOT_A_CONVOY)) {
			burst->views[at] = outer;
		} else {
			if (reason == CV_CONVOY_BAD_TYPE && rx->reassembly != NULL)
				reason = cv_convoy_walk_fragments(&convoy, &fragments,
					burst->views + at, &outer, rx->udp_port);
			if (CV_LIKELY(reason == CV_CONVOY_OK)) {
				if (CV_UNLIKELY(buffers->n + 2 > CV_BUFFERS_MAX)) {
					frame_bytes -= outer.len;
					break; // it may take two of them
				}
				refusal = choosy ? admit(&outer, &convoy, burst, at, rx)
						 : CV_DROP_REASONS;
				if (CV_UNLIKELY(refusal != CV_DROP_REASONS)) {
					refuse(frame, in, refusal, counters);
					refused++;
					continue;
				}
				count = take_fragments(burst, at, frame, &outer, convoy.count,
					&fragments, rx, counters);
				refused += convoy.count - count; // the rest of a packet
				lengths = measure_each(lengths, burst->views + at, count);
				cv_count(&rx->counters->sizes[convoy.count], 1);
				at += count;
				continue;
			}
			refusal = take_other(&frames[i], &outer, reason, rx);
			if (refusal == CV_DROP_REASONS) {
				frame = frames[i]; // its bytes are counted as they came
				show(&outer, frame, in, out);
				goto walk;
			}
			refuse(frame, in, refusal, counters);
			refused++;
			continue;
		}
		if (CV_LIKELY(!convoys))
			lengths = measure(lengths, outer.len, 1);
		else if (CV_LIKELY(convoy.each > 0))
			lengths = measure(lengths, convoy.each, count);
		else
			lengths = measure_each(lengths, burst->views + at, count);
		cv_count(&rx->counters->sizes[count], 1);
		buffers->buffers[buffers->n] = frame;
		buffers->views[buffers->n++] = (uint8_t)count;
		at += count;
	}
	burst->n = (uint16_t)at;
	burst->whole = true;
	burst->bytes = lengths.bytes;
	burst->longest = (uint16_t)lengths.longest;
	burst->shortest = (uint16_t)lengths.shortest;
	cv_count(&counters->rx_packets, at + refused);
	cv_count(&counters->rx_frames, i);
	cv_count(&counters->rx_bytes, frame_bytes);
	return (uint16_t)i;
}

CV_HOT bool cv_views_have_convoys(const struct cv_view *views, uint16_t n, rte_be16_t udp_port)
{
	for (unsigned i = 0; i < n; i++)
		if (CV_UNLIKELY(cv_may_be_convoy(&views[i], udp_port)))
			return true;
	return false;
}

// A frame that lies among others in a buffer, in one of its own. NULL: there is none.
static struct rte_mbuf *copy_frame(const struct cv_view *view, struct rte_mempool *pool)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(pool);
	char *data = copy != NULL ? rte_pktmbuf_append(copy, view->len) : NULL;

	if (CV_UNLIKELY(data == NULL)) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	memcpy(data, view->data, view->len);
	return copy;
}

uint16_t cv_burst_to_frames(struct cv_burst *burst, uint16_t n, struct rte_mbuf **frames,
	struct rte_mempool *pool, struct cv_port_counters *counters)
{
	const struct cv_view *view = burst->views;
	uint64_t lost = 0;
	uint16_t got = 0;

	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *buffer = burst->buffers.buffers[b];
		unsigned count = burst->buffers.views[b];

		if (count == 1) {
			frames[got++] = buffer;
			view++;
			continue;
		}
		for (unsigned i = 0; i < count; i++, view++) {
			frames[got] = copy_frame(view, pool);
			if (CV_LIKELY(frames[got] != NULL)) {
				got++;
				continue;
			}
			cv_count(&counters->rx_bytes, view->len);
			lost++;
		}
		rte_pktmbuf_free(buffer);
	}
	cv_count(&counters->rx_packets, lost);
	cv_count(&counters->rx_frames, lost);
	cv_count(&counters->drops[CV_DROP_NO_BUFFER], lost);
	return got;
}

void cv_burst_take_views(struct cv_burst *burst, uint16_t n, uint8_t in, uint8_t out,
	struct cv_port_counters *counters)
{
	burst->n = n;
	burst->whole = true;
	for (unsigned i = 0; i < n; i++) {
		burst->views[i].in = in;
		burst->views[i].out = out;
	}
	cv_burst_measure(burst);
	cv_count(&counters->rx_packets, n);
	cv_count(&counters->rx_frames, n);
	cv_count(&counters->rx_bytes, burst->bytes);
}
