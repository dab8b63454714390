// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A lookup for some tens of rules. What rules ask is split into tests of 16 bits each, of
// which many rules share one; each test is made of all packets of a burst, and its answer is a
// word of 64 bits, one a packet. What passes a rule is then the AND of some words. So the cost of a
// burst is the number of different tests, whatever the traffic.
#ifndef CV_FIREWALL_SCAN_H
#define CV_FIREWALL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "nf/firewall/transposed.h"
#include "nf/firewall/entry.h"

#define CV_FIREWALL_SCAN_MAX 96 // entries; beyond, or with more tests, a trie is as fast
#define CV_FIREWALL_TESTS_MAX 256

enum cv_firewall_kind {
	CV_FIREWALL_EXACT, // x == b
	CV_FIREWALL_MASKED, // (x & a) == b
	CV_FIREWALL_RANGE, // x - a <= b, unsigned
	CV_FIREWALL_KINDS,
};

struct cv_firewall_test {
	uint32_t a, b; // 16 bits, twice
	uint32_t row;
};

// An entry: passed where all of its tests are. Their numbers are in fours.
struct cv_firewall_all {
	uint32_t first; // of the scan's list
	uint32_t fours;
	uint64_t denies; // all bits, or none
	uint32_t rule; // index + 1
};

struct cv_firewall_scan {
	struct cv_firewall_test test[CV_FIREWALL_TESTS_MAX]; // by kind
	uint32_t end[CV_FIREWALL_KINDS]; // of each kind's tests
	struct cv_firewall_all *entry;
	uint32_t count;
	uint16_t *list; // test numbers; CV_FIREWALL_TESTS_MAX is a test that is always passed
};

// The packets of a burst, one bit each.
struct cv_firewall_scanned {
	uint64_t denied; // by a rule
	uint64_t unmatched; // by any rule
};

// Matches the packets of a burst: those of n <= CV_FIREWALL_LOOKUP_MAX whose bit
// is in packets, their tuples being the rows (those of others are undefined). Adds to
// hits[i + 1] what rule i decided, to hits[0] what none did: relaxed atomics, one writer.
typedef struct cv_firewall_scanned cv_firewall_scan_run(const struct cv_firewall_scan *scan,
	const struct cv_firewall_transposed *transposed, uint32_t n, uint64_t packets,
	uint64_t *hits);

// The same in the words of different processors.
struct cv_firewall_scan_run_of {
	const char *name;
	bool (*can)(void); // this machine, and EAL's limit to vectors (--force-max-simd-bitwidth)
	cv_firewall_scan_run *run;
};

cv_firewall_scan_run cv_firewall_scan_run_avx2, cv_firewall_scan_run_baseline;

// Best first. The last one every machine can; behind it is one without a name.
extern const struct cv_firewall_scan_run_of cv_firewall_scan_runs[];

// The first that this machine can. Needs the EAL.
cv_firewall_scan_run *cv_firewall_scan_run_best(void);

// Makes a scan of count entries of a family (words: the 32-bit words of its tuple), first entry
// first. Keeps nothing of them. Returns 0, -E2BIG if there are too many entries or tests, -ENOMEM;
// with -errno there is nothing to free.
int cv_firewall_scan_make(struct cv_firewall_scan **scan, const struct cv_firewall_entry *entry,
	uint32_t count, unsigned words);

// NULL is allowed.
void cv_firewall_scan_free(struct cv_firewall_scan *scan);

#endif
