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

#include <rte_common.h>

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

// Optional: (x & mask) == value of layer 4's bits.
static bool l4_bits(struct line *line, struct cv_firewall_bits *bits)
{
	long value, mask;

	skip_blanks(line);
	if (line->at == line->end || !isdigit((unsigned char)*line->at))
		return true;
	value = number(line, UINT16_MAX);
	if (value < 0 || !sign(line, '/'))
		return false;
	mask = number(line, UINT16_MAX);
	if (mask < 0)
		return false;
	*bits = (struct cv_firewall_bits){(uint16_t)(value & mask), (uint16_t)mask};
	return true;
}

// The first part of a rule, up to the flags. On false, line->field and line->at say what is wrong.
static bool parse_columns(struct line *line, struct cv_firewall_rule *rule)
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
	line->field = "flags FLAGS/MASK, KEY=VALUE or the end of the line";
	return l4_bits(line, &rule->extra.l4);
}

// The words behind the columns, as an object: KEY as descriptors write it. NULL: a word is not
// KEY=VALUE, then line says where, or there is no memory.
static json_t *parse_words(struct line *line)
{
	json_t *words = json_object();

	for (size_t length; words != NULL && (length = word_length(line)) > 0; line->at += length) {
		const char *is = memchr(line->at, '=', length);
		char key[32], value[64];
		size_t key_length, value_length;
		bool digits;

		key_length = is != NULL ? (size_t)(is - line->at) : 0;
		value_length = length - key_length - 1;
		if (key_length == 0 || key_length >= sizeof(key) || value_length == 0 ||
			value_length >= sizeof(value) || memchr(line->at, 0, length) != NULL) {
			json_decref(words);
			return NULL;
		}
		for (size_t i = 0; i < key_length; i++)
			key[i] = (char)(line->at[i] == '-' ? '_' : line->at[i]);
		key[key_length] = '\0';
		if (json_object_get(words, key) != NULL) {
			json_decref(words);
			return NULL;
		}
		memcpy(value, is + 1, value_length);
		value[value_length] = '\0';
		digits = value_length < 10 && strspn(value, "0123456789") == value_length;
		if (json_object_set_new(words, key,
			    digits ? json_integer(strtol(value, NULL, 10)) : json_string(value)) !=
			0) {
			json_decref(words);
			return NULL; // no memory, or not UTF-8
		}
	}
	return words;
}

static int wrong_line(const struct cv_where *at, struct line *line)
{
	const size_t length = word_length(line);

	return cv_where_error(at, "\"%.*s\": no %s; a rule is %s", (int)RTE_MIN(length, 80u),
		line->at, line->field, EXAMPLE);
}

// Whether the columns fit together.
static int check_columns(const struct cv_where *at, const struct cv_firewall_rule *rule)
{
	const struct cv_firewall_bits *l4 = &rule->extra.l4;
	const bool icmp = rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6;

	if (cv_firewall_rule_has_ports(rule) && rule->proto >= 0 &&
		!cv_proto_has_ports((uint8_t)rule->proto))
		return cv_where_error(at,
			"protocol %d has no ports; write 0 : 65535 for both, or another protocol",
			rule->proto);
	if (l4->mask != 0 && !icmp && rule->proto != IPPROTO_TCP)
		return cv_where_error(at,
			"flags 0x%04x/0x%04x: only protocols 1, 6 and 58 have some; write "
			"0x0000/0x0000",
			l4->value, l4->mask);
	if ((l4->mask & 0xff) != 0 && !icmp)
		return cv_where_error(at,
			"flags 0x%04x/0x%04x: TCP's are in the upper byte; write 0x%04x/0x%04x",
			l4->value, l4->mask, l4->value & 0xff00, l4->mask & 0xff00);
	return 0;
}

// Reads one rule. Returns 0, or -EINVAL with at's error set.
static int parse(
	const struct cv_where *at, struct line *line, struct cv_firewall_rule *rule, bool flows)
{
	json_t *words;
	int rc;

	if (!parse_columns(line, rule))
		return wrong_line(at, line);
	rc = check_columns(at, rule);
	skip_blanks(line);
	if (rc != 0 || line->at == line->end)
		return rc;
	line->field = "KEY=VALUE, each key once, or the end of the line";
	words = parse_words(line);
	if (words == NULL)
		return wrong_line(at, line);
	rc = cv_params_read(at, words, cv_firewall_extra_params, &rule->extra);
	json_decref(words);
	return rc != 0 ? rc : cv_firewall_extra_check(at, rule, flows);
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
		struct cv_where at;
		char place[200];

		skip_blanks(&line);
		if (line.at == line.end || *line.at == '#')
			continue;
		snprintf(place, sizeof(place), "%.*s:%lu", 150, path, row);
		at = cv_where_top(place, error);
		rule = cv_firewall_rules_append(rules);
		if (rule == NULL) {
			cv_where_error(&at, "no memory for so many rules");
			rc = -ENOMEM;
			break;
		}
		rule->allow = allow;
		rc = parse(&at, &line, rule, rules->flows);
		if (rc != 0)
			break;
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
