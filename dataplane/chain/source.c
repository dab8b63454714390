// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/source.h"

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "chain/worker.h"

// A port that may carry convoys and brought none for so many polls is received from as if it did
// not. Enough that changing back and forth, which copies packets, costs little of what it saves.
#define PLAIN_POLLS 16

// The cost of a poll is well shared from this many packets on.
#define PACKETS_OF_POLL 256u

// How many of at most so many may be received from one source before the core is given away. Each
// source is polled in each iteration: one that always has more keeps no other waiting.
static CV_INLINE uint16_t allowed(const struct cv_worker *worker, uint16_t most)
{
	return (uint16_t)RTE_MIN(worker->left, most);
}

void cv_worker_leave(
	struct cv_path_worker *path_worker, const struct cv_path *path, struct cv_burst *burst)
{
	struct cv_worker *worker = RTE_PTR_SUB(path_worker, offsetof(struct cv_worker, paths));

	if (path == NULL || path->sink == NULL) {
		if (CV_UNLIKELY(path_worker->draw.on))
			cv_latency_leaves(&path_worker->draw, burst);
		cv_tx_burst(worker->tx, burst);
	} else {
		cv_burst_push(&burst->buffers, burst->views, burst->n, path->sink,
			&path_worker->ports_counters[path->out]);
	}
}

// Packets of one path, of which other workers may keep the flows.
static CV_INLINE void run_path(
	struct cv_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	if (path->handoff != NULL) {
		cv_handoff(path->handoff, &worker->paths, burst);
		if (burst->n == 0)
			return;
	}
	cv_path_run(path, &worker->paths, burst);
}

// What views of a port show as the port out until they have a path.
static CV_INLINE uint8_t first_out(const struct cv_source *source)
{
	return CV_UNLIKELY(source->classifier.nfi_count > 0) ? CV_CLASS_NONE
							     : source->paths[0]->out;
}

static void run_class(struct cv_worker *worker, const struct cv_source *source, uint8_t class,
	struct cv_burst *burst)
{
	if (class == CV_CLASS_NONE) {
		cv_tx_drop(burst, &worker->paths.ports_counters[source->in], CV_DROP_NO_CHAIN);
		return;
	}
	for (unsigned i = 0; i < burst->n; i++)
		burst->views[i].out = source->paths[class]->out;
	run_path(worker, source->paths[class], burst);
}

// Each of several classes gets its packets as one burst, in their order.
static void run_each_class(struct cv_worker *worker, const struct cv_source *source,
	struct cv_burst *burst, const uint8_t *classes)
{
	bool done[CV_CLASS_NONE + 1] = {false};
	struct cv_burst part;

	for (unsigned i = 0; i < burst->n; i++) {
		if (done[classes[i]])
			continue;
		done[classes[i]] = true;
		cv_burst_pick(burst, classes, classes[i], &part, worker->tx->pool,
			&worker->paths.ports_counters[source->in]);
		if (part.n > 0)
			run_class(worker, source, classes[i], &part);
	}
	cv_burst_picked(burst, classes);
}

// Several chains share the source.
static void run_classes(
	struct cv_worker *worker, const struct cv_source *source, struct cv_burst *burst)
{
	uint8_t classes[CV_BURST_VIEWS];

	if (!cv_classify(&source->classifier, burst->views, classes, burst->n)) {
		run_each_class(worker, source, burst, classes);
		return;
	}
	if (source->classifier.vni_count > 0)
		cv_burst_measure(burst); // functions see what is inside of tunnels
	run_class(worker, source, classes[0], burst);
}

// What another worker handed over: each packet's path stands where its port out will.
static void run_handed(
	struct cv_worker *worker, const struct cv_source *source, struct cv_burst *burst)
{
	const uint8_t first = burst->views[0].out; // not its port: see handoff.h
	uint8_t classes[CV_BURST_VIEWS];
	bool alike = true;

	for (unsigned i = 0; i < burst->n; i++) {
		classes[i] = burst->views[i].out;
		alike &= classes[i] == first;
	}
	if (CV_LIKELY(alike))
		run_class(worker, source, first, burst);
	else
		run_each_class(worker, source, burst, classes);
}

static void run_source(
	struct cv_worker *worker, const struct cv_source *source, struct cv_burst *burst)
{
	if (burst->n == 0)
		return;
	if (source->one_path)
		run_path(worker, source->paths[0], burst);
	else
		run_classes(worker, source, burst);
}

// Whether every ring behind the source can take a whole burst.
static bool has_room(const struct cv_source *source)
{
	uint32_t views = source->convoys != NULL ? CV_CONVOYS_VIEWS : CV_BURST_VIEWS;

	for (unsigned i = 0; i < source->paths_count; i++) {
		const struct cv_path *path = source->paths[i];

		if (path->sink != NULL && !cv_ring_has_room(path->sink, CV_BURST_MAX, views))
			return false;
		if (path->handoff != NULL && path->handoff->waits &&
			!cv_handoff_has_room(path->handoff, views))
			return false;
	}
	return true;
}

// Received frames are disaggregated as far as one burst has room, again while there are more.
// Returns whether there were convoys among them.
static bool take_frames(struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst,
	struct rte_mbuf **frames, uint16_t n)
{
	bool convoys = false;
	unsigned packets = 0;
	uint16_t taken = 0;

	while (taken < n) {
		const uint16_t got = cv_burst_load_convoys(burst, frames + taken, n - taken,
			source->in, first_out(source), source->convoys,
			&worker->paths.ports_counters[source->in]);

		taken += got;
		convoys |= burst->n != burst->buffers.n || burst->buffers.n > got;
		packets += burst->n;
		run_source(worker, source, burst);
	}
	source->sparse = packets < n * (PACKETS_OF_POLL / CV_CONVOYS_MAX);
	return convoys;
}

// Do packets of a source leave by ports only, past all rings? The frames or views of one poll may hold more convoys
// than a ring has room for.
static bool has_no_ring(const struct cv_source *source)
{
	for (unsigned i = 0; i < source->paths_count; i++)
		if (source->paths[i]->sink != NULL || source->paths[i]->handoff != NULL)
			return false;
	return true;
}

// From a port that may carry convoys. Returns how many frames came.
static uint16_t poll_frames(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst)
{
	const uint16_t most = source->sparse && has_no_ring(source) ? CV_BURST_MAX : CV_CONVOYS_MAX;
	struct rte_mbuf *frames[CV_BURST_MAX];
	uint16_t n = source->port->rx(source->port, source->queue, frames, allowed(worker, most));

	if (n == 0)
		return 0;
	if (take_frames(worker, source, burst, frames, n))
		source->plain_polls = 0;
	else if (source->plain_polls < PLAIN_POLLS)
		source->plain_polls++;
	return n;
}

// Views that a port gave, of which some may be convoys: goes on frame by frame from now on.
static __rte_noinline void disaggregate_views(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst, uint16_t n)
{
	struct rte_mbuf *frames[CV_VIEWS_MAX];

	source->plain_polls = 0;
	n = cv_burst_to_frames(
		burst, n, frames, worker->tx->pool, &worker->paths.ports_counters[source->in]);
	take_frames(worker, source, burst, frames, n);
}

// From a port that coalesces. Returns how many packets, or frames of which some are convoys, came.
static uint16_t poll_views(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst)
{
	struct cv_port *port = source->port;
	uint16_t n = port->rx_views(
		port, source->queue, burst->views, allowed(worker, CV_VIEWS_MAX), &burst->buffers);

	if (n == 0)
		return 0;
	if (source->convoys != NULL &&
		cv_views_have_convoys(burst->views, n, source->convoys->udp_port)) {
		disaggregate_views(worker, source, burst, n);
		return n;
	}
	cv_burst_take_views(
		burst, n, source->in, first_out(source), &worker->paths.ports_counters[source->in]);
	run_source(worker, source, burst);
	return n;
}

// Whether to receive views from a port that may carry convoys.
static bool takes_views(const struct cv_source *source)
{
	return source->plain_polls >= PLAIN_POLLS && has_no_ring(source);
}

// Returns how many packets or frames came.
static uint16_t poll_port(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst)
{
	struct rte_mbuf *packets[CV_BURST_MAX];
	struct cv_port *port = source->port;
	uint16_t n;

	if (port->rx_views != NULL && !source->by_buffer &&
		(source->convoys == NULL || takes_views(source)))
		return poll_views(worker, source, burst);
	if (source->convoys != NULL)
		return poll_frames(worker, source, burst);
	n = port->rx(port, source->queue, packets, allowed(worker, CV_BURST_MAX));
	if (n == 0)
		return 0;
	cv_burst_load(burst, packets, n, source->in, source->paths[0]->out,
		&worker->paths.ports_counters[source->in]);
	run_source(worker, source, burst);
	return n;
}

// Of n > 0 frames, or packets that a port coalesced.
static CV_INLINE void count_burst(struct cv_port_counters *counters, unsigned n)
{
	// The binary logarithm, rounded up.
	cv_count(&counters->rx_bursts[31 - __builtin_clz(2 * n - 1)], 1);
}

static void count_waited(const struct cv_path *path, uint64_t ticks, uint16_t n)
{
	if (path->length > 0)
		cv_latency_add(&path->steps[0].counters->ring_latency, ticks, n);
}

static uint16_t poll_ring(
	struct cv_worker *worker, const struct cv_source *source, struct cv_burst *burst)
{
	uint16_t n = cv_ring_pop(source->ring, &burst->buffers, burst->views, CV_BURST_VIEWS);
	uint64_t waited;

	if (n == 0)
		return 0;
	waited = cv_ring_waited(source->ring);
	if (CV_UNLIKELY(waited > 0))
		count_waited(source->paths[source->handed ? burst->views[0].out : 0], waited, n);
	burst->n = n;
	burst->whole = false; // not known any more
	cv_burst_measure(burst);
	if (source->handed) {
		// Whoever received them wrote to the buffers, too; who sends them reads that.
		for (unsigned i = 0; i < burst->buffers.n; i++)
			rte_prefetch0(burst->buffers.buffers[i]);
		run_handed(worker, source, burst);
	} else {
		cv_path_run(source->paths[0], &worker->paths, burst);
	}
	return n;
}

static CV_INLINE uint16_t poll_either(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst, bool ports)
{
	uint16_t n;

	if (source->ring != NULL)
		return poll_ring(worker, source, burst);
	n = ports ? poll_port(worker, source, burst) : 0;
	if (n > 0)
		count_burst(&worker->paths.ports_counters[source->in], n);
	return n;
}

// The next burst that comes is drawn.
static __rte_noinline uint16_t poll_drawn(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst, bool ports)
{
	struct cv_latency_draw *draw = &worker->paths.draw;
	uint16_t n;

	draw->on = true;
	draw->since = source->ring == NULL ? rte_rdtsc() : 0;
	n = poll_either(worker, source, burst, ports);
	draw->on = false;
	if (n > 0)
		source->until_drawn = cv_latency_next(draw);
	return n;
}

uint16_t cv_source_poll(
	struct cv_worker *worker, struct cv_source *source, struct cv_burst *burst, bool ports)
{
	uint16_t n;

	if (source->waits && !has_room(source))
		return 0;
	if (CV_UNLIKELY(source->until_drawn == 0))
		return poll_drawn(worker, source, burst, ports);
	n = poll_either(worker, source, burst, ports);
	source->until_drawn -= n > 0;
	return n;
}
