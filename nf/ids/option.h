// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The options of a rule, one by one.
#ifndef CV_IDS_OPTION_H
#define CV_IDS_OPTION_H

#include "nf/ids/rule.h"

// What is being read; the rule and the problem are the caller's.
struct cv_ids_reader {
	struct cv_ids_rule *rule;
	struct cv_ids_problem *problem;
	struct cv_ids_content *last; // content that modifiers are of; NULL: none
	bool behind_pcre; // a pcre came last
	bool follows_pcre; // a pcre came just before that content
};

// Reads "name: value", or "name" without a value (NULL). The value is changed. Returns as
// cv_ids_rule_read().
int cv_ids_option_read(struct cv_ids_reader *reader, const char *name, char *value);

#endif
