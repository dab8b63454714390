// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a tree (tree.h) consists of: the build writes it, the lookup reads it.
#ifndef CV_FIREWALL_TREE_LAYOUT_H
#define CV_FIREWALL_TREE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "nf/firewall/entry.h"

#define WORDS CV_FIREWALL_IPV4_WORDS
#define GROUPS 4
#define PORTS 3 // the word of the ports: source below, destination above
#define CHUNK 2 // entries of a leaf that are tested together: a cache line

// An entry of a leaf, in host order. Passed if (word & mask) == value, but for the ports: there
// value is the first, and mask how many follow.
struct packed {
	uint32_t value[WORDS];
	uint32_t mask[WORDS]; // of the class the lowest byte; above it is the result
};

// What it needs beside the tuple: passed if (word & mask) == value, but for the length, as for ports.
struct packed_fields {
	uint16_t value[CV_FIREWALL_FIELDS];
	uint16_t mask[CV_FIREWALL_FIELDS];
};

_Static_assert(sizeof(struct packed) * CHUNK == RTE_CACHE_LINE_SIZE, "a chunk is a line");

// What is below a node: another, or a leaf.
//   node: base << 32 | width << 16 | shift << 8 | word << 1 | 1    base: of its slots
//   leaf: base << 32 | chunks << 8                                 base: of its entries
#define IS_NODE 1

struct root {
	uint64_t node;
	unsigned depth; // nodes on the longest path
};

// Entries whose source, whose destination, both or neither have a long prefix have trees of their
// own: one that is open where the others are cut would be everywhere.
struct cv_firewall_tree {
	struct root root[GROUPS];
	unsigned roots;
	const uint64_t *slot;
	const struct packed *entry;
	const struct packed_fields *fields; // of the entries; NULL: they have none
	void *memory;
	size_t bytes;
};

#endif
