// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The options of a rule that patterns are made of: content, pcre.
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hs.h>

#include "nf/ids/rule.h"

static int hex_digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? (c | 0x20) - 'a' + 10 : -1;
}

// Bytes between bars: "|0d 0a|". Returns where they end, or NULL.
static const char *read_hex(const char *at, uint8_t *bytes, unsigned *len)
{
	for (at++; *at != '|'; at++) {
		if (*at == ' ')
			continue;
		if (hex_digit((unsigned char)at[0]) < 0 || hex_digit((unsigned char)at[1]) < 0 ||
			*len > CV_IDS_CONTENT_MAX)
			return NULL;
		bytes[(*len)++] = (uint8_t)(hex_digit((unsigned char)at[0]) * 16 +
					    hex_digit((unsigned char)at[1]));
		at++;
	}
	return at + 1;
}

int cv_ids_content_read(
	const char *value, struct cv_ids_content *content, struct cv_ids_problem *problem)
{
	uint8_t bytes[CV_IDS_CONTENT_MAX + 2];
	unsigned len = 0;

	for (const char *at = value; *at != '\0';) {
		if (*at == '|') {
			at = read_hex(at, bytes, &len);
			if (at == NULL)
				return cv_ids_problem(problem, -EINVAL,
					"content: \"%.80s\": write hexadecimal bytes as |0d 0a|",
					value);
		} else {
			if (*at == '\\' && strchr("\\\";:|", at[1]) != NULL && at[1] != '\0')
				at++;
			else if (*at == '\\')
				return cv_ids_problem(problem, -EINVAL,
					"content: \"%.80s\": write \\\\ for a backslash", value);
			bytes[len++] = (uint8_t)*at++;
		}
		if (len > CV_IDS_CONTENT_MAX)
			return cv_ids_problem(problem, -EINVAL,
				"content: \"%.40s...\": has more than %d bytes", value,
				CV_IDS_CONTENT_MAX);
	}
	if (len == 0)
		return cv_ids_problem(problem, -EINVAL, "content: \"\": is empty");
	content->bytes = malloc(len);
	content->failure = calloc(1, len);
	if (content->bytes == NULL || content->failure == NULL)
		return -ENOMEM;
	memcpy(content->bytes, bytes, len);
	content->len = (uint8_t)len;
	return 0;
}

void cv_ids_content_free(struct cv_ids_content *content)
{
	free(content->bytes);
	free(content->failure);
}

// "/REGEX/FLAGS". Whether Hyperscan takes it is known when the patterns are compiled.
int cv_ids_pcre_read(const char *value, struct cv_ids_pcre *pcre, struct cv_ids_problem *problem)
{
	const char *end = strrchr(value, '/');

	if (value[0] != '/' || end == value)
		return cv_ids_problem(
			problem, -EINVAL, "pcre: \"%.80s\": write \"/REGEX/\"", value);
	for (const char *flag = end + 1; *flag != '\0'; flag++) {
		switch (*flag) {
		case 'i':
			pcre->flags |= HS_FLAG_CASELESS;
			break;
		case 's':
			pcre->flags |= HS_FLAG_DOTALL;
			break;
		case 'm':
			pcre->flags |= HS_FLAG_MULTILINE;
			break;
		default:
			return cv_ids_problem(problem, -ENOTSUP,
				"pcre: \"%.80s\": flag %c; the flags are i, m and s", value, *flag);
		}
	}
	pcre->text = strndup(value + 1, (size_t)(end - value - 1));
	return pcre->text == NULL ? -ENOMEM : 0;
}

// Folds to lower case, and makes the table that a search goes on by where bytes differ.
static void finish_content(struct cv_ids_content *content)
{
	if (content->nocase)
		for (unsigned i = 0; i < content->len; i++)
			if (content->bytes[i] >= 'A' && content->bytes[i] <= 'Z')
				content->bytes[i] |= 0x20;
	for (unsigned i = 1, matched = 0; i < content->len; i++) {
		while (matched > 0 && content->bytes[i] != content->bytes[matched])
			matched = content->failure[matched - 1];
		matched += content->bytes[i] == content->bytes[matched];
		content->failure[i] = (uint8_t)matched;
	}
}

static int check_content(const struct cv_ids_content *content, struct cv_ids_problem *problem)
{
	const int32_t room = content->bounded ? content->last - content->first : content->len;

	if (room >= content->len)
		return 0;
	return cv_ids_problem(problem, -EINVAL,
		"%s: %d: is less than the content's %u bytes; make it more",
		content->relative ? "within" : "depth", room, content->len);
}

static uint16_t header_steps(const struct cv_ids_rule *rule)
{
	uint32_t steps = 16;

	steps += rule->src == NULL ? 0 : rule->src->in_count + rule->src->out_count;
	steps += rule->dst == NULL ? 0 : rule->dst->in_count + rule->dst->out_count;
	steps += rule->sport == NULL ? 0 : rule->sport->count;
	steps += rule->dport == NULL ? 0 : rule->dport->count;
	return (uint16_t)(rule->both_ways ? 2 * steps : steps);
}

int cv_ids_rule_finish(struct cv_ids_rule *rule, struct cv_ids_problem *problem)
{
	const struct cv_ids_content *longest = NULL;
	bool follows = false; // a content that may be relative to one before it
	int rc;

	for (unsigned i = 0; i < rule->contents_count; i++) {
		struct cv_ids_content *content = &rule->contents[i];

		content->last += content->first;
		rc = check_content(content, problem);
		if (rc != 0)
			return rc;
		if (content->relative && !follows) { // to the first byte
			content->relative = false;
			content->first = content->first > 0 ? content->first : 0;
			if (content->bounded && content->last < content->first + content->len)
				return cv_ids_problem(problem, -EINVAL,
					"distance: the content would begin before the first byte");
		}
		follows |= !content->negated;
		finish_content(content);
		if (!content->negated && (longest == NULL || content->len > longest->len)) {
			longest = content;
			rule->longest = (uint8_t)i;
		}
	}
	rule->header_steps = header_steps(rule);
	rule->parts = (uint8_t)((1u << rule->pcres_count) - 1) << 1 | (longest != NULL);
	rule->exact = rule->contents_count == (longest != NULL) &&
		      (longest == NULL || !longest->relative);
	return 0;
}
