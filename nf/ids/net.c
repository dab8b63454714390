// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/net.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/ids/rule.h"

#define WORDS_MAX 4096

// What words say, element by element.
struct walk {
	const json_t *variables;
	struct cv_ids_problem *problem;
	const char *whole; // for messages
	// Takes an element that is no list and no variable.
	int (*take)(struct walk *walk, const char *word, bool out);
	unsigned depth;
	bool any; // "any" is among them
	unsigned in_count, out_count;
	struct cv_prefix in[CV_IDS_NETS_MAX], out[CV_IDS_NETS_MAX];
	uint8_t has[2][65536 / 8]; // ports in, and out
};

static int walk_words(struct walk *walk, const char *words, size_t len, bool out);

static int walk_variable(struct walk *walk, const char *name, bool out)
{
	const json_t *value = json_object_get(walk->variables, name);

	if (value == NULL)
		return cv_ids_problem(walk->problem, -EINVAL,
			"\"$%.40s\": no variable is called so; add it to variables", name);
	if (!json_is_string(value))
		return cv_ids_problem(
			walk->problem, -EINVAL, "\"$%.40s\": the variable must be text", name);
	return walk_words(walk, json_string_value(value), json_string_length(value), out);
}

// The elements of a list, without its brackets.
static int walk_list(struct walk *walk, const char *words, size_t len, bool out)
{
	size_t from = 0;
	int rc = 0;

	for (size_t at = 0, open = 0; rc == 0 && at <= len; at++) {
		if (at < len && words[at] == '[')
			open++;
		else if (at < len && words[at] == ']')
			open -= open > 0;
		else if (at == len || (words[at] == ',' && open == 0)) {
			rc = walk_words(walk, words + from, at - from, out);
			from = at + 1;
		}
	}
	return rc;
}

static int walk_element(struct walk *walk, const char *words, size_t len, bool out)
{
	char word[128];

	if (len > 1 && words[0] == '[' && words[len - 1] == ']')
		return walk_list(walk, words + 1, len - 2, out);
	if (len == 0 || len >= sizeof(word))
		return cv_ids_problem(walk->problem, -EINVAL, "\"%.80s\": %s", walk->whole,
			len == 0 ? "an element is missing" : "an element is too long");
	memcpy(word, words, len);
	word[len] = '\0';
	if (word[0] == '$')
		return walk_variable(walk, word + 1, out);
	if (strcmp(word, "any") == 0) {
		if (out)
			return cv_ids_problem(walk->problem, -EINVAL,
				"\"%.80s\": not any is nothing; remove the rule", walk->whole);
		walk->any = true;
		return 0;
	}
	return walk->take(walk, word, out);
}

static int walk_words(struct walk *walk, const char *words, size_t len, bool out)
{
	bool turned = false;
	int rc;

	while (len > 0 && isspace((unsigned char)*words))
		words++, len--;
	while (len > 0 && isspace((unsigned char)words[len - 1]))
		len--;
	if (len > 0 && *words == '!') {
		turned = true;
		words++, len--;
	}
	if (turned && out)
		return cv_ids_problem(walk->problem, -ENOTSUP,
			"\"%.80s\": a negation within a negation", walk->whole);
	if (walk->depth == CV_IDS_NESTING_MAX)
		return cv_ids_problem(walk->problem, -EINVAL,
			"\"%.80s\": more than %d lists and variables in each other", walk->whole,
			CV_IDS_NESTING_MAX);
	walk->depth++;
	rc = walk_element(walk, words, len, out || turned);
	walk->depth--;
	return rc;
}

static int take_prefix(struct walk *walk, const char *word, bool out)
{
	unsigned *count = out ? &walk->out_count : &walk->in_count;
	struct cv_prefix *prefix = out ? walk->out : walk->in;
	int rc;

	if (*count == CV_IDS_NETS_MAX)
		return cv_ids_problem(walk->problem, -EINVAL, "\"%.80s\": more than %d addresses",
			walk->whole, CV_IDS_NETS_MAX);
	rc = cv_prefix_parse(word, &prefix[*count]);
	if (rc == -EINVAL)
		return cv_ids_problem(walk->problem, -EINVAL,
			"\"%.80s\": is no address; write 192.0.2.0/24, $NAME, [A, B] or any", word);
	cv_prefix_mask(&prefix[*count]);
	++*count;
	return 0;
}

static int take_ports(struct walk *walk, const char *word, bool out)
{
	unsigned long first = 0, last = 65535;
	bool digits = false;
	char *at = (char *)(uintptr_t)word;

	if (isdigit((unsigned char)*at)) {
		first = last = strtoul(at, &at, 10);
		digits = true;
	}
	if (*at == ':') {
		last = 65535;
		if (isdigit((unsigned char)*++at)) {
			last = strtoul(at, &at, 10);
			digits = true;
		}
	}
	if (!digits || *at != '\0' || first > last || last > 65535)
		return cv_ids_problem(walk->problem, -EINVAL,
			"\"%.80s\": is no port; write 80, 1024:, 1:1023, $NAME, [A, B] or any",
			word);
	for (unsigned long port = first; port <= last; port++)
		walk->has[out][port / 8] |= (uint8_t)(1 << port % 8);
	*(out ? &walk->out_count : &walk->in_count) += 1;
	return 0;
}

static int begin(struct walk **walk, const char *words, const json_t *variables,
	int (*take)(struct walk *, const char *, bool), struct cv_ids_problem *problem)
{
	if (strlen(words) > WORDS_MAX)
		return cv_ids_problem(problem, -EINVAL,
			"\"%.40s...\": is longer than %d characters", words, WORDS_MAX);
	*walk = calloc(1, sizeof(**walk));
	if (*walk == NULL)
		return -ENOMEM;
	(*walk)->variables = variables;
	(*walk)->problem = problem;
	(*walk)->whole = words;
	(*walk)->take = take;
	return walk_words(*walk, words, strlen(words), false);
}

static int add_addresses(struct cv_ids_nets *nets, const char *words, struct walk *walk)
{
	// With any among those in, only those out say anything.
	const unsigned in = walk->any ? 0 : walk->in_count, out = walk->out_count;
	struct cv_ids_addresses *of = calloc(1, sizeof(*of) + (in + out) * sizeof(of->prefix[0]));

	if (of == NULL || (of->words = strdup(words)) == NULL) {
		free(of);
		return -ENOMEM;
	}
	of->in_count = in;
	of->out_count = out;
	memcpy(of->prefix, walk->in, in * sizeof(of->prefix[0]));
	memcpy(of->prefix + in, walk->out, out * sizeof(of->prefix[0]));
	of->next = nets->addresses;
	nets->addresses = of;
	return 0;
}

int cv_ids_addresses_read(struct cv_ids_nets *nets, const char *words, const json_t *variables,
	const struct cv_ids_addresses **of, struct cv_ids_problem *problem)
{
	struct walk *walk = NULL;
	int rc;

	*of = NULL;
	if (strcmp(words, "any") == 0)
		return 0;
	for (*of = nets->addresses; *of != NULL; *of = (*of)->next)
		if (strcmp((*of)->words, words) == 0)
			return 0;
	rc = begin(&walk, words, variables, take_prefix, problem);
	if (rc == 0 && !(walk->any && walk->out_count == 0)) {
		rc = add_addresses(nets, words, walk);
		*of = rc == 0 ? nets->addresses : NULL;
	}
	free(walk);
	return rc;
}

static int add_ports(struct cv_ids_nets *nets, const char *words, const struct walk *walk)
{
	const bool all = walk->any || walk->in_count == 0;
	struct cv_ids_ports *of = NULL;
	unsigned count = 0;

	for (unsigned round = 0; round < 2; round++) {
		bool before = false;

		count = 0;
		for (unsigned port = 0; port < 65536; port++) {
			const unsigned byte = port / 8, bit = 1u << port % 8;
			const bool has =
				(all || walk->has[0][byte] & bit) && !(walk->has[1][byte] & bit);

			if (has && !before && of != NULL)
				of->range[count].first = (uint16_t)port;
			if (has && of != NULL)
				of->range[count - before].last = (uint16_t)port;
			count += has && !before;
			before = has;
		}
		if (of != NULL)
			break;
		of = calloc(1, sizeof(*of) + count * sizeof(of->range[0]));
		if (of == NULL || (of->words = strdup(words)) == NULL) {
			free(of);
			return -ENOMEM;
		}
	}
	of->count = count;
	of->next = nets->ports;
	nets->ports = of;
	return 0;
}

int cv_ids_ports_read(struct cv_ids_nets *nets, const char *words, const json_t *variables,
	const struct cv_ids_ports **of, struct cv_ids_problem *problem)
{
	struct walk *walk = NULL;
	int rc;

	*of = NULL;
	if (strcmp(words, "any") == 0)
		return 0;
	for (*of = nets->ports; *of != NULL; *of = (*of)->next)
		if (strcmp((*of)->words, words) == 0)
			return 0;
	rc = begin(&walk, words, variables, take_ports, problem);
	if (rc == 0 && !(walk->any && walk->out_count == 0)) {
		rc = add_ports(nets, words, walk);
		*of = rc == 0 ? nets->ports : NULL;
	}
	free(walk);
	return rc;
}

void cv_ids_nets_free(struct cv_ids_nets *nets)
{
	for (struct cv_ids_addresses *of = nets->addresses, *next; of != NULL; of = next) {
		next = of->next;
		free(of->words);
		free(of);
	}
	for (struct cv_ids_ports *of = nets->ports, *next; of != NULL; of = next) {
		next = of->next;
		free(of->words);
		free(of);
	}
	*nets = (struct cv_ids_nets){0};
}

static bool is_in(const struct cv_prefix *prefix, const uint8_t *address, bool v6)
{
	const unsigned bytes = prefix->length / 8, bits = prefix->length % 8;

	return prefix->address.v6 == v6 && memcmp(prefix->address.bytes, address, bytes) == 0 &&
	       (bits == 0 || ((prefix->address.bytes[bytes] ^ address[bytes]) >> (8 - bits)) == 0);
}

bool cv_ids_addresses_have(const struct cv_ids_addresses *of, const uint8_t *address, bool v6)
{
	bool in;

	if (of == NULL)
		return true;
	in = of->in_count == 0;
	for (unsigned i = 0; !in && i < of->in_count; i++)
		in = is_in(&of->prefix[i], address, v6);
	for (unsigned i = 0; in && i < of->out_count; i++)
		in = !is_in(&of->prefix[of->in_count + i], address, v6);
	return in;
}

bool cv_ids_ports_have(const struct cv_ids_ports *of, uint16_t port)
{
	if (of == NULL)
		return true;
	for (unsigned i = 0; i < of->count && of->range[i].first <= port; i++)
		if (port <= of->range[i].last)
			return true;
	return false;
}
