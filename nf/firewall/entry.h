// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the firewall's two lookups are built from: one test of a tuple, and what it gives if it
// is passed. A tuple is seen as 32-bit words as they lie in memory: the class, the addresses,
// and last the two ports.
#ifndef CV_FIREWALL_ENTRY_H
#define CV_FIREWALL_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/rules.h"
#include "packet/tuple.h"

#define CV_FIREWALL_IPV4_WORDS (sizeof(struct cv_tuple_ipv4) / 4)
#define CV_FIREWALL_IPV6_WORDS (sizeof(struct cv_tuple_ipv6) / 4)
#define CV_FIREWALL_LOOKUP_MAX 64 // tuples of one lookup: a word's bits

// A result is 0 if no rule matched, else:
#define CV_FIREWALL_RULE(result) ((result) >> 1) // index + 1
#define CV_FIREWALL_DENIES(result) ((result)&1)

struct cv_firewall_entry {
	// Passed if (word & mask) == value for each word. Address masks are prefixes.
	uint32_t value[CV_FIREWALL_IPV6_WORDS];
	uint32_t mask[CV_FIREWALL_IPV6_WORDS];
	struct cv_firewall_ports sport; // always right
	struct cv_firewall_ports dport;
	// What is asked beside the tuple: the same of the fields' words, but a range of lengths.
	struct cv_firewall_bits field[CV_FIREWALL_FIELDS];
	struct cv_firewall_ports length;
	bool ranged; // the last word says too little about the ports: sport and dport decide
	uint32_t result; // not 0; of several entries that pass, the first one's counts
};

#endif
