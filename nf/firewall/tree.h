// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A lookup for many IPv4 rules: a decision tree. A node cuts the tuples by some bits of an address
// or of a port; it is an array of what is below, so that a level costs one load. A leaf has a few
// entries, which are tested in full. So a path need not look at every bit, and a burst's loads of one
// level overlap.
#ifndef CV_FIREWALL_TREE_H
#define CV_FIREWALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/entry.h"

struct cv_firewall_tree;

// Builds a tree of count entries, first entry first; with_fields: they have some. Keeps nothing of
// them.
// Returns 0, -E2BIG if rules overlap so much that it would be large or slow, or -ENOMEM; with
// -errno there is nothing to free.
int cv_firewall_tree_build(struct cv_firewall_tree **tree, const struct cv_firewall_entry *entry,
	uint32_t count, bool with_fields);

// True if all entries are in one tree: else a tuple is looked up in several.
bool cv_firewall_tree_is_cut_well(const struct cv_firewall_tree *tree);

// NULL is allowed.
void cv_firewall_tree_free(struct cv_firewall_tree *tree);

// Looks up n <= CV_FIREWALL_LOOKUP_MAX of the tuples, and of the fields (NULL: the tree is without):
// result[i] for those at place[i], 0 if no entry passes.
void cv_firewall_tree_lookup(const struct cv_firewall_tree *tree, const struct cv_tuple_ipv4 *tuple,
	const struct cv_firewall_fields *fields, const uint8_t *place, uint32_t *result,
	uint32_t n);

#endif
