// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What internal endpoints are outside. The mappings of one worker are shared by flows, and each lives
// while one uses it. A permit stands beside a mapping, found by its key and a remote address: that
// address was sent to, and may send. Those that are configured have a table of their own, which never
// changes and all workers read.
//
// A table's memory is its owner's, who may have it in a file that another process goes on with: it has
// indices, and no addresses.
#ifndef CV_NAT_MAPPINGS_H
#define CV_NAT_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#define CV_NAT_NONE UINT32_MAX

// An internal endpoint; where mappings depend on the other end, with it, else with zeros.
struct cv_nat_key {
	rte_be32_t internal, remote;
	rte_be16_t port, remote_port;
	uint8_t proto;
	uint8_t zero[3];
};

struct cv_nat_mapping {
	struct cv_nat_key key;
	rte_be32_t external;
	rte_be16_t external_port;
	uint8_t is_permit; // 0 or 1; any, of what another process wrote wrongly
	uint32_t block; // where its port is from; of a permit: its mapping's index
	uint32_t flows; // that use it
	uint32_t next[2]; // of the same bucket: by key, by external endpoint
};

struct cv_nat_mappings;

// Bytes of memory that a table takes, a multiple of 64.
size_t cv_nat_mappings_bytes(uint32_t max);

// In such memory, of zeros, aligned to 64, which must live as long. NULL: no memory. Its hash has a random
// key: nobody can make endpoints that collide.
struct cv_nat_mappings *cv_nat_mappings_create(uint32_t max, void *memory);
void cv_nat_mappings_destroy(struct cv_nat_mappings *mappings);

struct cv_nat_mapping *cv_nat_mapping_at(struct cv_nat_mappings *mappings, uint32_t index);

// The index, or CV_NAT_NONE.
uint32_t cv_nat_mappings_by_key(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *key);
uint32_t cv_nat_mappings_by_external(
	const struct cv_nat_mappings *mappings, rte_be32_t address, rte_be16_t port, uint8_t proto);

// By its key, for who adds one if there is none: bucket is where, for cv_nat_mappings_add_to().
uint32_t cv_nat_mappings_find(
	const struct cv_nat_mappings *mappings, const struct cv_nat_key *key, uint32_t **bucket);

// Asks for the memory that finding n <= CV_BURST_MAX keys will read: for their buckets, which are written
// into bucket[]; then for the first mapping of each.
void cv_nat_mappings_expect(const struct cv_nat_mappings *mappings, const struct cv_nat_key *keys,
	unsigned n, const uint32_t **bucket);
void cv_nat_mappings_expect_first(
	const struct cv_nat_mappings *mappings, const uint32_t *const *bucket, unsigned n);

// Whether n more, one or two, can be added.
bool cv_nat_mappings_have_room(const struct cv_nat_mappings *mappings, unsigned n);

// Adds one, whose next[] is set here; there is room. by_key: whether it is found by its key: of two
// with the same one alone may be; _add_to: it is, in the bucket of cv_nat_mappings_find(). A permit is
// found by its key only. Returns its index.
uint32_t cv_nat_mappings_add(
	struct cv_nat_mappings *mappings, const struct cv_nat_mapping *mapping, bool by_key);
uint32_t cv_nat_mappings_add_to(
	struct cv_nat_mappings *mappings, const struct cv_nat_mapping *mapping, uint32_t *bucket);

// No more is added: look-ups by external endpoint find all in their buckets.
void cv_nat_mappings_settle(struct cv_nat_mappings *mappings);

// Asks for the memory that removing n <= CV_BURST_MAX of them will read.
void cv_nat_mappings_expect_remove(
	const struct cv_nat_mappings *mappings, const uint32_t *indices, unsigned n);

// Removes one that is found by its key.
void cv_nat_mappings_remove(struct cv_nat_mappings *mappings, uint32_t index);

// The memory is to be another process's: what is known beside it goes into it.
void cv_nat_mappings_freeze(struct cv_nat_mappings *mappings);

// The memory is what another process wrote. Whether no place in it leads out of the table: also while that
// one writes. What each mapping says of its port is the caller's to check.
bool cv_nat_mappings_lead_inside(const struct cv_nat_mappings *mappings);

// The table goes on with what another process froze. False: that is not whole.
bool cv_nat_mappings_thaw(struct cv_nat_mappings *mappings);

// A mapping, or a permit, in the memory of a table of another process that is as large, in which anything may
// be. index < max.
struct cv_nat_mapping cv_nat_mappings_before(const void *before, uint32_t index);

// How many there are. May be read by any thread.
uint64_t cv_nat_mappings_count(const struct cv_nat_mappings *mappings);

#endif
