// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's next hops by name, as they are now: from the plan, and changed while it runs. Each
// change makes a new table and gives it to the workers; a change that is refused changes nothing.
// Called by one thread at a time.
#ifndef CV_NEXT_HOP_SET_H
#define CV_NEXT_HOP_SET_H

#include "chain/next_hop_rcu.h"
#include "daemon/openflow/entries.h"
#include "daemon/plan.h"
#include "port/port.h"

struct cv_next_hop_set {
	const struct cv_plan *plan;
	struct cv_port *const *ports; // by index
	struct cv_next_hop_rcu table;
	struct cv_next_hop_table *prepared; // of one that is prepared
	// What controllers have set stands before the plan's SC-IDs; NULL: nobody can.
	const struct cv_of_entries *entries;
	struct cv_next_hop_table *own; // the plan's SC-IDs alone; NULL without entries
	uint64_t hash_key; // of flows that choose one of several next hops; a secret
	uint16_t serials[CV_NEXT_HOPS_MAX]; // by index: another one for another next hop
	uint64_t
		generation; // grows when next hops change; written and read by those who change them
	struct cv_plan_next_hop next_hops[CV_NEXT_HOPS_MAX]; // no name: this index is free
};

// With the plan's next hops, of which it takes copies. The ports are open. 0, or a negative errno
// with error set.
int cv_next_hop_set_init(struct cv_next_hop_set *set, const struct cv_plan *plan,
	struct cv_port *const *ports, struct cv_error *error);
void cv_next_hop_set_fini(struct cv_next_hop_set *set);

// From now on these entries stand before the plan's. They outlive the set, and change only while
// nobody else changes it. 0, or a negative errno with error set.
int cv_next_hop_set_attach(
	struct cv_next_hop_set *set, const struct cv_of_entries *entries, struct cv_error *error);

// The entries of a key have changed, or those of many keys (all): workers get them from their next
// look-up on, and all of them after cv_next_hop_rcu_wait(). 0 or -ENOMEM: it is as it was.
int cv_next_hop_set_follow(struct cv_next_hop_set *set, uint32_t key, bool all);

// Adds a next hop, or replaces the one of the same name: an object as in a plan's
// next_hops. Afterwards every packet that leaves is sent by the new table, and none by the old one.
// Returns its index, or a negative errno with error set.
int cv_next_hop_set_put(struct cv_next_hop_set *set, const json_t *object, struct cv_error *error);

// Next hops as another plan has them, on the same ports: those of the same name keep their index. A
// copy that workers do not know yet; NULL with error set.
struct cv_next_hop_set *cv_next_hop_set_prepare(
	const struct cv_next_hop_set *set, const struct cv_plan *plan, struct cv_error *error);
// They become the set's, and what was in the set the other one's. The workers go over to them.
void cv_next_hop_set_exchange(struct cv_next_hop_set *set, struct cv_next_hop_set *next);
// Of one that was prepared. NULL is allowed.
void cv_next_hop_set_discard(struct cv_next_hop_set *next);

// Tells flows apart as another process did, which this one takes over from. No worker runs yet.
void cv_next_hop_set_rekey(struct cv_next_hop_set *set, uint64_t hash_key);

// Removes a next hop: its packets go to their port's next hop for everything else, or leave as they
// are. Its index, or -ENOENT with error set.
int cv_next_hop_set_remove(struct cv_next_hop_set *set, const char *name, struct cv_error *error);

#endif
