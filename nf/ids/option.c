// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The options of a rule.
#include "nf/ids/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR (1 << 20) // bytes that an offset or a distance may be

int cv_ids_problem(struct cv_ids_problem *problem, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem->text, sizeof(problem->text), format, args);
	va_end(args);
	for (char *at = problem->text; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = '?';
	return rc;
}

static int number(const struct cv_ids_reader *reader, const char *name, const char *value, long low,
	long high, long *to)
{
	char *end;

	errno = 0;
	*to = value == NULL ? 0 : strtol(value, &end, 10);
	if (value == NULL || end == value || *end != '\0' || errno != 0 || *to < low || *to > high)
		return cv_ids_problem(reader->problem, -EINVAL,
			"%s: \"%.40s\": must be a whole number from %ld to %ld", name,
			value == NULL ? "" : value, low, high);
	return 0;
}

// Takes the quotes off. negated: NULL, or whether there was a '!' before.
static int quoted(const struct cv_ids_reader *reader, const char *name, char **value, bool *negated)
{
	size_t len = *value == NULL ? 0 : strlen(*value);

	if (negated != NULL && len > 0 && **value == '!') {
		*negated = true;
		++*value;
		for (len--; isspace((unsigned char)**value); len--)
			++*value;
	}
	if (len < 2 || **value != '"' || (*value)[len - 1] != '"')
		return cv_ids_problem(reader->problem, -EINVAL, "%s: \"%.40s\": write it in quotes",
			name, *value == NULL ? "" : *value);
	(*value)[len - 1] = '\0';
	++*value;
	return 0;
}

static int read_content(struct cv_ids_reader *reader, char *value)
{
	struct cv_ids_rule *rule = reader->rule;
	bool negated = false;
	void *more;
	int rc = quoted(reader, "content", &value, &negated);

	if (rc != 0)
		return rc;
	if (rule->contents_count == CV_IDS_CONTENTS_MAX)
		return cv_ids_problem(
			reader->problem, -ENOTSUP, "more than %d contents", CV_IDS_CONTENTS_MAX);
	more = realloc(rule->contents, (rule->contents_count + 1u) * sizeof(*rule->contents));
	if (more == NULL)
		return -ENOMEM;
	rule->contents = more;
	reader->last = &rule->contents[rule->contents_count++];
	memset(reader->last, 0, sizeof(*reader->last));
	reader->last->negated = negated;
	reader->follows_pcre = reader->behind_pcre;
	reader->behind_pcre = false;
	return cv_ids_content_read(value, reader->last, reader->problem);
}

static int read_pcre(struct cv_ids_reader *reader, char *value)
{
	struct cv_ids_rule *rule = reader->rule;
	bool negated = false;
	void *more;
	int rc = quoted(reader, "pcre", &value, &negated);

	if (rc != 0)
		return rc;
	if (negated || rule->pcres_count == CV_IDS_PCRES_MAX)
		return negated ? cv_ids_problem(reader->problem, -ENOTSUP, "pcre: negated")
			       : cv_ids_problem(reader->problem, -ENOTSUP, "more than %d pcres",
					 CV_IDS_PCRES_MAX);
	more = realloc(rule->pcres, (rule->pcres_count + 1u) * sizeof(*rule->pcres));
	if (more == NULL)
		return -ENOMEM;
	rule->pcres = more;
	memset(&rule->pcres[rule->pcres_count], 0, sizeof(*rule->pcres));
	reader->last = NULL;
	reader->behind_pcre = true;
	return cv_ids_pcre_read(value, &rule->pcres[rule->pcres_count++], reader->problem);
}

// offset, depth, distance, within. last is a length until the rule is whole.
static int read_place(struct cv_ids_reader *reader, const char *name, const char *value)
{
	const bool relative = name[0] == 'd' ? name[1] == 'i' : name[0] == 'w';
	const bool is_length = strcmp(name, "depth") == 0 || strcmp(name, "within") == 0;
	struct cv_ids_content *content = reader->last;
	long n;
	int rc;

	if (value != NULL && isalpha((unsigned char)*value))
		return cv_ids_problem(
			reader->problem, -ENOTSUP, "%s: \"%.40s\": a name of a value", name, value);
	rc = number(reader, name, value, is_length ? 1 : relative ? -FAR : 0, FAR, &n);
	if (rc != 0)
		return rc;
	if (content->relative != relative &&
		(content->first != 0 || content->bounded || content->relative))
		return cv_ids_problem(reader->problem, -EINVAL,
			"%s: %ld: the content has offset or depth, and distance or within; "
			"take two of them away",
			name, n);
	if (relative && reader->follows_pcre)
		return cv_ids_problem(
			reader->problem, -ENOTSUP, "%s: %ld: relative to a pcre", name, n);
	content->relative = relative;
	if (is_length) {
		content->bounded = true;
		content->last = (int32_t)n;
	} else {
		content->first = (int32_t)n;
	}
	return 0;
}

static int read_flow(struct cv_ids_reader *reader, char *value)
{
	static const struct {
		const char *word;
		uint8_t flow;
	} words[] = {{"to_server", CV_IDS_TO_SERVER}, {"from_client", CV_IDS_TO_SERVER},
		{"to_client", CV_IDS_TO_CLIENT}, {"from_server", CV_IDS_TO_CLIENT},
		{"established", CV_IDS_ESTABLISHED}};
	char *save = NULL;

	for (char *word = value == NULL ? NULL : strtok_r(value, ", ", &save); word != NULL;
		word = strtok_r(NULL, ", ", &save)) {
		uint8_t flow = 0;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(word, words[i].word) == 0)
				flow = words[i].flow;
		if (flow == 0)
			return cv_ids_problem(reader->problem, -ENOTSUP, "flow: \"%.40s\"", word);
		reader->rule->flow |= flow;
	}
	if ((reader->rule->flow & 3) == 3)
		return cv_ids_problem(
			reader->problem, -EINVAL, "flow: to_server and to_client; take one away");
	return 0;
}

static int read_threshold(struct cv_ids_reader *reader, char *value)
{
	static const char *const types[] = {"", "limit", "threshold", "both"};
	static const char *const tracks[] = {"by_src", "by_dst", "by_rule"};
	struct cv_ids_rule *rule = reader->rule;
	char *save = NULL, *word = value == NULL ? NULL : strtok_r(value, ", ", &save);
	int track = -1, rc = 0;
	long n;

	for (; rc == 0 && word != NULL; word = strtok_r(NULL, ", ", &save)) {
		const char *of = strtok_r(NULL, ", ", &save);

		if (of == NULL)
			of = "";
		if (strcmp(word, "type") == 0) {
			for (uint8_t i = 1; i < 4; i++)
				if (strcmp(of, types[i]) == 0)
					rule->threshold.type = i;
		} else if (strcmp(word, "track") == 0) {
			for (int i = 0; i < 3; i++)
				if (strcmp(of, tracks[i]) == 0)
					track = i;
			if (track < 0)
				return cv_ids_problem(reader->problem, -ENOTSUP,
					"threshold: track \"%.40s\"", of);
		} else if (strcmp(word, "count") == 0) {
			rc = number(reader, "threshold: count", of, 1, 1000000, &n);
			rule->threshold.count = (uint32_t)n;
		} else if (strcmp(word, "seconds") == 0) {
			rc = number(reader, "threshold: seconds", of, 1, 86400, &n);
			rule->threshold.seconds = (uint32_t)n;
		} else {
			return cv_ids_problem(
				reader->problem, -ENOTSUP, "threshold: \"%.40s\"", word);
		}
	}
	if (rc == 0 && (rule->threshold.type == 0 || track < 0 || rule->threshold.count == 0 ||
			       rule->threshold.seconds == 0))
		return cv_ids_problem(reader->problem, -EINVAL,
			"threshold: write type limit, track by_src, count N, seconds N");
	rule->threshold.track = (uint8_t)track;
	return rc;
}

static int read_msg(struct cv_ids_reader *reader, char *value)
{
	char *to;
	int rc = quoted(reader, "msg", &value, NULL);

	if (rc != 0)
		return rc;
	to = value;
	for (const char *at = value; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		*to++ = *at;
	}
	*to = '\0';
	free(reader->rule->msg);
	reader->rule->msg = strdup(value);
	return reader->rule->msg == NULL ? -ENOMEM : 0;
}

static int read_number(struct cv_ids_reader *reader, const char *name, const char *value)
{
	struct cv_ids_rule *rule = reader->rule;
	const bool is_priority = strcmp(name, "priority") == 0;
	long n;
	const int rc = number(reader, name, value, strcmp(name, "rev") == 0 ? 0 : 1,
		is_priority ? 255 : UINT32_MAX, &n);

	if (is_priority)
		rule->priority = (uint8_t)n;
	else
		*(strcmp(name, "sid") == 0         ? &rule->sid
			: strcmp(name, "gid") == 0 ? &rule->gid
						   : &rule->rev) = (uint32_t)n;
	return rc;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

int cv_ids_option_read(struct cv_ids_reader *reader, const char *name, char *value)
{
	static const char *const numbers[] = {"sid", "gid", "rev", "priority", NULL};
	static const char *const places[] = {"offset", "depth", "distance", "within", NULL};
	static const char *const of_content[] = {"offset", "depth", "distance", "within", "nocase",
		"rawbytes", "fast_pattern", NULL};
	static const char *const unheeded[] = {
		"reference", "metadata", "rawbytes", "fast_pattern", NULL};

	if (is_one_of(name, of_content) && reader->last == NULL)
		return cv_ids_problem(
			reader->problem, -EINVAL, "%s: stands behind no content", name);
	if (strcmp(name, "msg") == 0)
		return read_msg(reader, value);
	if (strcmp(name, "content") == 0)
		return read_content(reader, value);
	if (strcmp(name, "pcre") == 0)
		return read_pcre(reader, value);
	if (strcmp(name, "flow") == 0)
		return read_flow(reader, value);
	if (strcmp(name, "threshold") == 0)
		return read_threshold(reader, value);
	if (is_one_of(name, numbers))
		return read_number(reader, name, value);
	if (is_one_of(name, places))
		return read_place(reader, name, value);
	if (strcmp(name, "nocase") == 0 && value == NULL) {
		reader->last->nocase = true;
		return 0;
	}
	if (strcmp(name, "classtype") == 0 && value != NULL) {
		free(reader->rule->classtype);
		reader->rule->classtype = strdup(value);
		return reader->rule->classtype == NULL ? -ENOMEM : 0;
	}
	if (is_one_of(name, unheeded))
		return 0;
	return cv_ids_problem(reader->problem, -ENOTSUP, "option \"%.40s\"", name);
}
