// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's current next-hop table, replaced while workers read it (RCU): the writer publishes the
// new table, waits until no worker uses the old one, and frees that. A worker loses no packet and
// never waits.
#ifndef CV_NEXT_HOP_RCU_H
#define CV_NEXT_HOP_RCU_H

#include <rte_rcu_qsbr.h>

#include "convoy/next_hop.h"

struct cv_next_hop_rcu {
	struct cv_next_hop_table *table;
	struct rte_rcu_qsbr *readers; // a thread number is a worker's index
	uint64_t changes; // goes up whenever the writer is about to wait for the readers
};

// Takes ownership of the first table. workers: how many will read it. 0 or -ENOMEM.
int cv_next_hop_rcu_init(
	struct cv_next_hop_rcu *rcu, struct cv_next_hop_table *table, unsigned workers);

// No worker reads any more.
void cv_next_hop_rcu_fini(struct cv_next_hop_rcu *rcu);

// Publishes another table, and frees the one before as soon as no reader uses it: within one poll
// iteration of each worker. One writer at a time.
void cv_next_hop_rcu_replace(struct cv_next_hop_rcu *rcu, struct cv_next_hop_table *table);

// Returns when every worker has ended the poll iteration that it is in: packets that come from then
// on are sent by the table as it is now.
void cv_next_hop_rcu_wait(struct cv_next_hop_rcu *rcu);

// A worker calls these before its first table, and at its end.
void cv_next_hop_rcu_online(struct cv_next_hop_rcu *rcu, unsigned worker);
void cv_next_hop_rcu_offline(struct cv_next_hop_rcu *rcu, unsigned worker);

// How often the writer has waited. A worker that holds on to a table over several poll iterations
// reads it before the table; once it is another, the worker lets go: the writer waits for that.
static inline uint64_t cv_next_hop_rcu_changes(const struct cv_next_hop_rcu *rcu)
{
	// Pairs with the release increments in next_hop_rcu.c.
	return __atomic_load_n(&rcu->changes, __ATOMIC_ACQUIRE);
}

// The table, valid until this worker's next cv_next_hop_rcu_quiescent().
static inline const struct cv_next_hop_table *cv_next_hop_rcu_table(
	const struct cv_next_hop_rcu *rcu)
{
	// Pairs with the release store in cv_next_hop_rcu_replace().
	return __atomic_load_n(&rcu->table, __ATOMIC_ACQUIRE);
}

// Quiescent state: the worker holds no reference into the table.
static inline void cv_next_hop_rcu_quiescent(struct cv_next_hop_rcu *rcu, unsigned worker)
{
	rte_rcu_qsbr_quiescent(rcu->readers, worker);
}

#endif
