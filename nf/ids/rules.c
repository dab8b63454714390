// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A file of rules: one a line, which a backslash at its end continues; # begins a comment.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nf/ids/rule.h"

#define FILE_MAX_BYTES (64 << 20)
#define LINES_SHOWN 12 // numbers in a message

// The file's bytes, with a zero behind them. NULL with error set.
static char *read_file(const char *path, const char *function, size_t *len, struct cv_error *error)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	char *text = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "is no file";
	else if (st.st_size > FILE_MAX_BYTES)
		why = "is longer than 64 MiB";
	else if ((text = calloc(1, (size_t)st.st_size + 1)) == NULL)
		why = "no memory to read it";
	for (*len = 0; why == NULL && *len < (size_t)st.st_size;) {
		const ssize_t n = read(fd, text + *len, (size_t)st.st_size - *len);

		if (n < 0)
			why = strerror(errno);
		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (why == NULL)
		return text;
	cv_error_set(error, "%s: rules_file: %s: %s", function, path, why);
	free(text);
	return NULL;
}

// Ends the line that begins here, and joins what continues it. Returns the next, or NULL.
static char *end_line(char *line, uint32_t *lines)
{
	char *end;

	while ((end = strchr(line, '\n')) != NULL) {
		char *last = end > line && end[-1] == '\r' ? end - 1 : end;

		++*lines;
		*last = ' ';
		if (last == line || last[-1] != '\\') {
			*end = '\0';
			return end + 1;
		}
		last[-1] = *end = ' ';
	}
	return NULL;
}

// What an alert says about the rule, as the inside of a JSON object.
static int describe(struct cv_ids_rule *rule, struct cv_ids_problem *problem)
{
	json_t *json = json_pack("{s:I, s:I, s:I, s:s, s:s, s:i}", "gid", (json_int_t)rule->gid,
		"signature_id", (json_int_t)rule->sid, "rev", (json_int_t)rule->rev, "signature",
		rule->msg != NULL ? rule->msg : "", "category",
		rule->classtype != NULL ? rule->classtype : "", "severity", rule->priority);
	char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	if (text == NULL)
		return cv_ids_problem(
			problem, -EINVAL, "msg or classtype is not UTF-8; write it in UTF-8");
	text[strlen(text) - 1] = '\0';
	memmove(text, text + 1, strlen(text));
	rule->json = text;
	return 0;
}

static int make_room(struct cv_ids_rules *rules)
{
	const uint32_t room = rules->room == 0 ? 64 : rules->room * 2;
	void *more;

	if (rules->count < rules->room)
		return 0;
	more = realloc(rules->rule, room * sizeof(*rules->rule));
	if (more == NULL)
		return -ENOMEM;
	rules->rule = more;
	rules->room = room;
	return 0;
}

int cv_ids_rules_skip(struct cv_ids_rules *rules, uint32_t line, const char *why)
{
	if (rules->skipped_count < CV_IDS_SKIPPED_MAX) {
		struct cv_ids_skipped *skipped = &rules->skipped[rules->skipped_count];

		skipped->line = line;
		skipped->why = strdup(why);
		if (skipped->why == NULL)
			return -ENOMEM;
	}
	rules->skipped_count++;
	return 0;
}

void cv_ids_rules_refuse_skipped(const struct cv_ids_rules *rules, const char *path,
	const char *function, struct cv_error *error)
{
	char lines[128] = "";
	size_t at = 0;

	for (uint32_t i = 1; i < rules->skipped_count && i < LINES_SHOWN; i++)
		at += (size_t)snprintf(lines + at, sizeof(lines) - at, "%s %u",
			i > 1                       ? ","
			: rules->skipped_count == 2 ? "; also line"
						    : "; also lines",
			rules->skipped[i].line);
	if (rules->skipped_count > LINES_SHOWN)
		snprintf(lines + at, sizeof(lines) - at, " ... (%u in all)", rules->skipped_count);
	cv_error_set(error,
		"%s: rules_file: %s:%u: %.160s: is beyond the subset; remove the rule, or set "
		"unsupported to skip%s",
		function, path, rules->skipped[0].line, rules->skipped[0].why, lines);
}

static int read_line(struct cv_ids_rules *rules, char *text, uint32_t line, const json_t *variables,
	struct cv_ids_problem *problem)
{
	struct cv_ids_rule *rule;
	int rc = make_room(rules);

	if (rc != 0)
		return rc;
	if (rules->count == CV_IDS_RULES_MAX)
		return cv_ids_problem(problem, -EINVAL, "is one rule too many; %d are possible",
			CV_IDS_RULES_MAX);
	rule = &rules->rule[rules->count];
	memset(rule, 0, sizeof(*rule));
	rule->line = line;
	rc = cv_ids_rule_read(text, variables, &rules->nets, rule, problem);
	if (rc == 0)
		rc = describe(rule, problem);
	if (rc == 0)
		rules->count++;
	else
		cv_ids_rule_free(rule);
	return rc == -ENOTSUP ? cv_ids_rules_skip(rules, line, problem->text) : rc;
}

int cv_ids_rule_compare(const struct cv_ids_rule *a, const struct cv_ids_rule *b)
{
	if (a->gid != b->gid)
		return a->gid < b->gid ? -1 : 1;
	return a->sid < b->sid ? -1 : a->sid > b->sid;
}

static int by_number(const void *one, const void *two, void *of)
{
	const struct cv_ids_rule *rule = of;
	const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
	const int differ = cv_ids_rule_compare(&rule[a], &rule[b]);

	return differ != 0 ? differ : a < b ? -1 : 1;
}

// Puts rules in order of their numbers. Each has one of its own.
static int check_numbers(struct cv_ids_rules *rules, uint32_t *line, struct cv_ids_problem *problem)
{
	rules->order = malloc((rules->count + 1u) * sizeof(*rules->order));
	if (rules->order == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < rules->count; i++)
		rules->order[i] = i;
	qsort_r(rules->order, rules->count, sizeof(*rules->order), by_number, rules->rule);
	for (uint32_t i = 1; i < rules->count; i++) {
		const struct cv_ids_rule *before = &rules->rule[rules->order[i - 1]];
		const struct cv_ids_rule *rule = &rules->rule[rules->order[i]];

		if (cv_ids_rule_compare(before, rule) != 0)
			continue;
		*line = rule->line;
		return cv_ids_problem(problem, -EINVAL,
			"sid:%u is that of line %u, too; give each rule its own", rule->sid,
			before->line);
	}
	return 0;
}

int cv_ids_rules_parse(struct cv_ids_rules *rules, char *text, size_t len, const char *path,
	const char *function, const json_t *variables, bool skip, struct cv_error *error)
{
	struct cv_ids_problem problem = {""};
	uint32_t line = 1, next_line = 1;
	int rc = 0;

	if (strlen(text) != len)
		rc = cv_ids_problem(&problem, -EINVAL, "the file has a zero byte; remove it");
	for (char *at = text, *next; rc == 0 && at != NULL; at = next) {
		line = next_line;
		next = end_line(at, &next_line);
		while (isspace((unsigned char)*at))
			at++;
		if (*at != '\0' && *at != '#')
			rc = read_line(rules, at, line, variables, &problem);
	}
	if (rc == 0)
		rc = check_numbers(rules, &line, &problem);
	if (rc == 0 && rules->skipped_count > 0 && !skip) {
		cv_ids_rules_refuse_skipped(rules, path, function, error);
		return -EINVAL;
	}
	if (rc != 0 && rc != -ENOMEM)
		cv_error_set(
			error, "%s: rules_file: %s:%u: %s", function, path, line, problem.text);
	return rc;
}

int cv_ids_rules_read(struct cv_ids_rules *rules, const char *path, const char *function,
	const json_t *variables, bool skip, struct cv_error *error)
{
	size_t len;
	char *text = read_file(path, function, &len, error);
	int rc;

	if (text == NULL)
		return -EINVAL;
	rc = cv_ids_rules_parse(rules, text, len, path, function, variables, skip, error);
	free(text);
	return rc;
}

void cv_ids_rules_free(struct cv_ids_rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++)
		cv_ids_rule_free(&rules->rule[i]);
	for (uint32_t i = 0; i < rules->skipped_count && i < CV_IDS_SKIPPED_MAX; i++)
		free(rules->skipped[i].why);
	free(rules->rule);
	free(rules->order);
	cv_ids_nets_free(&rules->nets);
}
