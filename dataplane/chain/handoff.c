// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/handoff.h"

#include "chain/path.h"

// Packets of one worker, on their way to its ring. Each has a buffer of its own.
struct part {
	struct cv_buffers buffers;
	struct cv_view views[CV_BUFFERS_MAX];
};

static uint64_t present(const uint8_t *workers, unsigned n)
{
	uint64_t all = 0; // a bit each

	for (unsigned i = 0; i < n; i++)
		all |= UINT64_C(1) << workers[i];
	return all;
}

static void take_part(const struct cv_handoff *handoff, const struct cv_burst *burst,
	const uint8_t *workers, unsigned worker, struct part *part)
{
	unsigned n = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		part->views[n] = burst->views[i];
		part->views[n].out = handoff->path;
		part->buffers.buffers[n] = burst->buffers.buffers[i];
		n += workers[i] == worker;
	}
	memset(part->buffers.views, 1, n);
	part->buffers.n = (uint16_t)n;
}

static void keep_own(
	const struct cv_handoff *handoff, struct cv_burst *burst, const uint8_t *workers)
{
	unsigned kept = 0;
	uint32_t bytes = 0;

	for (unsigned i = 0; i < burst->n; i++) {
		const bool own = workers[i] == handoff->self;

		bytes += own ? burst->views[i].len : 0;
		burst->views[kept] = burst->views[i];
		burst->buffers.buffers[kept] = burst->buffers.buffers[i];
		kept += own;
	}
	burst->n = burst->buffers.n = (uint16_t)kept;
	burst->bytes = bytes; // its longest and shortest are bounds still
}

// Every packet has a buffer of its own.
static void hand_over_buffers(const struct cv_handoff *handoff, struct cv_port_counters *counters,
	struct cv_burst *burst, const uint8_t *workers)
{
	uint64_t others = present(workers, burst->n) & ~(UINT64_C(1) << handoff->self);
	struct part part;

	for (; others != 0; others &= others - 1) {
		const unsigned worker = (unsigned)__builtin_ctzll(others);

		take_part(handoff, burst, workers, worker, &part);
		cv_burst_push(
			&part.buffers, part.views, part.buffers.n, handoff->to[worker], counters);
	}
	keep_own(handoff, burst, workers);
}

// Some packets share a buffer.
static __rte_noinline void hand_over_shared(const struct cv_handoff *handoff,
	struct rte_mempool *pool, struct cv_port_counters *counters, struct cv_burst *burst,
	const uint8_t *workers)
{
	const uint64_t own = UINT64_C(1) << handoff->self;
	uint64_t others = present(workers, burst->n);
	const bool some_own = (others & own) != 0;
	struct cv_burst part;

	for (others &= ~own; others != 0; others &= others - 1) {
		const unsigned worker = (unsigned)__builtin_ctzll(others);

		cv_burst_pick(burst, workers, (uint8_t)worker, &part, pool, counters);
		for (unsigned i = 0; i < part.n; i++)
			part.views[i].out = handoff->path;
		if (part.n > 0)
			cv_burst_push(
				&part.buffers, part.views, part.n, handoff->to[worker], counters);
	}
	part.n = part.buffers.n = 0;
	part.bytes = 0;
	if (some_own)
		cv_burst_pick(burst, workers, handoff->self, &part, pool, counters);
	cv_burst_picked(burst, workers);
	*burst = part;
}

uint16_t cv_handoff_in_turn(void *instance, struct cv_view *views, uint8_t *workers, uint16_t n)
{
	struct cv_handoff_turn *turn = instance;
	const uint8_t worker = turn->workers[turn->next];

	turn->next = turn->next + 1u < turn->count ? turn->next + 1 : 0;
	memset(workers, worker, n);
	return worker == turn->self ? 0 : n;
}

void cv_handoff(
	const struct cv_handoff *handoff, struct cv_path_worker *worker, struct cv_burst *burst)
{
	struct cv_port_counters *counters = &worker->ports_counters[burst->views[0].in];
	uint8_t workers[CV_BURST_VIEWS];

	if (handoff->home(handoff->homes, burst->views, workers, burst->n) == 0)
		return;
	if (CV_LIKELY(burst->n == burst->buffers.n))
		hand_over_buffers(handoff, counters, burst, workers);
	else
		hand_over_shared(handoff, worker->pool, counters, burst, workers);
}

bool cv_handoff_has_room(const struct cv_handoff *handoff, uint32_t views)
{
	for (unsigned i = 0; i < CV_WORKERS_MAX; i++)
		if (handoff->to[i] != NULL &&
			!cv_ring_has_room(handoff->to[i], CV_BURST_MAX, views))
			return false;
	return true;
}
