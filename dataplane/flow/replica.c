// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/replica.h"

#include <rte_common.h>

#include "flow/carried.h"
#include "flow/zone.h"

#define STEP 2048u // entries
#define FLAGS (CV_FLOW_REPLIED | CV_FLOW_ONE_KEY | CV_FLOW_OUTPUT) // that restoring reads
#define BESIDE_MAX (CV_FLOW_SLOTS_MAX + 8u)

union entry {
	struct cv_flow flow;
	struct cv_flow_ipv4 ipv4;
	struct cv_flow_ipv6 ipv6;
};

// A copy that is being made.
struct copying {
	const uint8_t *live;
	uint8_t *sent;
	cv_flow_replica_write *write;
	void *to;
};

static size_t offset_of(const struct cv_flow_zone *zone, const void *at)
{
	return RTE_PTR_DIFF(at, zone->memory.start);
}

void cv_flow_zone_replica(const struct cv_flow_zone *zone, struct cv_flow_replica *replica)
{
	*replica = (struct cv_flow_replica){
		.layout = cv_flow_zone_replica_layout(zone),
		.carried = offset_of(zone, zone->carried),
	};
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct cv_flow_table *table = &zone->table[v6];

		replica->table[v6].deadlines = offset_of(zone, table->deadlines);
		replica->table[v6].flows = offset_of(zone, table->flows);
		replica->table[v6].beside = offset_of(zone, table->beside);
		replica->table[v6].beside_bytes = table->beside_bytes;
		replica->table[v6].max = table->max;
	}
}

// False: it cannot be written.
static bool put(const struct copying *it, size_t at, const void *bytes, size_t count)
{
	if (memcmp(it->sent + at, bytes, count) == 0)
		return true;
	memcpy(it->sent + at, bytes, count);
	return it->write(it->to, at, bytes, count);
}

// The orders that flows were decided in, and what says which worker has them.
static bool put_orders(const struct cv_flow_replica *replica, const struct copying *it)
{
	const struct cv_flow_carried *from = (const void *)(it->live + replica->carried);
	struct {
		uint64_t layout;
		uint32_t is_whole, groups_count;
		uint8_t order[CV_FLOW_GROUPS_MAX][CV_FLOW_MEMBERS_MAX];
		struct cv_flow_secret homes;
	} copy;

	_Static_assert(offsetof(struct cv_flow_carried, order) == 16 &&
			       offsetof(struct cv_flow_carried, homes) == 16 + sizeof(copy.order) &&
			       offsetof(struct cv_flow_carried, now) == sizeof(copy),
		"as the copy has it");
	memset(&copy, 0, sizeof(copy));
	copy.layout = replica->layout;
	copy.groups_count = from->groups_count;
	memcpy(copy.order, from->order, sizeof(copy.order));
	copy.homes = from->homes;
	return put(it, replica->carried, &copy, sizeof(copy));
}

// What restoring reads of a flow. Whether it is one that can be restored.
static bool read_entry(const void *live, bool v6, union entry *entry)
{
	struct cv_flow *flow = &entry->flow;

	memcpy(entry, live, v6 ? sizeof(entry->ipv6) : sizeof(entry->ipv4));
	if (flow->flags & CV_FLOW_DENIED)
		return false;
	*flow = (struct cv_flow){
		.flags = flow->flags & FLAGS,
		.tcp_state = flow->tcp_state,
		.timeout = flow->timeout,
		.proto = flow->proto,
		.group = flow->group,
		.deciders = flow->deciders,
	};
	return true;
}

static bool put_flow(
	const struct cv_flow_replica *replica, const struct copying *it, bool v6, uint32_t index)
{
	const size_t bytes = v6 ? sizeof(struct cv_flow_ipv6) : sizeof(struct cv_flow_ipv4);
	const size_t at = replica->table[v6].flows + index * bytes;
	const uint32_t beside_bytes = replica->table[v6].beside_bytes;
	const size_t beside = replica->table[v6].beside + (size_t)index * beside_bytes;
	uint8_t slots[BESIDE_MAX];
	union entry entry;

	if (!read_entry(it->live + at, v6, &entry))
		return true;
	if (beside_bytes > 0) {
		memcpy(slots, it->live + beside, beside_bytes);
		if (!put(it, beside, slots, beside_bytes))
			return false;
	}
	return put(it, at, &entry, bytes);
}

// An entry with a deadline is a flow: it is said to be one once it was written, and none before.
static bool put_index(struct cv_flow_replica *replica, const struct copying *it, uint32_t index)
{
	const bool v6 = replica->v6;
	const size_t at = replica->table[v6].deadlines + index * sizeof(uint32_t);
	uint32_t is_flow;

	// Pairs with nothing: what the worker writes meanwhile is another flow, or comes with the next pass.
	is_flow = __atomic_load_n(
			  (const uint32_t *)(const void *)(it->live + at), __ATOMIC_ACQUIRE) != 0;
	if (is_flow && !put_flow(replica, it, v6, index))
		return false;
	replica->flows += is_flow;
	return put(it, at, &is_flow, sizeof(is_flow));
}

enum cv_flow_replica_step cv_flow_replica_step(struct cv_flow_replica *replica, const void *live,
	void *sent, cv_flow_replica_write *write, void *to)
{
	const struct copying it = {.live = live, .sent = sent, .write = write, .to = to};
	const uint32_t end = RTE_MIN(replica->index + STEP, replica->table[replica->v6].max);

	if (replica->index == 0 && !replica->v6) {
		replica->flows = 0;
		if (!put_orders(replica, &it))
			return CV_FLOW_REPLICA_FAILED;
	}
	for (; replica->index < end; replica->index++)
		if (!put_index(replica, &it, replica->index))
			return CV_FLOW_REPLICA_FAILED;
	if (end < replica->table[replica->v6].max)
		return CV_FLOW_REPLICA_GOES_ON;
	replica->index = 0;
	replica->v6 = !replica->v6;
	return replica->v6 ? CV_FLOW_REPLICA_GOES_ON : CV_FLOW_REPLICA_DONE;
}
