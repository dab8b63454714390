// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Values that flows take in turn: ports, VLAN ids, addresses.
#ifndef GEN_SPEC_RANGE_H
#define GEN_SPEC_RANGE_H

#include <stdbool.h>
#include <stdint.h>

// low, low + 1, … low + span - 1. Addresses: network order; ports, VLAN ids: in the last bytes.
struct gen_range {
	uint8_t low[16];
	uint64_t span;
};

// "5", "5-9", "10.0.0.1", "10.0.0.1-10.0.0.9", "10.0.0.0/24". family: AF_INET, AF_INET6, or 0 for
// numbers up to `max`. A span is at most 2^32. false: it is none.
bool gen_range_parse(const char *text, int family, uint64_t max, struct gen_range *range);

#endif
