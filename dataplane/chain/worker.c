// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <sched.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "worker.h"

// A port that takes nothing is asked again this often before its packets are dropped. Long enough
// for a peer on another core to make room, short enough not to starve the other ports.
#define TX_ATTEMPTS 64

// Packets that wait for the end of the turn, by the port they leave by.
struct outbox {
	uint16_t n;
	struct rte_mbuf *packets[CV_BURST_MAX];
};

static void drop(struct cv_port_counters *counters, enum cv_hop_drop why, struct rte_mbuf **packets,
	unsigned n)
{
	cv_count(&counters->drops[why], n);
	rte_pktmbuf_free_bulk(packets, n);
}

// Sends all n packets by a port, or drops what it does not take.
static void send(struct cv_worker *worker, uint8_t out, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_port *port = worker->ports[out];
	struct cv_port_counters *counters = &worker->ports_counters[out];
	unsigned attempts = 0;
	uint64_t bytes = 0;
	uint16_t sent = 0;

	for (uint16_t i = 0; i < n; i++)
		bytes += packets[i]->pkt_len;
	while (sent < n) {
		uint16_t took = port->tx(port, worker->index, packets + sent, n - sent);

		sent += took;
		if (took > 0)
			attempts = 0;
		else if (++attempts == TX_ATTEMPTS)
			break;
		else
			rte_pause();
	}
	if (CV_UNLIKELY(sent < n)) {
		for (uint16_t i = sent; i < n; i++)
			bytes -= packets[i]->pkt_len;
		drop(counters, CV_HOP_TX_FULL, packets + sent, n - sent);
	}
	cv_count(&counters->tx_packets, sent);
	cv_count(&counters->tx_bytes, bytes);
}

static void flush(struct cv_worker *worker, struct outbox *outboxes, uint8_t out)
{
	struct outbox *box = &outboxes[out];

	if (box->n > 0)
		send(worker, out, box->packets, box->n);
	box->n = 0;
}

// The longest frame that fits through a port: two VLAN tags more than its MTU's.
static unsigned frame_max(const struct cv_port *port)
{
	return port->mtu + CV_ETHER_LEN + 2 * CV_VLAN_LEN;
}

// Sends a burst out of the node, each packet by its own port.
static void leave(struct cv_worker *worker, struct outbox *outboxes, struct cv_burst *burst)
{
	uint8_t first = burst->views[0].out;
	uint8_t different = 0;

	for (uint16_t i = 1; i < burst->n; i++)
		different |= burst->views[i].out ^ first;
	if (CV_LIKELY(different == 0 && burst->longest <= frame_max(worker->ports[first]))) {
		flush(worker, outboxes, first);
		send(worker, first, burst->packets, burst->n);
		return;
	}
	for (uint16_t i = 0; i < burst->n; i++) {
		uint8_t out = burst->views[i].out;
		struct outbox *box = &outboxes[out];

		if (burst->packets[i]->pkt_len > frame_max(worker->ports[out])) {
			drop(&worker->ports_counters[out], CV_HOP_TOO_BIG, &burst->packets[i], 1);
			continue;
		}
		if (box->n == CV_BURST_MAX)
			flush(worker, outboxes, out);
		box->packets[box->n++] = burst->packets[i];
	}
}

static void run_stage(struct cv_worker *worker, struct outbox *outboxes,
	const struct cv_stage *stage, struct cv_burst *burst)
{
	cv_path_run(&stage->path, worker->index, burst);
	if (burst->n == 0)
		return;
	if (stage->sink != NULL) {
		uint16_t took = cv_ring_push(stage->sink, burst->packets, burst->views, burst->n);

		if (CV_UNLIKELY(took < burst->n))
			drop(&worker->ports_counters[stage->out], CV_HOP_RING_FULL,
				burst->packets + took, burst->n - took);
	} else {
		leave(worker, outboxes, burst);
	}
}

// Moves the packets of one class out of a burst of many into a burst of their own.
static void pick(struct cv_burst *from, const uint8_t *classes, uint8_t class, struct cv_burst *to)
{
	to->n = 0;
	to->bytes = 0;
	to->longest = 0;
	for (uint16_t i = 0; i < from->n; i++) {
		if (classes[i] != class)
			continue;
		to->packets[to->n] = from->packets[i];
		to->views[to->n] = from->views[i];
		to->bytes += from->views[i].len;
		to->longest = RTE_MAX(to->longest, from->views[i].len);
		to->n++;
	}
}

static void run_class(struct cv_worker *worker, struct outbox *outboxes,
	const struct cv_source *source, uint8_t class, struct cv_burst *burst)
{
	if (class == CV_CLASS_NONE) {
		drop(&worker->ports_counters[source->in], CV_HOP_NO_CHAIN, burst->packets,
			burst->n);
		return;
	}
	for (uint16_t i = 0; i < burst->n; i++)
		burst->views[i].out = source->stages[class].out;
	run_stage(worker, outboxes, &source->stages[class], burst);
}

// Several chains share the source: each gets its packets as one burst, in their order.
static void run_classes(struct cv_worker *worker, struct outbox *outboxes,
	const struct cv_source *source, struct cv_burst *burst)
{
	uint8_t classes[CV_BURST_MAX];
	struct cv_burst part;
	bool done[CV_CLASS_NONE + 1] = {false};

	if (cv_classify(&source->classifier, burst->views, classes, burst->n)) {
		run_class(worker, outboxes, source, classes[0], burst);
		return;
	}
	for (uint16_t i = 0; i < burst->n; i++) {
		if (done[classes[i]])
			continue;
		done[classes[i]] = true;
		pick(burst, classes, classes[i], &part);
		run_class(worker, outboxes, source, classes[i], &part);
	}
}

// Whether every ring behind the source can take a whole burst.
static bool has_room(const struct cv_source *source)
{
	for (unsigned i = 0; i < source->stages_count; i++)
		if (source->stages[i].sink != NULL &&
			cv_ring_room(source->stages[i].sink) < CV_BURST_MAX)
			return false;
	return true;
}

static uint16_t poll_port(
	struct cv_worker *worker, struct outbox *outboxes, const struct cv_source *source)
{
	struct cv_port_counters *counters = &worker->ports_counters[source->in];
	struct rte_mbuf *packets[CV_BURST_MAX];
	struct cv_burst burst;
	uint16_t n = source->port->rx(source->port, source->queue, packets, CV_BURST_MAX);

	if (n == 0)
		return 0;
	cv_burst_load(&burst, packets, n, source->in, source->stages[0].out, counters);
	if (burst.n == 0)
		return n;
	if (source->one_stage)
		run_stage(worker, outboxes, &source->stages[0], &burst);
	else
		run_classes(worker, outboxes, source, &burst);
	return n;
}

static uint16_t poll_ring(
	struct cv_worker *worker, struct outbox *outboxes, const struct cv_source *source)
{
	struct cv_burst burst;

	burst.n = cv_ring_pop(source->ring, burst.packets, burst.views, CV_BURST_MAX);
	if (burst.n == 0)
		return 0;
	burst.bytes = 0;
	burst.longest = 0;
	for (uint16_t i = 0; i < burst.n; i++) {
		burst.bytes += burst.views[i].len;
		burst.longest = RTE_MAX(burst.longest, burst.views[i].len);
	}
	run_stage(worker, outboxes, &source->stages[0], &burst);
	return burst.n;
}

int cv_worker_run(void *argument)
{
	struct cv_worker *worker = argument;
	struct outbox outboxes[CV_PORTS_MAX];
	enum cv_worker_phase phase;
	uint64_t then = rte_rdtsc();

	for (unsigned i = 0; i < worker->ports_count; i++)
		outboxes[i].n = 0;
	// Pairs with the main thread's release store of the phase.
	while ((phase = __atomic_load_n(worker->phase, __ATOMIC_ACQUIRE)) != CV_WORKER_EXIT) {
		unsigned moved = 0;
		uint64_t now;

		for (unsigned i = 0; i < worker->sources_count; i++) {
			const struct cv_source *source = &worker->sources[i];

			if (source->waits && !has_room(source))
				continue;
			if (source->ring != NULL)
				moved += poll_ring(worker, outboxes, source);
			else if (phase == CV_WORKER_RUN)
				moved += poll_port(worker, outboxes, source);
		}
		for (unsigned i = 0; i < worker->ports_count; i++)
			flush(worker, outboxes, i);
		if (moved == 0 && worker->yield)
			sched_yield();
		now = rte_rdtsc();
		if (moved > 0)
			cv_count(&worker->busy_cycles, now - then);
		cv_count(&worker->total_cycles, now - then);
		then = now;
		// Pairs with the acquire load in the main thread, which waits for a turn to end.
		__atomic_store_n(&worker->turns, worker->turns + 1, __ATOMIC_RELEASE);
	}
	return 0;
}
