// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flow entries as controllers have set them: which SC-ID has which next hop, at which priority; and
// groups of next hops, which entries may name. One thread at a time. An entry's number and a group's
// index stay while it is there.
#ifndef CV_OF_ENTRIES_H
#define CV_OF_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/next_hop.h"

#define CV_OF_NONE UINT32_MAX // no entry
#define CV_OF_PRIORITIES_MAX 64u // entries of one match
#define CV_OF_GROUPS_MAX CV_NEXT_HOP_GROUPS_MAX

// Next hops of which each flow has one. Buckets are in the order of their next hops.
struct cv_of_group {
	uint32_t id;
	bool there;
	uint64_t since_ns;
	uint16_t serials[CV_SPREAD_MEMBERS_MAX]; // of the next hops that are meant
	struct cv_spread_group of;
};

struct cv_of_entry {
	uint32_t key; // of the next-hop table: a port (the flow table), and an SC-ID
	uint16_t priority;
	uint16_t next_hop; // or CV_NEXT_HOP_GROUP and the group's index
	uint16_t serial; // of the next hop that is meant: another one may come to have its index
	uint64_t cookie;
	uint64_t since_ns;
	uint16_t idle, hard; // seconds, 0: for ever
	uint16_t flags;
	bool there;
	uint32_t lower; // the next entry of the same key; one that is not there: the next free one
	uint32_t due_before, due_after; // of those that end in the same second
	uint64_t due_s; // 0: never
};

struct cv_of_entries {
	struct cv_of_entry *all;
	uint32_t end; // numbers that were ever given
	uint32_t room; // of all
	uint32_t max;
	uint32_t count;
	uint32_t free; // the first number that is free
	uint32_t of_port[64]; // how many there are, by port
	uint32_t *slots; // by key: the entry of the highest priority, open addressing
	uint32_t keys; // that have entries
	unsigned shift;
	uint32_t *due; // by second: the first entry that ends then
	uint64_t due_done_s; // until when those that were due are gone
	struct cv_of_group *groups; // CV_OF_GROUPS_MAX
};

// The group that an entry names; NULL: it names a next hop.
static inline struct cv_of_group *cv_of_group_of(
	const struct cv_of_entries *entries, const struct cv_of_entry *entry)
{
	return cv_next_hop_is_spread(entry->next_hop)
		       ? &entries->groups[entry->next_hop - CV_NEXT_HOP_GROUP]
		       : NULL;
}

// max: entries at most. 0 or -ENOMEM.
int cv_of_entries_init(struct cv_of_entries *entries, uint32_t max);
void cv_of_entries_fini(struct cv_of_entries *entries);

// CV_OF_NONE, or the entry of that match and priority, or the one of the highest priority.
uint32_t cv_of_entries_find(const struct cv_of_entries *entries, uint32_t key, uint16_t priority);
uint32_t cv_of_entries_best(const struct cv_of_entries *entries, uint32_t key);

// Adds one that is not there yet, from what of it is the controller's; now_s begins its hard timeout.
// Its number, or CV_OF_NONE: there are too many.
uint32_t cv_of_entries_add(
	struct cv_of_entries *entries, const struct cv_of_entry *entry, uint64_t now_s);

void cv_of_entries_remove(struct cv_of_entries *entries, uint32_t number);

// One whose hard timeout has passed, or CV_OF_NONE.
uint32_t cv_of_entries_due(struct cv_of_entries *entries, uint64_t now_s);

#endif
