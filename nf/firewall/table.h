// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The firewall's rules as what looks them up: one for IPv4 and one for IPv6; a rule without
// addresses is in both. Some tens of rules are scanned (scan.h). More are a decision tree (tree.h),
// and where that does not suit them a trie (trie.h). Several threads may look up at once.
//
// A tuple's protocol and its kind become one class, so that a lookup can tell a non-first fragment,
// which has no ports, from a packet whose ports are zero at no cost:
// - a rule without ports matches packets and non-first fragments the same;
// - a rule with ports that allows matches only packets whose ports are there;
// - a rule with ports, TCP flags or an ICMP type that denies matches non-first fragments too: they could belong to a packet
//   that it denies, and nobody here can tell (fails closed).
#ifndef CV_FIREWALL_TABLE_H
#define CV_FIREWALL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/entry.h"
#include "nf/firewall/rules.h"
#include "nf/firewall/scan.h"
#include "packet/error.h"
#include "packet/tuple.h"
#include "packet/view.h"

// One of the three is there; CV_FIREWALL_FIND makes no scan, and of no rules nothing.
struct cv_firewall_family {
	struct cv_firewall_tree *tree; // of IPv4 only
	struct rte_acl_ctx *trie;
	// [true]: with what is about non-first fragments only, rules that deny by ports being there
	// twice. Owned.
	struct cv_firewall_scan *scan[2];
};

static CV_INLINE bool cv_firewall_is_scanned(const struct cv_firewall_family *family)
{
	return family->tree == NULL && family->trie == NULL;
}

struct cv_firewall_table {
	unsigned needs; // CV_FIREWALL_NEEDS_*: what is read of packets beside the tuple
	uint8_t classes[2][256]; // [non-first fragment][protocol]
	struct cv_firewall_family ipv4;
	struct cv_firewall_family ipv6;
	cv_firewall_scan_run *run;
};

// What is asked of a table: whether packets pass, or which rule matches them, by
// cv_firewall_table_find().
enum cv_firewall_use { CV_FIREWALL_PASS, CV_FIREWALL_FIND };

// Builds the table from rules, which it does not keep, on NUMA node socket (-1: any); name is the
// function's, for error texts. Returns 0, or -errno with error set and nothing to free. The EAL
// must be there.
int cv_firewall_table_build(struct cv_firewall_table *table, const struct cv_firewall_rules *rules,
	enum cv_firewall_use use, const char *name, int socket, struct cv_error *error);

// The first rule that matches each of n <= CV_FIREWALL_LOOKUP_MAX packets: its index + 1; 0: none
// does, or it is no sound IP packet.
void cv_firewall_table_find(const struct cv_firewall_table *table, const struct cv_view *view,
	uint32_t *rule, uint16_t n);

void cv_firewall_table_free(struct cv_firewall_table *table);

// Looks up n <= CV_FIREWALL_LOOKUP_MAX of a family's tuples, which is not scanned: result[i] for
// those at place[i], 0 if no entry passes. fields: NULL unless the table needs some.
void cv_firewall_family_lookup(const struct cv_firewall_family *family, const void *tuple,
	uint32_t bytes, const struct cv_firewall_fields *fields, const uint8_t *place,
	uint32_t *result, uint32_t n);

// The places of the bits that are set. Returns how many.
static CV_INLINE uint32_t cv_firewall_places(uint64_t bits, uint8_t *place)
{
	uint32_t n = 0;

	if (CV_LIKELY((bits & (bits + 1)) == 0)) { // the first n of them, as most often
		for (uint32_t i = 0; i < CV_FIREWALL_LOOKUP_MAX; i++)
			place[i] = (uint8_t)i;
		return (uint32_t)__builtin_popcountll(bits);
	}
	for (; bits != 0; bits &= bits - 1)
		place[n++] = (uint8_t)__builtin_ctzll(bits);
	return n;
}

// The class of a tuple, to be put where its protocol was: what the lookups expect.
static CV_INLINE uint8_t cv_firewall_class(
	const struct cv_firewall_table *table, uint8_t proto, enum cv_tuple_kind kind)
{
	return table->classes[kind == CV_TUPLE_NON_FIRST][proto];
}

#endif
