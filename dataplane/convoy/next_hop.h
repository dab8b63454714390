// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The next-hop table: by which port a packet leaves and its SC-ID (VLAN id or VXLAN VNI) say which
// instance of a network function it goes to (NFI-ID), behind which outer header, by which port. A key
// may have several next hops: then each flow has one of them (convoy/spread.h).
//
// Next hops never change: to change one, make another table and publish that to the readers
// (chain/next_hop_rcu.h does, without locking them). Which next hop an SC-ID has may also change in
// place. Any number of threads may read a table, one may change it.
#ifndef CV_NEXT_HOP_H
#define CV_NEXT_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "convoy/spread.h"
#include "packet/error.h"
#include "packet/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CV_NEXT_HOPS_MAX 256 // next hops of one node
#define CV_NEXT_HOP_KEYS_MAX (1u << 20) // SC-IDs of all of them together
#define CV_NEXT_HOP_NONE 0xffff

// In place of a next hop's index: one of several, which a packet's flow decides. This and the number of
// a spread: at first those that the table makes of keys with several next hops, then the groups that it
// was made with.
#define CV_NEXT_HOP_SPREAD 0x1000
#define CV_NEXT_HOP_SETS_MAX 1024u // different sets of next hops that share keys
#define CV_NEXT_HOP_GROUPS_MAX 256u
#define CV_NEXT_HOP_GROUP (CV_NEXT_HOP_SPREAD + CV_NEXT_HOP_SETS_MAX)
#define CV_NEXT_HOP_SPREADS_MAX (CV_NEXT_HOP_SETS_MAX + CV_NEXT_HOP_GROUPS_MAX)

static CV_INLINE bool cv_next_hop_is_spread(uint16_t next_hop)
{
	return (uint16_t)(next_hop - CV_NEXT_HOP_SPREAD) < CV_NEXT_HOP_SPREADS_MAX;
}

// What a packet is looked up by: the port (< 64) that it leaves by, and its SC-ID.
enum cv_scid_kind { CV_SCID_NONE, CV_SCID_VLAN, CV_SCID_VNI };

static CV_INLINE uint32_t cv_next_hop_key(uint8_t port, enum cv_scid_kind kind, uint32_t id)
{
	return (uint32_t)port << 26 | (uint32_t)kind << 24 | id;
}

struct cv_compressor;

struct cv_next_hop {
	struct cv_outer outer;
	struct cv_compressor *compressor; // the caller's; NULL: its convoys travel as they are
	uint8_t port; // that its convoys leave by
	uint64_t wait; // TSC ticks that a frame to it waits for more packets at most; 0: none
	// Among those of the same key.
	uint64_t id; // cv_spread_id() of its name
	uint16_t weight; // 0: 1
	bool by_addresses; // of one of them, for all
};

// One line of the table: an SC-ID and the index of its next hop. The SC-ID CV_SCID_NONE, id 0, is
// for what has none, and for those that are not in the table. A key that is there several times has
// all of these next hops, each for a share of its flows.
struct cv_next_hop_entry {
	uint32_t key;
	uint16_t next_hop;
};

struct cv_next_hop_table;

// Makes a table. next_hops are copied, by their index; entries may be in any order. room: how many
// more keys it must be able to take in place. NULL with error set: a key twice with one next hop, a next
// hop that does not exist, too many, no memory.
struct cv_next_hop_table *cv_next_hop_table_make(const struct cv_next_hop *next_hops,
	uint16_t next_hops_count, const struct cv_next_hop_entry *entries, uint32_t entries_count,
	uint32_t room, struct cv_error *error);

// The same with all that it may be made of.
struct cv_next_hop_spec {
	const struct cv_next_hop *next_hops;
	const struct cv_next_hop_entry *entries;
	uint32_t entries_count, room;
	uint16_t next_hops_count;
	uint16_t groups_count;
	const struct cv_spread_group *groups; // CV_NEXT_HOP_GROUP + i in an entry is the i-th
	const struct cv_next_hop_table
		*like; // of the same next hops: its sets are this one's; or NULL
	uint64_t hash_key; // of flows; a secret
};

struct cv_next_hop_table *cv_next_hop_table_build(
	const struct cv_next_hop_spec *spec, struct cv_error *error);
void cv_next_hop_table_free(struct cv_next_hop_table *table); // NULL is allowed

// Gives a key another next hop or spread, which exists; CV_NEXT_HOP_NONE: it is no longer there. Readers see
// it at once or with their next look-up, never half of it. 0, or -ENOSPC: it takes a larger table, or
// one that has this spread.
int cv_next_hop_table_change(struct cv_next_hop_table *table, uint32_t key, uint16_t next_hop);

// The next hop or spread that this key itself has; CV_NEXT_HOP_NONE: it is not there.
uint16_t cv_next_hop_of_key(const struct cv_next_hop_table *table, uint32_t key);

// The next hop with this index; those with the next ones lie behind it.
const struct cv_next_hop *cv_next_hop_at(const struct cv_next_hop_table *table, uint16_t next_hop);

// True if some packets that leave by the port have a next hop.
bool cv_next_hop_of_port_exists(const struct cv_next_hop_table *table, uint8_t port);

// The next hop of all packets that leave by the port. CV_NEXT_HOP_NONE: their SC-IDs decide.
uint16_t cv_next_hop_of_port(const struct cv_next_hop_table *table, uint8_t port);

// True if some next hop takes what comes to this UDP port (not 0) for convoys.
bool cv_next_hop_takes(const struct cv_next_hop_table *table, rte_be16_t udp_port);

// Finds the next hops of n <= 64 keys: next_hop[i] is the index for key[i], CV_NEXT_HOP_NONE where
// neither its SC-ID nor that port's CV_SCID_NONE is there, a spread where there are several.
void cv_next_hop_find(
	const struct cv_next_hop_table *table, const uint32_t *key, uint16_t *next_hop, uint16_t n);

// Gives a table that nobody reads yet another secret.
void cv_next_hop_table_rekey(struct cv_next_hop_table *table, uint64_t hash_key);

// Whether keys of the table have, or may come to have, several next hops.
bool cv_next_hop_spreads(const struct cv_next_hop_table *table);

// Puts the next hop of each packet's flow in place of spreads that cv_next_hop_find() found.
void cv_next_hop_choose(const struct cv_next_hop_table *table, const struct cv_view *views,
	uint16_t *next_hop, uint16_t n);

// What a spread is; NULL: it is a next hop, or none.
const struct cv_spread *cv_next_hop_spread_at(
	const struct cv_next_hop_table *table, uint16_t next_hop);

// cv_next_hop_key_of() a packet with something before what functions are shown.
uint32_t cv_next_hop_key_of_hidden(const struct cv_view *view);

// The key of a packet that leaves by view->out: by its VNI where its tunnel was taken off, else by
// its outermost VLAN tag.
static CV_INLINE uint32_t cv_next_hop_key_of(const struct cv_view *view)
{
	int vlan;

	if (CV_UNLIKELY(view->before > 0))
		return cv_next_hop_key_of_hidden(view);
	vlan = view->l3 > CV_ETHER_LEN ? cv_view_vlan(view) : -1;
	return vlan < 0 ? cv_next_hop_key(view->out, CV_SCID_NONE, 0)
			: cv_next_hop_key(view->out, CV_SCID_VLAN, (uint32_t)vlan);
}

#ifdef __cplusplus
}
#endif

#endif
