// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One rule: its header, and its options between parentheses.
#include "nf/ids/rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/ids/option.h"

#define EXAMPLE "alert tcp any any -> any 80 (msg:\"m\"; content:\"c\"; sid:1;)"
#define HEADER_WORDS 7

static char *skip_blanks(char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

static int word_index(const char *word, const char *const *words, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return -1;
}

// Splits off the words of a header; lists may have blanks in them. Returns where options begin.
static char *split_header(char *line, char *words[HEADER_WORDS])
{
	for (unsigned i = 0; i < HEADER_WORDS; i++) {
		unsigned open = 0;

		line = skip_blanks(line);
		words[i] = line;
		for (; *line != '\0' && (open > 0 || !isspace((unsigned char)*line)); line++) {
			open += *line == '[';
			open -= *line == ']' && open > 0;
		}
		if (*line == '\0' || words[i] == line)
			return NULL;
		*line++ = '\0';
	}
	return skip_blanks(line);
}

static int read_header(char *words[HEADER_WORDS], const json_t *variables, struct cv_ids_nets *nets,
	struct cv_ids_rule *rule, struct cv_ids_problem *problem)
{
	static const char *const actions[] = {"pass", "drop", "alert"};
	static const char *const protos[] = {"tcp", "udp", "icmp", "ip"};
	const int action = word_index(words[0], actions, 3);
	const int proto = word_index(words[1], protos, 4);
	int rc;

	if (action < 0)
		return cv_ids_problem(problem, -ENOTSUP,
			"action \"%.40s\"; the actions are alert, drop and pass", words[0]);
	if (proto < 0)
		return cv_ids_problem(problem, -ENOTSUP,
			"protocol \"%.40s\"; the protocols are ip, tcp, udp and icmp", words[1]);
	rule->action = (uint8_t)action;
	rule->proto = (uint8_t)proto;
	rule->both_ways = strcmp(words[4], "<>") == 0;
	if (!rule->both_ways && strcmp(words[4], "->") != 0)
		return cv_ids_problem(
			problem, -EINVAL, "\"%.40s\": the direction is -> or <>", words[4]);
	rc = cv_ids_addresses_read(nets, words[2], variables, &rule->src, problem);
	if (rc == 0)
		rc = cv_ids_ports_read(nets, words[3], variables, &rule->sport, problem);
	if (rc == 0)
		rc = cv_ids_addresses_read(nets, words[5], variables, &rule->dst, problem);
	if (rc == 0)
		rc = cv_ids_ports_read(nets, words[6], variables, &rule->dport, problem);
	return rc;
}

// Ends the option that begins here: at the ';' that no backslash stands before. Returns what is
// behind it, or NULL.
static char *end_option(char *at)
{
	for (; *at != '\0' && *at != ';'; at++)
		if (*at == '\\' && at[1] != '\0')
			at++;
	if (*at == '\0')
		return NULL;
	*at = '\0';
	return at + 1;
}

static void trim(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
}

static int read_options(char *at, struct cv_ids_reader *reader)
{
	if (*at != '(')
		return cv_ids_problem(
			reader->problem, -EINVAL, "\"%.20s\": options begin with (", at);
	for (at = skip_blanks(at + 1); *at != ')'; at = skip_blanks(at)) {
		char *name = at, *value, *next = end_option(at);
		int rc;

		if (next == NULL)
			return cv_ids_problem(reader->problem, -EINVAL,
				"\"%.40s\": an option ends with ;, and the last one with ;)", name);
		value = strchr(name, ':');
		if (value != NULL) {
			*value = '\0';
			value = skip_blanks(value + 1);
			trim(value);
		}
		trim(name);
		rc = cv_ids_option_read(reader, name, value);
		if (rc != 0)
			return rc;
		at = next;
	}
	at = skip_blanks(at + 1);
	if (*at != '\0')
		return cv_ids_problem(
			reader->problem, -EINVAL, "\"%.40s\": stands behind the last )", at);
	return 0;
}

int cv_ids_rule_read(char *line, const json_t *variables, struct cv_ids_nets *nets,
	struct cv_ids_rule *rule, struct cv_ids_problem *problem)
{
	struct cv_ids_reader reader = {.rule = rule, .problem = problem};
	char *words[HEADER_WORDS], *options = split_header(line, words);
	int rc;

	rule->gid = 1;
	rule->priority = 3;
	if (options == NULL)
		return cv_ids_problem(problem, -EINVAL, "is no rule; write " EXAMPLE);
	rc = read_header(words, variables, nets, rule, problem);
	if (rc == 0)
		rc = read_options(options, &reader);
	if (rc == 0 && rule->sid == 0)
		rc = cv_ids_problem(problem, -EINVAL, "has no sid; add sid:NUMBER;");
	if (rc == 0 && (rule->proto == CV_IDS_ICMP || rule->proto == CV_IDS_IP) &&
		(rule->sport != NULL || rule->dport != NULL))
		rc = cv_ids_problem(problem, rule->proto == CV_IDS_IP ? -ENOTSUP : -EINVAL,
			"ports of %s; write any", words[1]);
	return rc == 0 ? cv_ids_rule_finish(rule, problem) : rc;
}

void cv_ids_rule_free(struct cv_ids_rule *rule)
{
	for (unsigned i = 0; i < rule->contents_count; i++)
		cv_ids_content_free(&rule->contents[i]);
	for (unsigned i = 0; i < rule->pcres_count; i++)
		free(rule->pcres[i].text);
	free(rule->contents);
	free(rule->pcres);
	free(rule->msg);
	free(rule->classtype);
	free(rule->json);
}
