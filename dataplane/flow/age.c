// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Ageing: a worker goes through the deadlines of all flows once a second, a bounded number in each
// poll iteration. Sixteen deadlines are a line of memory: of ten million flows it reads some tens of
// megabytes a second. Packets do not touch deadlines; a flow that was seen since gets a new one when
// its turn comes.
#include <rte_common.h>
#include <rte_prefetch.h>

#include "flow/zone.h"

#define AGE_STEP 1024 // entries that one poll iteration looks at, at most
#define AGE_ENDS 16 // flows that it ends
#define AGE_BLOCK 16 // deadlines of one line

// Is any of a line of deadlines over?
static CV_INLINE bool any_over(const uint32_t *deadlines, uint32_t now)
{
	uint32_t over = 0;

	for (unsigned i = 0; i < AGE_BLOCK; i++)
		over |= (uint32_t)(deadlines[i] != 0) &
			(uint32_t)((int32_t)(now - deadlines[i]) >= 0);
	return over != 0;
}

// Which flows of a line are over, by their deadlines. Asks for their entries. Returns how many.
static unsigned find_over(
	const struct cv_flow_zone *zone, bool v6, uint32_t first, uint32_t over[AGE_BLOCK])
{
	const struct cv_flow_table *table = &zone->table[v6];
	unsigned count = 0;

	for (uint32_t i = first; i < first + AGE_BLOCK && i < table->high; i++) {
		const uint32_t deadline = table->deadlines[i];

		if (deadline == 0 || (int32_t)(zone->now - deadline) < 0)
			continue;
		rte_prefetch0(cv_flow_at(table, i));
		rte_prefetch0(table->beside + (size_t)i * table->beside_bytes);
		over[count++] = i;
	}
	return count;
}

// Leaves those that were not seen since their deadline was set; the others get a new one.
static unsigned leave_unseen(struct cv_flow_zone *zone, bool v6, uint32_t *over, unsigned count)
{
	unsigned left = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct cv_flow *flow = cv_flow_at(&zone->table[v6], over[i]);
		const uint32_t seen = cv_flow_seen(flow);

		// Other workers write it, too, and their time may be ahead by a tick.
		if ((int32_t)(zone->now - seen - (zone->stale - 1) -
			      zone->timeouts[flow->timeout]) < 0)
			cv_flow_set_deadline(zone, v6, over[i], seen);
		else
			over[left++] = over[i];
	}
	return left;
}

// Ends the flows of a line whose time is over, or gives them a new deadline. Returns how many ended.
static unsigned age_block(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6, uint32_t first)
{
	uint32_t over[AGE_BLOCK];
	const unsigned ended = leave_unseen(zone, v6, over, find_over(zone, v6, first, over));

	if (ended == 0)
		return 0;
	cv_flow_end_all(zone, worker, v6, over, ended);
	cv_count(&zone->counters.timed_out, ended);
	return ended;
}

static void age_table(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6)
{
	struct cv_flow_table *table = &zone->table[v6];
	unsigned ended = 0;

	for (unsigned step = 0; step < AGE_STEP && zone->due[v6] > 0 && ended < AGE_ENDS;
		step += AGE_BLOCK) {
		if (table->cursor >= table->high)
			table->cursor = 0;
		if (any_over(&table->deadlines[table->cursor], zone->now))
			ended += age_block(zone, worker, v6, table->cursor);
		table->cursor += AGE_BLOCK;
		zone->due[v6] -= RTE_MIN(zone->due[v6], (uint32_t)AGE_BLOCK);
	}
}

void cv_flow_tick(void *instance, struct cv_nf_worker *worker)
{
	struct cv_flow_zone *zone = ((struct cv_flow_group *)instance)->zone;
	const uint32_t now = (uint32_t)(worker->now >> zone->shift);

	zone->now = now;
	cv_flow_learn_changes(zone);
	if (CV_UNLIKELY(zone->restoring != NULL))
		cv_flow_restore_step(zone, worker);
	for (unsigned i = 0; i < zone->members_count; i++)
		if (zone->members[i].tick != NULL)
			zone->members[i].tick(zone->members[i].instance, worker);
	if (CV_LIKELY(now == zone->aged && zone->due[0] == 0 && zone->due[1] == 0))
		return;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const uint64_t high = zone->table[v6].high;
		const uint64_t due = zone->due[v6] + (uint64_t)(now - zone->aged) *
							     ((high + CV_FLOW_TICKS_PER_S - 1) /
								     CV_FLOW_TICKS_PER_S);

		zone->due[v6] = (uint32_t)RTE_MIN(due, RTE_ALIGN_CEIL(high, AGE_BLOCK));
	}
	zone->aged = now;
	age_table(zone, worker, false);
	age_table(zone, worker, true);
}
