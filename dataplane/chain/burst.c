// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/burst.h"

#include "chain/trace_hooks.h"

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
			cv_count(&counters->drops[CV_DROP_NO_BUFFER], count);
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

// Packets in the buffers from one on.
static unsigned left_of(const struct cv_buffers *buffers, unsigned from)
{
	unsigned views = 0;

	while (from < buffers->n)
		views += buffers->views[from++];
	return views;
}

void cv_burst_push(const struct cv_buffers *buffers, const struct cv_view *views, uint16_t n,
	struct cv_ring *ring, struct cv_port_counters *counters)
{
	const uint16_t took = cv_ring_push(ring, buffers, views, n);

	if (CV_LIKELY(took == buffers->n))
		return;
	for (unsigned i = 0; i < took; i++)
		views += buffers->views[i];
	if (cv_trace_is_on())
		cv_trace_dropped(views, left_of(buffers, took), CV_DROP_RING_FULL);
	for (unsigned i = took; i < buffers->n; i++)
		cv_count(&counters->drops[CV_DROP_RING_FULL], buffers->views[i]);
	rte_pktmbuf_free_bulk(
		(struct rte_mbuf **)(uintptr_t)buffers->buffers + took, buffers->n - took);
}
