// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A lookup for few rules: every entry against eight tuples at a time. Its cost is the number of
// entries, whatever the traffic; up to CV_FIREWALL_SCAN_MAX it beats a trie.
#ifndef CV_FIREWALL_SCAN_H
#define CV_FIREWALL_SCAN_H

#include <stdint.h>

#include "firewall_entry.h"

#define CV_FIREWALL_SCAN_MAX 32 // beyond, a trie is as fast

// Looks up n <= CV_FIREWALL_LOOKUP_MAX tuples in the count entries: result[i] for tuple[i], 0 if
// no entry passes. Both arrays have CV_FIREWALL_LOOKUP_MAX elements: those behind n are read
// and written, and mean nothing.
void cv_firewall_scan_ipv4(const struct cv_firewall_entry *entry, uint32_t count,
	const struct cv_tuple_ipv4 *tuple, uint32_t *result, uint32_t n);
void cv_firewall_scan_ipv6(const struct cv_firewall_entry *entry, uint32_t count,
	const struct cv_tuple_ipv6 *tuple, uint32_t *result, uint32_t n);

#endif
