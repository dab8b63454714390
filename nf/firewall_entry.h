// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the firewall's two lookups are built from: one test of a tuple, and what it gives if it
// is passed. A tuple is seen as 32-bit words as they lie in memory: the class, the addresses,
// and last the two ports.
#ifndef CV_FIREWALL_ENTRY_H
#define CV_FIREWALL_ENTRY_H

#include <stdint.h>

#include "firewall_rules.h"
#include "tuple.h"

#define CV_FIREWALL_IPV4_WORDS (sizeof(struct cv_tuple_ipv4) / 4)
#define CV_FIREWALL_IPV6_WORDS (sizeof(struct cv_tuple_ipv6) / 4)
#define CV_FIREWALL_LOOKUP_MAX 64 // tuples of one lookup; a multiple of every vector's lanes

struct cv_firewall_entry {
	// Of all words but the last: passed if (word & mask) == value. Address masks are prefixes.
	uint32_t value[CV_FIREWALL_IPV6_WORDS - 1];
	uint32_t mask[CV_FIREWALL_IPV6_WORDS - 1];
	struct cv_firewall_ports sport;
	struct cv_firewall_ports dport;
	uint32_t result; // not 0; of several entries that pass, the first one's counts
};

#endif
