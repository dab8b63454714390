// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The first of a list of rules that matches a packet: for functions whose rules say what is done with
// packets, and not whether they pass. Each rule is an object whose "match" is as a firewall rule's.
#ifndef CV_CHOICE_H
#define CV_CHOICE_H

#include "chain/nf.h"
#include "nf/firewall/table.h"
#include "nf/row_counters.h"

struct cv_choice {
	struct cv_firewall_table table;
	struct cv_firewall_rules rules; // for their names
	struct cv_row_counters counters; // by rule + 1; 0: none matched
};

// Makes it, of the first count rules of an array. Returns 0, or a negative errno with error set; either
// way *choice, which was zero, is to be freed.
int cv_choice_make(struct cv_choice *choice, const json_t *rules, size_t count,
	const struct cv_nf_env *env, struct cv_error *error);
void cv_choice_free(struct cv_choice *choice);

// Counters of matches that are in both go on from before.
void cv_choice_inherit(struct cv_choice *choice, const struct cv_choice *before);

// The first rule that matches each of n packets: its index + 1; 0: none does, or it is no sound IP
// packet. Counts them.
static inline void cv_choice_find(const struct cv_choice *choice, const struct cv_nf_worker *worker,
	const struct cv_view *view, uint32_t *rule, uint16_t n)
{
	uint64_t *packets = choice->counters.packets[worker->index];

	cv_firewall_table_find(&choice->table, view, rule, n);
	// Counted one by one, each would wait until the one before is in memory.
	for (uint16_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && rule[end] == rule[i]; end++)
			;
		cv_row_count(packets, rule[i], end - i);
	}
}

// The rules' packets: "rules" and "rest_packets" of a function's info.
json_t *cv_choice_info(const struct cv_choice *choice);

#endif
