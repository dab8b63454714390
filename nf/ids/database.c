// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A pattern as one rule has it.
struct pattern {
	char *text; // a regular expression
	unsigned flags;
	hs_expr_ext_t more;
	struct cv_ids_part part;
};

struct patterns {
	struct pattern *pattern;
	uint32_t count, room;
};

static bool is_of(const struct cv_ids_rule *rule, enum cv_ids_proto proto)
{
	return rule->proto == proto || rule->proto == CV_IDS_IP;
}

// Each byte as \xHH: nothing in it is an operator.
static char *literal(const struct cv_ids_content *content)
{
	char *text = malloc(content->len * 4u + 1);

	for (unsigned i = 0; text != NULL && i < content->len; i++)
		snprintf(text + 4 * i, 5, "\\x%02x", content->bytes[i]);
	return text;
}

static int add(struct patterns *patterns, char *text, unsigned flags, uint32_t rule, unsigned bit,
	const hs_expr_ext_t *more)
{
	if (patterns->count == patterns->room) {
		const uint32_t room = patterns->room == 0 ? 256 : patterns->room * 2;
		void *larger = realloc(patterns->pattern, room * sizeof(*patterns->pattern));

		if (larger == NULL || text == NULL) {
			if (larger != NULL)
				patterns->pattern = larger;
			free(text);
			return -ENOMEM;
		}
		patterns->pattern = larger;
		patterns->room = room;
	}
	if (text == NULL)
		return -ENOMEM;
	patterns->pattern[patterns->count++] = (struct pattern){.text = text,
		.flags = flags,
		.more = *more,
		.part = {.rule = rule, .bit = (uint8_t)(1u << bit)}};
	return 0;
}

// What must be somewhere, and where, if that is counted from the first byte.
static int add_content(
	struct patterns *patterns, const struct cv_ids_rule *rule, uint32_t index, bool streams)
{
	const struct cv_ids_content *content = &rule->contents[rule->longest];
	hs_expr_ext_t more = {0};
	unsigned flags = content->nocase ? HS_FLAG_CASELESS : 0;

	// In a stream each place counts while others are missing; else the first is enough.
	if (!streams || rule->exact)
		flags |= HS_FLAG_SINGLEMATCH;
	if (!content->relative && content->first > 0) {
		more.flags |= HS_EXT_FLAG_MIN_OFFSET;
		more.min_offset = (unsigned long long)content->first + content->len;
	}
	if (!content->relative && content->bounded) {
		more.flags |= HS_EXT_FLAG_MAX_OFFSET;
		more.max_offset = (unsigned long long)content->last;
	}
	return add(patterns, literal(content), flags, index, 0, &more);
}

static int collect(struct patterns *patterns, struct cv_ids_database *database,
	const struct cv_ids_rules *rules, enum cv_ids_proto proto, bool streams)
{
	const hs_expr_ext_t none = {0};
	int rc = 0;

	database->bare = malloc((rules->count + 1u) * sizeof(*database->bare));
	if (database->bare == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < rules->count; i++) {
		const struct cv_ids_rule *rule = &rules->rule[i];

		if (!is_of(rule, proto))
			continue;
		if (rule->parts == 0)
			database->bare[database->bare_count++] = i;
		if (rule->parts & 1)
			rc = add_content(patterns, rule, i, streams);
		for (unsigned p = 0; rc == 0 && p < rule->pcres_count; p++)
			rc = add(patterns, strdup(rule->pcres[p].text),
				rule->pcres[p].flags | HS_FLAG_SINGLEMATCH, i, 1 + p, &none);
	}
	return rc;
}

// Whether they are one to Hyperscan.
static int compare(const void *one, const void *two)
{
	const struct pattern *a = one, *b = two;
	int differ = strcmp(a->text, b->text);

	if (differ == 0 && a->flags != b->flags)
		differ = a->flags < b->flags ? -1 : 1;
	if (differ == 0 && a->more.flags != b->more.flags)
		differ = a->more.flags < b->more.flags ? -1 : 1;
	if (differ == 0 && a->more.min_offset != b->more.min_offset)
		differ = a->more.min_offset < b->more.min_offset ? -1 : 1;
	if (differ == 0 && a->more.max_offset != b->more.max_offset)
		differ = a->more.max_offset < b->more.max_offset ? -1 : 1;
	return differ;
}

static int order(const void *one, const void *two)
{
	const struct pattern *a = one, *b = two;
	const int differ = compare(one, two);

	if (differ != 0)
		return differ;
	return a->part.rule < b->part.rule ? -1 : a->part.rule > b->part.rule;
}

// What hs_compile_ext_multi() takes, of each pattern once.
struct table {
	const char **text;
	unsigned *flags, *id;
	const hs_expr_ext_t **more;
};

static void free_table(struct table *table)
{
	free(table->text);
	free(table->flags);
	free(table->id);
	free(table->more);
}

static int make_table(
	struct table *table, struct cv_ids_database *database, const struct patterns *patterns)
{
	const size_t count = patterns->count + 1u;

	table->text = calloc(count, sizeof(*table->text));
	table->flags = calloc(count, sizeof(*table->flags));
	table->id = calloc(count, sizeof(*table->id));
	table->more = calloc(count, sizeof(*table->more));
	database->first = calloc(count, sizeof(*database->first));
	database->part = calloc(count, sizeof(*database->part));
	if (table->text == NULL || table->flags == NULL || table->id == NULL ||
		table->more == NULL || database->first == NULL || database->part == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < patterns->count; i++) {
		const struct pattern *pattern = &patterns->pattern[i];
		const uint32_t n = database->patterns;

		database->part[i] = pattern->part;
		if (i > 0 && compare(pattern, pattern - 1) == 0)
			continue;
		table->text[n] = pattern->text;
		table->flags[n] = pattern->flags;
		table->more[n] = &pattern->more;
		table->id[n] = n;
		database->first[n] = i;
		database->patterns++;
	}
	database->first[database->patterns] = patterns->count;
	return 0;
}

static int compile(struct cv_ids_database *database, const struct patterns *patterns, bool streams,
	uint32_t *wrong, struct cv_ids_problem *problem)
{
	struct table table = {0};
	hs_compile_error_t *why = NULL;
	int rc = make_table(&table, database, patterns);

	if (rc == 0 && hs_compile_ext_multi(table.text, table.flags, table.id, table.more,
			       database->patterns, streams ? HS_MODE_STREAM : HS_MODE_BLOCK, NULL,
			       &database->hs, &why) != HS_SUCCESS) {
		const int at = why == NULL ? -1 : why->expression;

		rc = cv_ids_problem(problem, at < 0 ? -EINVAL : -ENOTSUP,
			at < 0 ? "%.40s%.160s" : "pcre: \"%.40s\": Hyperscan: %.120s",
			at < 0 ? "Hyperscan: " : table.text[at],
			why == NULL ? "no memory" : why->message);
		if (at >= 0)
			*wrong = database->part[database->first[at]].rule;
		hs_free_compile_error(why);
	}
	free_table(&table);
	return rc;
}

int cv_ids_database_make(struct cv_ids_database *database, const struct cv_ids_rules *rules,
	enum cv_ids_proto proto, bool streams, uint32_t *wrong, struct cv_ids_problem *problem)
{
	struct patterns patterns = {0};
	int rc = collect(&patterns, database, rules, proto, streams);

	if (rc == 0 && patterns.count > 0) {
		qsort(patterns.pattern, patterns.count, sizeof(*patterns.pattern), order);
		rc = compile(database, &patterns, streams, wrong, problem);
	}
	for (uint32_t i = 0; i < patterns.count; i++)
		free(patterns.pattern[i].text);
	free(patterns.pattern);
	return rc;
}

void cv_ids_database_free(struct cv_ids_database *database)
{
	hs_free_database(database->hs);
	free(database->first);
	free(database->part);
	free(database->bare);
	*database = (struct cv_ids_database){0};
}
