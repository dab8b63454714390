// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Meters by host: a table of fixed size, for one worker, without a lock. Its hash has a random key,
// so that nobody can choose addresses that collide.
//
// A host whose buckets must be full again is as good as unknown: only such a one gives its place to
// another. So nobody gets a new burst by making the table overflow.
#ifndef CV_METER_TABLE_H
#define CV_METER_TABLE_H

#include <stdint.h>

#include "flow/hash.h"
#include "nf/policer/meter.h"

#define CV_METER_WAYS 8

struct cv_meter_key {
	uint64_t words[2];
};

// A cache line: who is in it, and when each was last seen.
struct cv_meter_bucket {
	uint32_t tag[CV_METER_WAYS]; // of the hash; 0: empty
	uint32_t seen[CV_METER_WAYS]; // TSC ticks >> shift
} __attribute__((aligned(64)));

struct cv_meter_host {
	struct cv_meter_key key;
	struct cv_meter meter;
} __attribute__((aligned(64)));

struct cv_meter_table {
	struct cv_flow_secret secret;
	struct cv_meter_bucket *buckets;
	struct cv_meter_host *hosts; // CV_METER_WAYS to a bucket
	uint32_t mask; // of a bucket's number
	unsigned shift;
	uint32_t idle; // seen so long ago, a host may be replaced
	uint64_t taken; // places that hold a host
};

// Makes an empty table with places for at least so many hosts, which are idle after so many TSC
// cycles. Returns 0, or -ENOMEM, or another negative errno: no random numbers.
int cv_meter_table_init(
	struct cv_meter_table *table, uint32_t hosts, uint64_t idle_cycles, int socket);

// The hosts are idle after so many cycles from now on.
void cv_meter_table_set_idle(struct cv_meter_table *table, uint64_t idle_cycles);

void cv_meter_table_free(struct cv_meter_table *table);

// The meter of a host, and whether it is new: then its buckets are not filled yet. NULL: there is
// no room for another host.
struct cv_meter *cv_meter_table_get(
	struct cv_meter_table *table, const struct cv_meter_key *key, uint64_t now, bool *is_new);

#endif
