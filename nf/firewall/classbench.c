// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ClassBench filter sets: D. E. Taylor, J. S. Turner, "ClassBench: A Packet Classification
// Benchmark", IEEE/ACM Transactions on Networking 15(3), 2007; ClassBench-ng writes the same
// lines with IPv6 prefixes.
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/firewall/rules.h"
#include "packet/tuple.h"

#define EXAMPLE "@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF"

// A line as it is read: at moves towards end, field names what is read now.
struct line {
	const char *at;
	const char *end;
	const char *field;
};

static void skip_blanks(struct line *line)
{
	while (line->at < line->end && isspace((unsigned char)*line->at))
		line->at++;
}

// The length of the word that begins at line->at, behind blanks.
static size_t word_length(struct line *line)
{
	const char *at;

	skip_blanks(line);
	for (at = line->at; at < line->end && !isspace((unsigned char)*at); at++)
		;
	return (size_t)(at - line->at);
}

// An unsigned number in decimal, or in hexadecimal behind 0x; -1: none, or above max.
static long number(struct line *line, long max)
{
	const char *digits;
	int base = 10;
	long value = 0;

	skip_blanks(line);
	if (line->end - line->at > 2 && line->at[0] == '0' && (line->at[1] | 0x20) == 'x') {
		base = 16;
		line->at += 2;
	}
	for (digits = line->at; line->at < line->end; line->at++) {
		int c = (unsigned char)*line->at;
		int digit = isdigit(c) ? c - '0' : isxdigit(c) ? (c | 0x20) - 'a' + 10 : 16;

		if (digit >= base)
			break;
		value = base * value + digit;
		if (value > max)
			return -1;
	}
	return line->at > digits ? value : -1;
}

static bool sign(struct line *line, char wanted)
{
	skip_blanks(line);
	if (line->at == line->end || *line->at != wanted)
		return false;
	line->at++;
	return true;
}

// A prefix; its family must be the one that the rule has, if it has one.
static bool prefix(struct line *line, struct cv_prefix *prefix, uint8_t *family)
{
	size_t length = word_length(line);
	char text[CV_PREFIX_TEXT];
	uint8_t version;
	int rc;

	if (length >= sizeof(text))
		return false;
	memcpy(text, line->at, length);
	text[length] = '\0';
	rc = cv_prefix_parse(text, prefix);
	if (rc != 0 && rc != -EDOM)
		return false;
	cv_prefix_mask(prefix); // machine-written sets may have host bits: they do not matter
	version = prefix->address.v6 ? 6 : 4;
	if (*family != 0 && *family != version)
		return false;
	*family = version;
	line->at += length;
	return true;
}

static bool ports(struct line *line, struct cv_firewall_ports *ports)
{
	const char *begin;
	long first, last;

	skip_blanks(line);
	begin = line->at;
	first = number(line, UINT16_MAX);
	if (first < 0 || !sign(line, ':'))
		return false;
	last = number(line, UINT16_MAX);
	if (last < first) {
		line->at = begin;
		return false;
	}
	*ports = (struct cv_firewall_ports){(uint16_t)first, (uint16_t)last};
	return true;
}

static bool proto(struct line *line, int16_t *proto)
{
	const char *begin;
	long value, mask;

	skip_blanks(line);
	begin = line->at;
	value = number(line, UINT8_MAX);
	if (value < 0 || !sign(line, '/'))
		return false;
	mask = number(line, UINT8_MAX);
	if (mask != 0 && mask != UINT8_MAX) {
		line->at = begin;
		return false;
	}
	*proto = mask == 0 ? -1 : (int16_t)value;
	return true;
}

// Optional TCP flags. *asked: the mask is not empty.
static bool flags(struct line *line, bool *given)
{
	long mask;

	*given = false;
	skip_blanks(line);
	if (line->at == line->end)
		return true;
	if (number(line, UINT16_MAX) < 0 || !sign(line, '/'))
		return false;
	mask = number(line, UINT16_MAX);
	*given = mask > 0;
	return mask >= 0;
}

// Reads one rule. On false, line->field and line->at say what is wrong.
static bool parse(struct line *line, struct cv_firewall_rule *rule, bool *flags_given)
{
	line->field = "@ before the source prefix";
	if (!sign(line, '@'))
		return false;
	line->field = "source prefix";
	if (!prefix(line, &rule->src, &rule->family))
		return false;
	line->field = "destination prefix of the same family";
	if (!prefix(line, &rule->dst, &rule->family))
		return false;
	line->field = "source ports FIRST : LAST";
	if (!ports(line, &rule->sport))
		return false;
	line->field = "destination ports FIRST : LAST";
	if (!ports(line, &rule->dport))
		return false;
	line->field = "protocol with mask 0x00 or 0xFF";
	if (!proto(line, &rule->proto))
		return false;
	line->field = "TCP flags FLAGS/MASK or the end of the line";
	if (!flags(line, flags_given))
		return false;
	line->field = "end of the line";
	skip_blanks(line);
	return line->at == line->end;
}

int cv_firewall_rules_read(struct cv_firewall_rules *rules, FILE *file, const char *path,
	bool allow, struct cv_error *error)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t length;
	int rc = 0;

	for (unsigned long row = 1; (length = getline(&text, &size, file)) >= 0; row++) {
		struct line line = {.at = text, .end = text + length};
		struct cv_firewall_rule *rule;
		bool flags_given;

		skip_blanks(&line);
		if (line.at == line.end || *line.at == '#')
			continue;
		rule = cv_firewall_rules_append(rules);
		if (rule == NULL) {
			cv_error_set(error, "%s:%lu: no memory for so many rules", path, row);
			rc = -ENOMEM;
			break;
		}
		rule->allow = allow;
		if (!parse(&line, rule, &flags_given)) {
			cv_error_set(error, "%s:%lu: \"%.*s\": no %s; a rule is %s", path, row,
				(int)word_length(&line), line.at, line.field, EXAMPLE);
			rc = -EINVAL;
			break;
		}
		if (cv_firewall_rule_has_ports(rule) && rule->proto >= 0 &&
			!cv_proto_has_ports((uint8_t)rule->proto)) {
			cv_error_set(error,
				"%s:%lu: protocol %d has no ports; write 0 : 65535 for both, or "
				"another "
				"protocol",
				path, row, rule->proto);
			rc = -EINVAL;
			break;
		}
		rules->flags_ignored += flags_given;
	}
	if (rc == 0 && ferror(file)) {
		rc = -errno;
		cv_error_set(error, "%s: %s", path, strerror(-rc));
	}
	free(text);
	return rc;
}

int cv_firewall_rules_load(
	struct cv_firewall_rules *rules, const char *path, bool allow, struct cv_error *error)
{
	FILE *file = fopen(path, "re");
	int rc;

	if (file == NULL) {
		rc = -errno;
		cv_error_set(error, "rules_file \"%s\": %s; name a file that can be read", path,
			strerror(-rc));
		return rc;
	}
	rc = cv_firewall_rules_read(rules, file, path, allow, error);
	fclose(file);
	return rc;
}
