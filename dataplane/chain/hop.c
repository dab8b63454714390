// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "hop.h"
#include "ipv4.h"
#include "ipv6.h"

// Headers are read this many packets after they were asked for.
#define PREFETCH_AHEAD 8u

const char *const cv_hop_drop_names[CV_HOP_DROPS] = {
	[CV_HOP_NO_CHAIN] = "no_chain",
	[CV_HOP_SEGMENTED] = "segmented",
	[CV_HOP_TOO_BIG] = "too_big",
	[CV_HOP_TX_FULL] = "tx_full",
	[CV_HOP_RING_FULL] = "ring_full",
	[CV_HOP_BAD_CONVOY] = "bad_convoy",
	[CV_HOP_OTHERS_CONVOY] = "others_convoy",
	[CV_HOP_NO_BUFFER] = "no_buffer",
};

// Frees a received frame that goes nowhere, and counts it as one packet.
static __rte_noinline void refuse(
	struct rte_mbuf *frame, enum cv_hop_drop why, struct cv_port_counters *counters)
{
	cv_count(&counters->drops[why], 1);
	rte_pktmbuf_free(frame);
}

// Puts a packet that is scattered over several buffers into one; false: it is freed, and counted.
static __rte_noinline bool gather(struct rte_mbuf *packet, struct cv_port_counters *counters)
{
	if (rte_pktmbuf_linearize(packet) == 0)
		return true;
	cv_count(&counters->rx_bytes, packet->pkt_len);
	refuse(packet, CV_HOP_SEGMENTED, counters);
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
		if (CV_UNLIKELY(packet->nb_segs > 1) && !gather(packet, counters))
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
	burst->singly = true;
	burst->whole = true;
	cv_count(&counters->rx_packets, n);
	cv_count(&counters->rx_frames, n);
	cv_count(&counters->rx_bytes, bytes);
}

// Is a convoy, whose IP header the walk found good, addressed to the port?
static bool is_ours(const struct cv_view *frame, const struct cv_convoy_rx *rx)
{
	uint8_t len = frame->proto == CV_PROTO_IPV4 ? 4 : 16;
	const uint8_t *to = frame->data + frame->l3 + (len == 4 ? 16 : 24);

	return rx->address_len == 0 ||
	       (rx->address_len == len && memcmp(to, rx->address, len) == 0);
}

// A function reads, and most write, something of every packet: all lines of a convoy.
static CV_INLINE void prefetch_all(const struct rte_mbuf *frame)
{
	const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);

	for (uint32_t at = 0; at < frame->data_len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(data + at);
}

uint16_t cv_burst_load_convoys(struct cv_burst *burst, struct rte_mbuf **frames, uint16_t n,
	uint8_t in, uint8_t out, const struct cv_convoy_rx *rx, struct cv_port_counters *counters)
{
	struct cv_buffers *buffers = &burst->buffers;
	bool convoys = false; // the last frame was one; where one is, more are
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
		enum cv_convoy_reason reason;
		struct cv_convoy convoy;
		struct cv_view outer;
		unsigned count = 1;

		if (convoys && i + 1u < n)
			prefetch_all(frames[i + 1]);
		else
			rte_prefetch0(rte_pktmbuf_mtod(
				frames[RTE_MIN(i + PREFETCH_AHEAD, n - 1u)], void *));
		if (CV_UNLIKELY(frame->nb_segs > 1) && !gather(frame, counters)) {
			refused++;
			continue;
		}
		show(&outer, frame, in, out);
		frame_bytes += outer.len;
		reason = cv_convoy_walk(&convoy, burst->views + at, &outer, rx->udp_port);
		convoys = reason == CV_CONVOY_OK;
		if (CV_LIKELY(convoys)) {
			if (CV_UNLIKELY(!is_ours(&outer, rx))) {
				refuse(frame, CV_HOP_OTHERS_CONVOY, counters);
				refused++;
				continue;
			}
			count = convoy.count;
			if (CV_UNLIKELY(count == 1))
				cv_buffer_set(frame, burst->views[at].data, burst->views[at].len);
		} else if (CV_LIKELY(reason == CV_CONVOY_NOT_A_CONVOY)) {
			burst->views[at] = outer;
		} else {
			cv_count(&rx->counters->refused[reason], 1);
			refuse(frame, CV_HOP_BAD_CONVOY, counters);
			refused++;
			continue;
		}
		cv_count(&rx->counters->sizes[count], 1);
		buffers->buffers[buffers->n] = frame;
		buffers->views[buffers->n++] = (uint8_t)count;
		at += count;
	}
	burst->n = (uint16_t)at;
	burst->singly = at == buffers->n;
	burst->whole = true;
	cv_burst_measure(burst);
	cv_count(&counters->rx_packets, at + refused);
	cv_count(&counters->rx_frames, i);
	cv_count(&counters->rx_bytes, frame_bytes);
	return (uint16_t)i;
}

void cv_burst_take_views(struct cv_burst *burst, uint16_t n, uint8_t in, uint8_t out,
	struct cv_port_counters *counters)
{
	burst->n = n;
	burst->singly = true;
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

CV_HOT void cv_burst_measure(struct cv_burst *burst)
{
	uint32_t bytes = 0;
	unsigned longest = 0;
	unsigned shortest = UINT16_MAX;

	for (unsigned i = 0; i < burst->n; i++) {
		unsigned len = cv_view_packet_len(&burst->views[i]);

		bytes += burst->views[i].len;
		longest = RTE_MAX(longest, len);
		shortest = RTE_MIN(shortest, len);
	}
	burst->bytes = bytes;
	burst->longest = (uint16_t)longest;
	burst->shortest = (uint16_t)shortest;
}

// How many of the views are of this class.
static unsigned of_class(const uint8_t *classes, uint8_t class, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++)
		count += classes[i] == class;
	return count;
}

// Copies those of n views that are of the class into a new buffer, one behind the other, and shows
// them there. NULL: there is none.
static struct rte_mbuf *copy_class(const struct cv_view *views, const uint8_t *classes,
	uint8_t class, unsigned n, struct cv_view *copies, struct rte_mempool *pool)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);
	unsigned copied = 0;
	uint32_t room;
	uint8_t *at;

	if (buffer == NULL)
		return NULL;
	at = rte_pktmbuf_mtod(buffer, uint8_t *);
	room = rte_pktmbuf_tailroom(buffer);
	for (unsigned i = 0; i < n; i++) {
		uint32_t len = cv_view_packet_len(&views[i]);
		rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)len);

		if (classes[i] != class)
			continue;
		if (len + sizeof(prefix) > room) { // another pool's: cannot be of this one
			rte_pktmbuf_free(buffer);
			return NULL;
		}
		memcpy(at, &prefix, sizeof(prefix));
		memcpy(at + sizeof(prefix), cv_view_packet(&views[i]), len);
		copies[copied] = views[i];
		copies[copied++].data = at + sizeof(prefix) + views[i].before;
		at += sizeof(prefix) + len;
		room -= (uint32_t)sizeof(prefix) + len;
	}
	if (copied == 1)
		cv_buffer_set(buffer, cv_view_packet(copies), cv_view_packet_len(copies));
	return buffer;
}

void cv_burst_pick(const struct cv_burst *from, const uint8_t *classes, uint8_t class,
	struct cv_burst *to, struct rte_mempool *pool, struct cv_port_counters *counters)
{
	const struct cv_view *views = from->views;

	to->n = 0;
	to->singly = from->singly;
	to->whole = from->whole;
	to->buffers.n = 0;
	for (unsigned b = 0; b < from->buffers.n; b++) {
		struct rte_mbuf *buffer = from->buffers.buffers[b];
		unsigned n = from->buffers.views[b];
		unsigned count = of_class(classes, class, n);

		if (count == n)
			memcpy(&to->views[to->n], views, n * sizeof(*views));
		else if (count > 0)
			buffer = copy_class(views, classes, class, n, &to->views[to->n], pool);
		if (buffer == NULL) {
			cv_count(&counters->drops[CV_HOP_NO_BUFFER], count);
		} else if (count > 0) {
			to->buffers.buffers[to->buffers.n] = buffer;
			to->buffers.views[to->buffers.n++] = (uint8_t)count;
			to->n += (uint16_t)count;
		}
		views += n;
		classes += n;
	}
	cv_burst_measure(to);
}

void cv_burst_picked(const struct cv_burst *from, const uint8_t *classes)
{
	const struct cv_buffers *buffers = &from->buffers;
	unsigned at = 0;

	for (unsigned b = 0; b < buffers->n; at += buffers->views[b++])
		if (of_class(classes + at, classes[at], buffers->views[b]) < buffers->views[b])
			rte_pktmbuf_free(buffers->buffers[b]);
}

// Counts the packets whose verdict is a drop, and frees the buffers that nothing is left in; the
// others close ranks.
static void sort_out(
	struct cv_burst *burst, const uint8_t *verdicts, struct cv_nf_counters *counters)
{
	struct cv_buffers *buffers = &burst->buffers;
	struct rte_mbuf *empty[CV_BUFFERS_MAX];
	unsigned buffers_kept = 0;
	unsigned empties = 0;
	unsigned kept = 0;
	unsigned at = 0;

	for (unsigned b = 0; b < buffers->n; b++) {
		unsigned end = at + buffers->views[b];
		unsigned before = kept;

		for (; at < end; at++) {
			if (CV_LIKELY(verdicts[at] == CV_NEXT)) {
				burst->views[kept++] = burst->views[at];
				continue;
			}
			cv_count(&counters->drops[verdicts[at] - CV_DROP(0)], 1);
			burst->bytes -= burst->views[at].len;
		}
		if (kept == before) {
			empty[empties++] = buffers->buffers[b];
			continue;
		}
		if (CV_UNLIKELY(kept - before == 1 && buffers->views[b] > 1))
			cv_buffer_set(buffers->buffers[b], cv_view_packet(&burst->views[before]),
				cv_view_packet_len(&burst->views[before]));
		buffers->views[buffers_kept] = (uint8_t)(kept - before);
		buffers->buffers[buffers_kept++] = buffers->buffers[b];
	}
	buffers->n = (uint16_t)buffers_kept;
	burst->n = (uint16_t)kept;
	burst->whole = false;
	rte_pktmbuf_free_bulk(empty, empties);
}

void cv_path_run(const struct cv_path *path, unsigned worker, struct cv_burst *burst)
{
	uint8_t verdicts[CV_BURST_VIEWS];
	uint64_t then = rte_rdtsc();

	for (unsigned i = 0; i < path->length && burst->n > 0; i++) {
		const struct cv_step *step = &path->steps[i];
		unsigned drops = 0;
		uint64_t now;

		cv_count(&step->counters->packets, burst->n);
		cv_count(&step->counters->bytes, burst->bytes);
		for (unsigned at = 0; at < burst->n; at += CV_BURST_MAX)
			drops += step->process(step->instance, worker, burst->views + at,
				verdicts + at, RTE_MIN(burst->n - at, (unsigned)CV_BURST_MAX));
		if (drops > 0)
			sort_out(burst, verdicts, step->counters);
		now = rte_rdtsc();
		cv_count(&step->counters->busy_cycles, now - then);
		then = now;
	}
}
