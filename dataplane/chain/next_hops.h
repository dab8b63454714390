// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's current next-hop table, which may be changed while workers read it: a changer gives
// them the next one, waits until none of them uses the old one any more, and frees that (RCU). A
// worker loses no packet and waits for nothing.
#ifndef CV_NEXT_HOPS_H
#define CV_NEXT_HOPS_H

#include <rte_rcu_qsbr.h>

#include "convoy/next_hop.h"

struct cv_next_hops {
	struct cv_next_hop_table *table;
	struct rte_rcu_qsbr *readers; // a thread number is a worker's index
};

// Begins with a table, which it owns from now on. workers will read it. 0 or -ENOMEM.
int cv_next_hops_init(struct cv_next_hops *hops, struct cv_next_hop_table *table, unsigned workers);

// No worker reads any more.
void cv_next_hops_fini(struct cv_next_hops *hops);

// Gives the readers another table, and frees the one before as soon as nobody uses it, which takes
// no longer than a poll iteration of each worker. By one thread at a time.
void cv_next_hops_change(struct cv_next_hops *hops, struct cv_next_hop_table *table);

// A worker from its first table on, and at its end.
void cv_next_hops_join(struct cv_next_hops *hops, unsigned worker);
void cv_next_hops_leave(struct cv_next_hops *hops, unsigned worker);

// The table, valid until this worker's next cv_next_hops_done().
static inline const struct cv_next_hop_table *cv_next_hops_table(const struct cv_next_hops *hops)
{
	// Pairs with the release store in cv_next_hops_change().
	return __atomic_load_n(&hops->table, __ATOMIC_ACQUIRE);
}

// The worker uses nothing that it read from the table any more.
static inline void cv_next_hops_done(struct cv_next_hops *hops, unsigned worker)
{
	rte_rcu_qsbr_quiescent(hops->readers, worker);
}

#endif
