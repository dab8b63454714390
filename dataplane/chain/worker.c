// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/worker.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "chain/trace_hooks.h"

// Packets or frames after which a core that others share is given away: what a ring of 256 holds.
// More would be dropped behind a ring as small, and more of what is handed on would have left the
// processor's caches when the poll comes to it; fewer would pay for more polls.
#define YIELD_AFTER 256u
// A worker that sleeps does so after the least time twice without packets, for a part of the time
// that nothing came: a ring of 1,024 takes what comes meanwhile at 20 million packets per second, and
// after a while without any at 2 million.
#define SLEEP_LEAST_US 50
#define SLEEP_MOST_US 500
#define SLEEP_PART 16
// Without sources it has timers alone, and the node may want something of it: handing a node over
// waits for that.
#define SLEEP_ALONE_US 2000

bool cv_worker_do_errand(struct cv_worker *worker)
{
	// Pairs with the node's release store.
	const struct cv_errand *errand = __atomic_load_n(&worker->errand, __ATOMIC_ACQUIRE);

	if (CV_LIKELY(errand == NULL))
		return false;
	if (cv_tx_waits(worker->tx))
		cv_tx_flush(worker->tx, CV_TX_ALL);
	errand->run(errand->argument);
	// Pairs with the node's acquire load, which waits for it.
	__atomic_store_n(&worker->errand, NULL, __ATOMIC_RELEASE);
	return true;
}

static bool is_alone(const struct cv_worker *worker)
{
	return worker->sources_count == 0 && worker->spare_count > 0;
}

void cv_worker_sources_changed(struct cv_worker *worker)
{
	worker->idle = is_alone(worker) ? CV_WORKER_SLEEP : worker->own_idle;
	worker->left = worker->idle == CV_WORKER_POLL ? UINT_MAX : YIELD_AFTER;
	worker->worked = rte_rdtsc();
}

// Moves one source within their array, which others between make room for.
static void move_source(struct cv_source *sources, unsigned from, unsigned to)
{
	const struct cv_source kept = sources[from];

	if (from < to)
		memmove(&sources[from], &sources[from + 1], (to - from) * sizeof(*sources));
	else
		memmove(&sources[to + 1], &sources[to], (from - to) * sizeof(*sources));
	sources[to] = kept;
	for (unsigned i = RTE_MIN(from, to); i <= RTE_MAX(from, to); i++)
		if (sources[i].by_nfi != NULL)
			sources[i].by_nfi->by_nfi = &sources[i].classifier;
}

void cv_worker_leave_source(struct cv_worker *worker, unsigned source)
{
	move_source(worker->sources, source, worker->sources_count - 1);
	worker->sources_count--;
	worker->spare_count++;
	cv_worker_sources_changed(worker);
}

void cv_worker_take_source(struct cv_worker *worker, unsigned source)
{
	move_source(worker->sources, source, worker->sources_count);
	worker->sources_count++;
	worker->spare_count--;
	cv_worker_sources_changed(worker);
}

// Who has no sources keeps no next hop that is removed.
static void rest_alone(const struct cv_worker *worker)
{
	const struct timespec moment = {.tv_nsec = SLEEP_ALONE_US * 1000};

	if (worker->tx->next_hop_rcu != NULL)
		cv_next_hop_rcu_offline(worker->tx->next_hop_rcu, worker->paths.nf.index);
	nanosleep(&moment, NULL);
	if (worker->tx->next_hop_rcu != NULL)
		cv_next_hop_rcu_online(worker->tx->next_hop_rcu, worker->paths.nf.index);
}

// Gives the core away, or sleeps.
static void rest(const struct cv_worker *worker, uint64_t now)
{
	const uint64_t us = (now - worker->worked) / (rte_get_tsc_hz() / 1000000);
	const uint64_t part = RTE_MAX(us / SLEEP_PART, (uint64_t)SLEEP_LEAST_US);
	const struct timespec moment = {
		.tv_nsec = (long)RTE_MIN(part, (uint64_t)SLEEP_MOST_US) * 1000};

	if (worker->expects)
		sched_yield();
	else if (is_alone(worker))
		rest_alone(worker);
	else if (worker->idle == CV_WORKER_SLEEP && us > 2 * SLEEP_LEAST_US)
		nanosleep(&moment, NULL);
	else
		sched_yield();
}

int cv_worker_run(void *argument)
{
	struct cv_worker *worker = argument;
	struct cv_burst burst;
	enum cv_worker_phase phase;
	uint64_t then = rte_rdtsc();

	worker->left = worker->idle == CV_WORKER_POLL ? UINT_MAX : YIELD_AFTER;
	worker->worked = then;
	if (worker->tx->next_hop_rcu != NULL)
		cv_next_hop_rcu_online(worker->tx->next_hop_rcu, worker->paths.nf.index);
	// Pairs with the main thread's release store of the phase.
	while ((phase = __atomic_load_n(worker->phase, __ATOMIC_ACQUIRE)) != CV_WORKER_EXIT) {
		unsigned moved = 0;
		uint64_t now;
		bool sent;

		// It may be the end: what functions have in memory may be another process's by now.
		if (CV_UNLIKELY(cv_worker_do_errand(worker)))
			continue;
		for (unsigned i = 0; i < worker->sources_count; i++)
			moved += cv_source_poll(
				worker, &worker->sources[i], &burst, phase == CV_WORKER_RUN);
		for (unsigned i = 0; i < worker->ticks_count; i++)
			cv_path_tick(worker->ticks[i].path, worker->ticks[i].step,
				worker->ticks[i].tick, &worker->paths);
		sent = cv_tx_flush(worker->tx, phase == CV_WORKER_RUN ? then : CV_TX_ALL);
		if (cv_trace_is_on())
			cv_trace_flush();
		now = rte_rdtsc();
		if (CV_UNLIKELY(worker->paths.draw.leaving_count > 0) && !cv_tx_waits(worker->tx))
			cv_latency_sent(&worker->paths.draw, worker->paths.ports_counters, now);
		if (moved > 0 || sent)
			cv_count(&worker->busy_cycles, now - then);
		if (CV_UNLIKELY(now - then > worker->longest_cycles))
			__atomic_store_n(&worker->longest_cycles, now - then, __ATOMIC_RELAXED);
		if (worker->idle != CV_WORKER_POLL) {
			worker->left -= RTE_MIN(moved, worker->left);
			if (moved > 0)
				worker->worked = now;
			// What waits would wait longer than it may if the core were given away.
			if ((moved == 0 && !cv_tx_waits(worker->tx)) || worker->left == 0) {
				const bool more = worker->left == 0;

				worker->left = YIELD_AFTER;
				if (cv_tx_waits(worker->tx))
					cv_tx_flush(worker->tx, CV_TX_ALL);
				rest(worker, now);
				if (more)
					cv_count(&worker->away_cycles, rte_rdtsc() - now);
				now = rte_rdtsc();
			}
		}
		cv_count(&worker->total_cycles, now - then);
		worker->paths.draw.iteration = now - then;
		then = now;
		// Pairs with the acquire load in the main thread, which waits for an iteration to
		// end.
		__atomic_store_n(&worker->iterations, worker->iterations + 1, __ATOMIC_RELEASE);
	}
	cv_tx_flush(worker->tx, CV_TX_ALL);
	if (worker->tx->next_hop_rcu != NULL)
		cv_next_hop_rcu_offline(worker->tx->next_hop_rcu, worker->paths.nf.index);
	return 0;
}
