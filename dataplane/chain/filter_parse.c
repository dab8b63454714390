// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A filter's text to terms and operators, by recursive descent; as in pcap-filter `and` and `or` bind
// alike and from the left, `not` more closely.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "chain/filter.h"
#include "chain/filter_ops.h"

#define WORD_MAX 64 // bytes of a word with its NUL

struct parser {
	const char *text, *at; // what is left
	char word[WORD_MAX]; // the next one; empty: there is none
	unsigned column; // where it begins, from 1
	unsigned depth;
	struct cv_filter *filter;
	const struct cv_filter_names *names;
	struct cv_error *error;
};

static int parse_expression(struct parser *parser);

static int wrong(struct parser *parser, const char *must)
{
	if (parser->word[0] == '\0')
		cv_error_set(parser->error, "filter: ends too early: %s", must);
	else
		cv_error_set(parser->error, "filter: column %u: \"%s\": %s", parser->column,
			parser->word, must);
	return -EINVAL;
}

// Words are parted by spaces; a parenthesis, ! , && and || are words of their own.
static unsigned word_length(const char *at)
{
	if (strncmp(at, "&&", 2) == 0 || strncmp(at, "||", 2) == 0)
		return 2;
	return strchr("()!", *at) != NULL ? *at != '\0' : (unsigned)strcspn(at, " \t()!&|");
}

static int next(struct parser *parser)
{
	unsigned length;

	parser->at += strspn(parser->at, " \t");
	parser->column = (unsigned)(parser->at - parser->text) + 1;
	length = word_length(parser->at);
	if (length == 0 && *parser->at != '\0')
		length = 1; // a single & or |
	for (unsigned i = 0; i < length && i < WORD_MAX; i++)
		if ((unsigned char)parser->at[i] < 0x21 || (unsigned char)parser->at[i] > 0x7e) {
			cv_error_set(parser->error,
				"filter: column %u: not a printable ASCII character",
				parser->column + i);
			return -EINVAL;
		}
	snprintf(parser->word, sizeof(parser->word), "%.*s", (int)length, parser->at);
	parser->at += length;
	if (length >= WORD_MAX)
		return wrong(parser, "too long a word");
	return 0;
}

static bool is(const struct parser *parser, const char *word)
{
	return strcmp(parser->word, word) == 0;
}

static int emit(struct parser *parser, unsigned op)
{
	struct cv_filter *filter = parser->filter;

	if (filter->ops_count == CV_FILTER_OPS_MAX) {
		cv_error_set(parser->error, "filter: too long: %u terms and operators are possible",
			CV_FILTER_OPS_MAX);
		return -EINVAL;
	}
	filter->ops[filter->ops_count++] = (uint8_t)op;
	return 0;
}

static int add(struct parser *parser, const struct cv_filter_term *term)
{
	struct cv_filter *filter = parser->filter;

	if (filter->terms_count == CV_FILTER_TERMS_MAX) {
		cv_error_set(parser->error, "filter: %u terms are possible", CV_FILTER_TERMS_MAX);
		return -EINVAL;
	}
	if (term->kind == CV_FILTER_DROP)
		filter->drops |= UINT32_C(1) << filter->terms_count;
	filter->terms[filter->terms_count] = *term;
	return emit(parser, filter->terms_count++);
}

// A word that is a number to high, which ends where it says.
static bool read_number(const char *word, char end, unsigned high, uint16_t *number)
{
	char *rest;
	unsigned long value;

	if (word[0] < '0' || word[0] > '9')
		return false;
	value = strtoul(word, &rest, 10);
	*number = (uint16_t)value;
	return *rest == end && value <= high;
}

static int take_prefix(struct parser *parser, struct cv_filter_term term, bool host)
{
	const int rc = strchr(parser->word, '/') != NULL && host
			       ? -EINVAL
			       : cv_prefix_parse(parser->word, &term.prefix);

	term.kind = CV_FILTER_PREFIX;
	if (rc == -EDOM)
		return wrong(parser, "has host bits set");
	if (rc != 0)
		return wrong(parser, host ? "give an IPv4 or IPv6 address"
					  : "give a prefix, like 10.0.0.0/8 or 2001:db8::/32");
	return add(parser, &term) != 0 ? -EINVAL : next(parser);
}

static int take_ports(struct parser *parser, struct cv_filter_term term, bool range)
{
	const char *dash = strchr(parser->word, '-');

	term.kind = CV_FILTER_PORTS;
	if (range ? dash == NULL || !read_number(parser->word, '-', UINT16_MAX, &term.value) ||
				!read_number(dash + 1, '\0', UINT16_MAX, &term.high) ||
				term.high < term.value
		  : !read_number(parser->word, '\0', UINT16_MAX, &term.value))
		return wrong(parser, range ? "give a range of ports, like 1000-1999"
					   : "give a port, 0 to 65535");
	if (!range)
		term.high = term.value;
	return add(parser, &term) != 0 ? -EINVAL : next(parser);
}

// host, net, port, portrange, or an address alone, behind src or dst.
static int take_endpoint(struct parser *parser, enum cv_filter_side side)
{
	const struct cv_filter_term term = {.side = side};
	const bool net = is(parser, "net"), port = is(parser, "port");
	const bool range = is(parser, "portrange");

	if ((net || port || range || is(parser, "host")) && next(parser) != 0)
		return -EINVAL;
	return port || range ? take_ports(parser, term, range) : take_prefix(parser, term, !net);
}

static int take_vlan(struct parser *parser)
{
	struct cv_filter_term term = {.kind = CV_FILTER_VLAN, .value = CV_FILTER_ANY};

	if (next(parser) != 0)
		return -EINVAL;
	if (parser->word[0] < '0' || parser->word[0] > '9')
		return add(parser, &term);
	if (!read_number(parser->word, '\0', 4095, &term.value))
		return wrong(parser, "give a VLAN id, 0 to 4095");
	return add(parser, &term) != 0 ? -EINVAL : next(parser);
}

static int take_name(struct parser *parser, enum cv_filter_kind kind)
{
	const struct cv_filter_names *names = parser->names;
	struct cv_filter_term term = {.kind = kind};
	const char *word = parser->word;
	bool known;
	int index = 0;

	if (next(parser) != 0)
		return -EINVAL;
	if (word[0] == '\0' || strlen(word) >= sizeof(term.name))
		return wrong(parser, "give a name");
	if (kind == CV_FILTER_DROP)
		known = names->reason(names->of, word);
	else
		known = (index = (kind == CV_FILTER_IN ? names->port : names->chain)(
				 names->of, word)) >= 0;
	if (!known)
		return wrong(parser, kind == CV_FILTER_IN      ? "the node has no such port"
				     : kind == CV_FILTER_CHAIN ? "the node has no such chain"
							       : "nothing drops for such a reason");
	term.value = (uint16_t)index;
	memcpy(term.name, word, strlen(word) + 1);
	return add(parser, &term) != 0 ? -EINVAL : next(parser);
}

// Words that stand alone, or before an endpoint: `tcp`, `tcp dst port 80`.
static const struct {
	const char *word;
	struct cv_filter_term term;
} kinds[] = {
	{"ip", {.kind = CV_FILTER_ETHER, .value = 0x0800}},
	{"ip6", {.kind = CV_FILTER_ETHER, .value = 0x86dd}},
	{"arp", {.kind = CV_FILTER_ETHER, .value = 0x0806}},
	{"tcp", {.kind = CV_FILTER_PROTO, .value = 6}},
	{"udp", {.kind = CV_FILTER_PROTO, .value = 17}},
	{"icmp", {.kind = CV_FILTER_PROTO, .value = 1, .family = 4}},
	{"icmp6", {.kind = CV_FILTER_PROTO, .value = 58, .family = 6}},
};

static const struct cv_filter_term *kind_of(const struct parser *parser)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is(parser, kinds[i].word))
			return &kinds[i].term;
	return NULL;
}

static bool is_endpoint(const struct parser *parser)
{
	static const char *const words[] = {"src", "dst", "host", "net", "port", "portrange"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is(parser, words[i]))
			return true;
	return false;
}

static int take_sided(struct parser *parser)
{
	const enum cv_filter_side side = is(parser, "src")   ? CV_FILTER_SRC
					 : is(parser, "dst") ? CV_FILTER_DST
							     : CV_FILTER_EITHER;

	if (side != CV_FILTER_EITHER && next(parser) != 0)
		return -EINVAL;
	return take_endpoint(parser, side);
}

static int parse_term(struct parser *parser)
{
	const struct cv_filter_term *kind = kind_of(parser);

	if (kind != NULL) {
		if (next(parser) != 0 || add(parser, kind) != 0)
			return -EINVAL;
		if (!is_endpoint(parser))
			return 0;
		return take_sided(parser) != 0 ? -EINVAL : emit(parser, CV_FILTER_AND);
	}
	if (is_endpoint(parser))
		return take_sided(parser);
	if (is(parser, "vlan"))
		return take_vlan(parser);
	if (is(parser, "in"))
		return take_name(parser, CV_FILTER_IN);
	if (is(parser, "chain"))
		return take_name(parser, CV_FILTER_CHAIN);
	if (is(parser, "drop"))
		return take_name(parser, CV_FILTER_DROP);
	return wrong(parser,
		"write host, net, port, portrange, src, dst, ip, ip6, arp, tcp, udp, icmp, icmp6, "
		"vlan, in PORT, chain NAME or drop REASON");
}

// A term, its contrary, or an expression in parentheses.
static int parse_factor(struct parser *parser)
{
	const bool negated = is(parser, "not") || is(parser, "!");
	int rc;

	if (!negated && !is(parser, "("))
		return parse_term(parser);
	if (++parser->depth > CV_FILTER_DEPTH_MAX)
		return wrong(parser, "nested too deep: 16 levels are possible");
	rc = next(parser);
	if (rc == 0)
		rc = negated ? parse_factor(parser) : parse_expression(parser);
	if (rc == 0 && negated)
		rc = emit(parser, CV_FILTER_NOT);
	else if (rc == 0)
		rc = is(parser, ")") ? next(parser) : wrong(parser, "\")\" is missing");
	parser->depth--;
	return rc;
}

static int parse_expression(struct parser *parser)
{
	int rc = parse_factor(parser);

	while (rc == 0) {
		const bool either = is(parser, "or") || is(parser, "||");

		if (!either && !is(parser, "and") && !is(parser, "&&"))
			return 0;
		rc = next(parser);
		if (rc == 0)
			rc = parse_factor(parser);
		if (rc == 0)
			rc = emit(parser, either ? CV_FILTER_OR : CV_FILTER_AND);
	}
	return rc;
}

int cv_filter_compile(struct cv_filter *filter, const char *text,
	const struct cv_filter_names *names, struct cv_error *error)
{
	struct parser parser = {
		.text = text, .at = text, .filter = filter, .names = names, .error = error};
	int rc;

	*filter = (struct cv_filter){.terms_count = 0};
	if (strlen(text) > CV_FILTER_TEXT_MAX) {
		cv_error_set(error, "filter: %u bytes are possible", CV_FILTER_TEXT_MAX);
		return -EINVAL;
	}
	rc = next(&parser);
	if (rc != 0 || parser.word[0] == '\0')
		return rc;
	rc = parse_expression(&parser);
	if (rc == 0 && parser.word[0] != '\0')
		rc = wrong(&parser, "write \"and\" or \"or\" before it");
	return rc;
}
