// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The firewall's rules as people and files write them, checked and in order. The table
// (table.h) makes something fast of them.
#ifndef CV_FIREWALL_RULES_H
#define CV_FIREWALL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "packet/error.h"
#include "packet/prefix.h"

#define CV_FIREWALL_RULES_MAX (1u << 24) // far more than memory holds; keeps indices small

struct cv_firewall_ports {
	uint16_t first;
	uint16_t last; // 0 to 65535 is the same as no ports at all
};

struct cv_firewall_rule {
	uint8_t family; // 4, 6; 0: both
	bool allow;
	int16_t proto; // 0 to 255; -1: any
	struct cv_prefix src; // no host bits; length 0: every address
	struct cv_prefix dst;
	struct cv_firewall_ports sport;
	struct cv_firewall_ports dport;
	char *name; // owned; NULL: has none
};

struct cv_firewall_rules {
	struct cv_firewall_rule *rule; // owned
	size_t count;
	size_t size; // rules that there is room for
	size_t flags_ignored; // rules of files that ask for TCP flags: a 5-tuple has none
};

// Appends the rules of a JSON array, "rules" of the configuration of the function called name.
// Returns 0, or -EINVAL or -ENOMEM with error set to the rule's index, the value and the fix.
int cv_firewall_rules_add(struct cv_firewall_rules *rules, const json_t *array, const char *name,
	struct cv_error *error);

// Appends the rules of a ClassBench filter set, one a line:
//   @src/len dst/len sport : sport dport : dport proto/mask [flags/mask]
// IPv4 or IPv6. Blank lines and lines that begin with # are skipped; host bits behind a prefix
// do not matter. path is for error texts only. Returns 0, or -errno with error set to path:line,
// the value and the fix.
int cv_firewall_rules_read(struct cv_firewall_rules *rules, FILE *file, const char *path,
	bool allow, struct cv_error *error);

// Opens path and reads it as above.
int cv_firewall_rules_load(
	struct cv_firewall_rules *rules, const char *path, bool allow, struct cv_error *error);

// A new, empty rule at the end, matching everything, denying; NULL: no memory, or too many.
struct cv_firewall_rule *cv_firewall_rules_append(struct cv_firewall_rules *rules);

// Frees what rules own and empties them.
void cv_firewall_rules_clear(struct cv_firewall_rules *rules);

// True if the rule asks for ports.
static inline bool cv_firewall_rule_has_ports(const struct cv_firewall_rule *rule)
{
	return rule->sport.first != 0 || rule->sport.last != UINT16_MAX || rule->dport.first != 0 ||
	       rule->dport.last != UINT16_MAX;
}

#endif
