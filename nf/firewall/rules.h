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

#include "chain/nf.h"
#include "config/params.h"
#include "nf/firewall/fields.h"
#include "packet/error.h"
#include "packet/prefix.h"

#define CV_FIREWALL_RULES_MAX (1u << 24) // far more than memory holds; keeps indices small

struct cv_firewall_ports {
	uint16_t first;
	uint16_t last; // 0 to 65535 is the same as no ports at all
};

// Asks for (x & mask) == value.
struct cv_firewall_bits {
	uint16_t value;
	uint16_t mask; // 0: asks for nothing
};

enum cv_firewall_fragments {
	CV_FIREWALL_FRAGMENTS_NONE, // whole packets
	CV_FIREWALL_FRAGMENTS_FIRST,
	CV_FIREWALL_FRAGMENTS_LATER,
	CV_FIREWALL_FRAGMENTS_ANY, // first or later
	CV_FIREWALL_FRAGMENTS_ALL, // and whole packets: it does not matter
};

// What a rule asks beside the 5-tuple (fields.h).
struct cv_firewall_extra {
	struct cv_firewall_bits l4; // TCP: flags in the upper byte; ICMP and ICMPv6: type, code
	struct cv_firewall_bits tcp_flags; // as they were read: l4 has them
	int icmp_type, icmp_code; // likewise; -1: any
	struct cv_firewall_ports length;
	int dscp; // -1: any
	int vlan; // -1: any; CV_FIREWALL_UNTAGGED
	enum cv_firewall_fragments fragment;
};

struct cv_firewall_rule {
	uint8_t family; // 4, 6; 0: both
	bool allow;
	int16_t proto; // 0 to 255; -1: any
	struct cv_prefix src; // no host bits; length 0: every address
	struct cv_prefix dst;
	struct cv_firewall_ports sport;
	struct cv_firewall_ports dport;
	struct cv_firewall_extra extra;
	char *name; // owned; NULL: has none
};

struct cv_firewall_rules {
	struct cv_firewall_rule *rule; // owned
	size_t count;
	size_t size; // rules that there is room for
	bool flows; // they are about flows: set before rules are read
};

// Appends the rules of a JSON array, "rules" of the configuration of the function called name.
// Returns 0, or -EINVAL or -ENOMEM with error set to the rule's index, the value and the fix.
int cv_firewall_rules_add(struct cv_firewall_rules *rules, const json_t *array, const char *name,
	struct cv_error *error);

// Appends the rules of a ClassBench filter set, one a line:
//   @src/len dst/len sport : sport dport : dport proto/mask [flags/mask] [key=value ...]
// IPv4 or IPv6. Flags are as struct cv_firewall_extra's l4; behind them may stand keys of a
// descriptor's rule that ClassBench has no column for. Blank lines and lines that begin with # are
// skipped; host bits behind a prefix do not matter. path is for error texts only. Returns 0, or -errno with error set to path:line,
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

// True if it asks for what only a whole packet or a first fragment has.
static inline bool cv_firewall_rule_has_l4(const struct cv_firewall_rule *rule)
{
	return cv_firewall_rule_has_ports(rule) || rule->extra.l4.mask != 0;
}

// The keys of struct cv_firewall_extra, which was initialized as an appended rule's is.
extern const struct cv_param cv_firewall_extra_params[];

// Whether what was read fits together, behind the rest of the rule; sets l4. Returns 0, or -EINVAL
// with at's error set.
int cv_firewall_extra_check(const struct cv_where *at, struct cv_firewall_rule *rule, bool flows);

// Reads 80 or "1000-2000". fix is the error's. Returns 0, or -EINVAL with at's error set.
int cv_firewall_range_read(const struct cv_where *at, const char *key, const json_t *value,
	const char *fix, struct cv_firewall_ports *range);

// What a trace says of a decision: row 1 if no rule matched, else 2 + its index.
void cv_firewall_rules_in_words(const struct cv_firewall_rules *rules,
	const struct cv_nf_because *because, char *words, size_t room);

#endif
