// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/firewall/choice.h"

#include <errno.h>

#include "nf/firewall/unchanged.h"

// The matches as firewall rules.
static json_t *matches_of(const json_t *rules, size_t count)
{
	json_t *matches = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *match = json_copy(json_object_get(json_array_get(rules, i), "match"));

		json_object_set_new(match, "action", json_string("allow"));
		if (json_array_append_new(matches, match) != 0) {
			json_decref(matches);
			return NULL;
		}
	}
	return matches;
}

int cv_choice_make(struct cv_choice *choice, const json_t *rules, size_t count,
	const struct cv_nf_env *env, struct cv_error *error)
{
	json_t *matches = matches_of(rules, count);
	int rc = matches == NULL ? -ENOMEM
				 : cv_firewall_rules_add(&choice->rules, matches, env->name, error);

	json_decref(matches);
	if (rc == 0)
		rc = cv_firewall_table_build(&choice->table, &choice->rules, CV_FIREWALL_FIND,
			env->name, env->socket, error);
	if (rc == 0)
		rc = cv_row_counters_make(&choice->counters, choice->rules.count + 1, env);
	return rc;
}

void cv_choice_free(struct cv_choice *choice)
{
	cv_row_counters_free(&choice->counters);
	cv_firewall_table_free(&choice->table);
	cv_firewall_rules_clear(&choice->rules);
}

void cv_choice_inherit(struct cv_choice *choice, const struct cv_choice *before)
{
	cv_firewall_inherit_counters(
		&choice->counters, &choice->rules, &before->counters, &before->rules);
}

json_t *cv_choice_info(const struct cv_choice *choice)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < choice->rules.count; i++) {
		json_t *rule = json_pack("{s:I, s:I}", "index", (json_int_t)i, "packets",
			(json_int_t)cv_row_counters_sum(&choice->counters, i + 1));

		if (choice->rules.rule[i].name != NULL)
			json_object_set_new(rule, "name", json_string(choice->rules.rule[i].name));
		json_array_append_new(rules, rule);
	}
	return json_pack("{s:o, s:I}", "rules", rules, "rest_packets",
		(json_int_t)cv_row_counters_sum(&choice->counters, 0));
}
