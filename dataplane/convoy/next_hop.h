// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The next-hop table: by which port a packet leaves and its SC-ID (VLAN id or VXLAN VNI) say which
// instance of a network function it goes to (NFI-ID), behind which outer header, by which port.
//
// Next hops never change: to change one, make another table and publish that to the readers
// (chain/next_hop_rcu.h does, without locking them). Which next hop an SC-ID has may also change in
// place. Any number of threads may read a table, one may change it.
#ifndef CV_NEXT_HOP_H
#define CV_NEXT_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "packet/error.h"
#include "packet/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CV_NEXT_HOPS_MAX 256 // next hops of one node
#define CV_NEXT_HOP_KEYS_MAX (1u << 20) // SC-IDs of all of them together
#define CV_NEXT_HOP_NONE 0xffff

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
};

// One line of the table: an SC-ID and the index of its next hop. The SC-ID CV_SCID_NONE, id 0, is
// for what has none, and for those that are not in the table.
struct cv_next_hop_entry {
	uint32_t key;
	uint16_t next_hop;
};

struct cv_next_hop_table;

// Makes a table. next_hops are copied, by their index; entries may be in any order. room: how many
// more keys it must be able to take in place. NULL with error set: a key twice, a next hop that does
// not exist, too many, no memory.
struct cv_next_hop_table *cv_next_hop_table_make(const struct cv_next_hop *next_hops,
	uint16_t next_hops_count, const struct cv_next_hop_entry *entries, uint32_t entries_count,
	uint32_t room, struct cv_error *error);
void cv_next_hop_table_free(struct cv_next_hop_table *table); // NULL is allowed

// Gives a key another next hop, which exists; CV_NEXT_HOP_NONE: it is no longer there. Readers see
// it at once or with their next look-up, never half of it. 0, or -ENOSPC: it takes a larger table.
int cv_next_hop_table_change(struct cv_next_hop_table *table, uint32_t key, uint16_t next_hop);

// The next hop that this key itself has; CV_NEXT_HOP_NONE: it is not there.
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
// neither its SC-ID nor that port's CV_SCID_NONE is there.
void cv_next_hop_find(
	const struct cv_next_hop_table *table, const uint32_t *key, uint16_t *next_hop, uint16_t n);

// The key of a packet that leaves by view->out: by its VNI where its tunnel was taken off, else by
// its outermost VLAN tag.
static CV_INLINE uint32_t cv_next_hop_key_of(const struct cv_view *view)
{
	int vlan;

	if (CV_UNLIKELY(view->before > 0)) {
		const uint8_t *vni = view->data - 4; // RFC 7348: three bytes and one reserved

		return cv_next_hop_key(view->out, CV_SCID_VNI,
			(uint32_t)vni[0] << 16 | (uint32_t)vni[1] << 8 | vni[2]);
	}
	vlan = view->l3 > CV_ETHER_LEN ? cv_view_vlan(view) : -1;
	return vlan < 0 ? cv_next_hop_key(view->out, CV_SCID_NONE, 0)
			: cv_next_hop_key(view->out, CV_SCID_VLAN, (uint32_t)vlan);
}

#ifdef __cplusplus
}
#endif

#endif
