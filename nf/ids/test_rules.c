// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a file of rules may say, and what is said about one that is wrong.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hs.h>

#include "nf/ids/rule.h"

#define RULE(options) "alert tcp any any -> any any (" options " sid:1;)"

static json_t *variables;

// Reads text. Returns the rules, to be freed; what is wrong is in *error.
static struct cv_ids_rules read_text(const char *text, bool skip, struct cv_error *error)
{
	struct cv_ids_rules rules = {0};
	char *copy = strdup(text);
	int rc;

	assert_non_null(copy);
	rc = cv_ids_rules_parse(
		&rules, copy, strlen(copy), "x.rules", "ids", variables, skip, error);
	assert_int_equal(rc == 0, error->text[0] == '\0');
	free(copy);
	return rules;
}

static void says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"alert tcp any any", "x.rules:1: is no rule; write alert tcp any any -> "},
		{"\n# c\n\nreject tcp any any -> any any (sid:1;)",
			"x.rules:4: action \"reject\"; the actions are alert, drop and pass: is "
			"beyond the subset; remove the rule, or set unsupported to skip"},
		{"alert http any any -> any any (sid:1;)", "protocol \"http\"; the protocols are"},
		{"alert tcp any any - any any (sid:1;)", "\"-\": the direction is -> or <>"},
		{"alert tcp 10.0.0.300 any -> any any (sid:1;)", "\"10.0.0.300\": is no address"},
		{"alert tcp $NO any -> any any (sid:1;)", "\"$NO\": no variable is called so; add"},
		{"alert tcp !any any -> any any (sid:1;)", "not any is nothing"},
		{"alert tcp ![1.2.3.4, !1.2.3.5] any -> any any (sid:1;)", "within a negation"},
		{"alert tcp any 65536 -> any any (sid:1;)", "\"65536\": is no port"},
		{"alert tcp any 9:8 -> any any (sid:1;)", "\"9:8\": is no port"},
		{"alert tcp any : -> any any (sid:1;)", "\":\": is no port"},
		{"alert tcp any [80,] -> any any (sid:1;)", "an element is missing"},
		{"alert icmp any 1 -> any any (sid:1;)", "ports of icmp; write any"},
		{"alert tcp any any -> any any sid:1;", "options begin with ("},
		{"alert tcp any any -> any any (sid:1)", "an option ends with ;"},
		{"alert tcp any any -> any any (sid:1;) x", "\"x\": stands behind the last )"},
		{"alert tcp any any -> any any (msg:\"x\";)", "has no sid; add sid:NUMBER;"},
		{"alert tcp any any -> any any (sid:0;)", "sid: \"0\": must be a whole number"},
		{RULE("content:\"a\";") "\n\n" RULE("content:\"b\";"),
			"x.rules:3: sid:1 is that of line 1, too; give each rule its own"},
		{RULE("msg:x;"), "msg: \"x\": write it in quotes"},
		{RULE("msg:\"\xff\";"), "is not UTF-8"},
		{RULE("content:\"\";"), "content: \"\": is empty"},
		{RULE("content:\"|4|\";"), "write hexadecimal bytes as |0d 0a|"},
		{RULE("content:\"|41\";"), "write hexadecimal bytes as |0d 0a|"},
		{RULE("content:\"a\\x\";"), "write \\\\ for a backslash"},
		{RULE("nocase;"), "nocase: stands behind no content"},
		{RULE("content:\"a\"; offset:-1;"),
			"offset: \"-1\": must be a whole number from 0"},
		{RULE("content:\"a\"; offset:1; within:3;"),
			"the content has offset or depth, and"},
		{RULE("content:\"abc\"; depth:2;"), "depth: 2: is less than the content's 3 bytes"},
		{RULE("content:\"a\"; content:\"bc\"; within:1;"), "within: 1: is less than"},
		{RULE("content:\"a\"; offset:var;"),
			"offset: \"var\": a name of a value: is beyond"},
		{RULE("pcre:\"a\";"), "pcre: \"a\": write \"/REGEX/\""},
		{RULE("pcre:\"/a/R\";"), "flag R; the flags are i, m and s: is beyond"},
		{RULE("pcre:!\"/a/\";"), "pcre: negated: is beyond"},
		{RULE("content:\"a\"; pcre:\"/b/\"; content:\"c\"; distance:1;"),
			"distance: 1: relative to a pcre: is beyond"},
		{RULE("flow:to_server,to_client;"), "to_server and to_client; take one away"},
		{RULE("flow:only_stream;"), "flow: \"only_stream\": is beyond"},
		{RULE("threshold:type limit, track by_src, count 1;"),
			"threshold: write type limit"},
		{RULE("threshold:type limit, track by_both, count 1, seconds 1;"), "\"by_both\""},
		{RULE("http_uri;"), "option \"http_uri\": is beyond"},
		{RULE("bytes_\x01;"), "option \"bytes_?\""},
		{RULE("a;") "\n" RULE("b;") "\nalert tcp any any -> any any (sid:2;)\n" RULE("c;"),
			"x.rules:1: option \"a\": is beyond the subset; remove the rule, or set "
			"unsupported to skip; also lines 2, 4"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {""};
		struct cv_ids_rules rules = read_text(rows[i].text, false, &error);

		if (strstr(error.text, rows[i].words) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, error.text,
				rows[i].words);
		cv_ids_rules_free(&rules);
	}
}

static void reads_what_rules_say(void **state)
{
	struct cv_error error = {""};
	struct cv_ids_rules rules = read_text(
		"# a comment\n"
		"drop udp $HOME any <> [10.0.0.0/8, !10.1.0.0/16] [53, 1000:1002, !1001] \\\n"
		" (msg:\"a \\\"b\\\"\\; c\"; content:\"x\"; nocase; offset:3; depth:5; \\\r\n"
		"  content:!\"|41 42|C\\;\"; distance:-2; within:9; pcre:\"/a\\/b\\;/is\"; \\\n"
		"  classtype:bad; priority:2; rev:7; gid:4; sid:9; reference:url,x; metadata:a b;)",
		false, &error);
	const struct cv_ids_rule *rule = rules.rule;

	assert_string_equal(error.text, "");
	assert_int_equal(rules.count, 1);
	assert_int_equal(rule->line, 2);
	assert_int_equal(rule->action, CV_IDS_DROP);
	assert_int_equal(rule->proto, CV_IDS_UDP);
	assert_true(rule->both_ways);
	assert_string_equal(rule->json,
		"\"gid\":4,\"signature_id\":9,\"rev\":7,\"signature\":\"a \\\"b\\\"; "
		"c\",\"category\":\"bad\",\"severity\":2");
	assert_int_equal(rule->contents_count, 2);
	assert_int_equal(rule->contents[0].first, 3);
	assert_int_equal(rule->contents[0].last, 8);
	assert_true(rule->contents[0].nocase);
	assert_true(rule->contents[1].negated && rule->contents[1].relative);
	assert_memory_equal(rule->contents[1].bytes, "ABC;", 4);
	assert_int_equal(rule->contents[1].first, -2);
	assert_int_equal(rule->contents[1].last, 7);
	assert_string_equal(rule->pcres[0].text, "a\\/b\\;");
	assert_int_equal(rule->pcres[0].flags, HS_FLAG_CASELESS | HS_FLAG_DOTALL);
	assert_int_equal(rule->parts, 3);
	assert_false(rule->exact);
	assert_true(cv_ids_addresses_have(rule->dst, (const uint8_t[]){10, 2, 0, 1}, false));
	assert_false(cv_ids_addresses_have(rule->dst, (const uint8_t[]){10, 1, 0, 1}, false));
	assert_false(cv_ids_addresses_have(rule->dst, (const uint8_t[]){11, 1, 0, 1}, false));
	assert_true(cv_ids_addresses_have(rule->src, (const uint8_t[]){192, 0, 2, 1}, false));
	for (unsigned port = 0; port < 65536; port++)
		assert_int_equal(cv_ids_ports_have(rule->dport, (uint16_t)port),
			port == 53 || port == 1000 || port == 1002);
	assert_null(rule->sport);
	cv_ids_rules_free(&rules);
}

static void skips_what_is_beyond(void **state)
{
	struct cv_error error = {""};
	struct cv_ids_rules rules =
		read_text("alert tls any any -> any any (sid:1;)\n" RULE("dsize:>3;") "\n" RULE(""),
			true, &error);

	assert_string_equal(error.text, "");
	assert_int_equal(rules.count, 1);
	assert_int_equal(rules.skipped_count, 2);
	assert_int_equal(rules.skipped[1].line, 2);
	assert_string_equal(rules.skipped[1].why, "option \"dsize\"");
	assert_int_equal(rules.rule[0].parts, 0);
	cv_ids_rules_free(&rules);
}

static void equal_words_are_kept_once(void **state)
{
	struct cv_error error = {""};
	struct cv_ids_rules rules = read_text(
		"alert tcp $HOME 1: -> any 80 (sid:1;)\nalert tcp $HOME any -> any 1: (sid:2;)",
		false, &error);

	assert_int_equal(rules.count, 2);
	assert_ptr_equal(rules.rule[0].src, rules.rule[1].src);
	assert_ptr_equal(rules.rule[0].sport, rules.rule[1].dport);
	cv_ids_rules_free(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(reads_what_rules_say),
		cmocka_unit_test(skips_what_is_beyond),
		cmocka_unit_test(equal_words_are_kept_once),
	};
	int rc;

	variables =
		json_pack("{s:s, s:s}", "HOME", "[192.0.2.0/24, $MORE]", "MORE", "2001:db8::/32");
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(variables);
	return rc;
}
