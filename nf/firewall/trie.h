// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A lookup for any number of rules: rte_acl, which picks the machine's best vector code.
#ifndef CV_FIREWALL_TRIE_H
#define CV_FIREWALL_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/entry.h"

struct rte_acl_ctx;

// Builds a trie of count entries, first entry first, on NUMA node socket (-1: any); with_fields:
// entries ask for some. The EAL must be there. Returns NULL with rte_errno set (ENOMEM: too many entries for its memory).
struct rte_acl_ctx *cv_firewall_trie_build(const struct cv_firewall_entry *entry, uint32_t count,
	bool ipv4, bool with_fields, int socket);

// NULL is allowed.
void cv_firewall_trie_free(struct rte_acl_ctx *trie);

// Looks up n <= CV_FIREWALL_LOOKUP_MAX of the tuples, which have bytes bytes each, and of the
// fields (NULL: the trie is without): result[i] for those at place[i], 0 if no entry passes.
void cv_firewall_trie_lookup(const struct rte_acl_ctx *trie, const void *tuple, uint32_t bytes,
	const struct cv_firewall_fields *fields, const uint8_t *place, uint32_t *result,
	uint32_t n);

#endif
