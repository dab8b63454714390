// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The kernel's routes, in tables that workers read meanwhile. There are two tables: workers read one
// while the other is changed; then they go over to that, and as soon as none is left (RCU) the first
// is changed in the same way. So a worker never waits, and never sees half of a change.
//
// One thread changes (the node's for sockets); bounded work at a time.
#ifndef CV_ROUTE_MIRROR_H
#define CV_ROUTE_MIRROR_H

#include <rte_hash.h>
#include <rte_rcu_qsbr.h>

#include "nf/router/fib.h"
#include "nf/router/route_hops.h"
#include "nf/router/rtnetlink.h"

#define CV_MIRROR_BATCH 4096u // routes changed at a time

struct cv_mirrored; // one prefix

struct cv_route_mirror {
	const struct cv_fib **now; // what workers read
	struct cv_fib *table[2];
	unsigned live; // the one that they read
	struct rte_rcu_qsbr *readers; // a thread number is a worker's index
	unsigned workers;
	bool *online; // each worker's own
	struct cv_route_hops hops;
	struct rte_hash *index; // prefix -> place in entry
	struct cv_mirrored *entry;
	uint32_t entries;
	uint32_t generation; // of the dump that is read, or was read last
	bool dumps; // one is being read
	uint32_t *queue; // places of what is to be changed, each once
	uint32_t queue_head, queue_count;
	uint32_t batch[CV_MIRROR_BATCH]; // what only one table has yet
	uint32_t batch_count;
	bool waits; // for workers to leave the table that is no longer live
	uint64_t token;
	uint32_t without_entry; // routes without an entry, since the last dump began
	uint32_t unfit; // entries that a table had no room for
	bool room; // there is some again for what was left out

	// Read by others.
	uint32_t routes; // known
	uint64_t changed; // entries of the tables, so far
	uint64_t refused; // routes for which there was no room: in the last dump, and since
};

// Of routes' tables, made with room for `entries` more. Returns NULL: no memory.
struct cv_route_mirror *cv_route_mirror_create(struct cv_network *network, struct cv_fib table[2],
	const struct cv_fib **now, uint32_t entries, unsigned workers);
void cv_route_mirror_destroy(struct cv_route_mirror *mirror);

// A prefix that stays as the tables have it, whatever the kernel says: 0 or -ENOSPC.
int cv_route_mirror_fix(struct cv_route_mirror *mirror, const struct cv_prefix *prefix);

// A route that there is now, or no longer. False: what is left of its prefix is not known, so all routes
// are to be dumped.
bool cv_route_mirror_put(struct cv_route_mirror *mirror, const struct cv_kernel_route *route);
bool cv_route_mirror_remove(struct cv_route_mirror *mirror, const struct cv_kernel_route *route);

// All routes are put, from begin to end; whatever was not is gone.
void cv_route_mirror_begin(struct cv_route_mirror *mirror);
void cv_route_mirror_end(struct cv_route_mirror *mirror);
// Instead of the end: not all were told.
void cv_route_mirror_abandon(struct cv_route_mirror *mirror);

// Carries on changing tables. True: there is more to do, a millisecond from now.
bool cv_route_mirror_step(struct cv_route_mirror *mirror);

// Whether there is room again, since the last call, for routes that were left out: then all routes are to
// be dumped.
bool cv_route_mirror_has_room(struct cv_route_mirror *mirror);

// A worker, before it reads *now in a poll iteration.
static inline void cv_route_mirror_enter(struct cv_route_mirror *mirror, unsigned worker)
{
	if (mirror->online[worker])
		return;
	mirror->online[worker] = true;
	rte_rcu_qsbr_thread_online(mirror->readers, worker);
}

// A worker, at a poll iteration's end: it holds nothing of a table.
static inline void cv_route_mirror_leave(struct cv_route_mirror *mirror, unsigned worker)
{
	if (mirror->online[worker])
		rte_rcu_qsbr_quiescent(mirror->readers, worker);
}

#endif
