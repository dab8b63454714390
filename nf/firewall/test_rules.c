// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>

#include "nf/firewall/rules.h"
#include "tests/support/test_eal.h"
#include "tests/support/test_packets.h"

static struct cv_firewall_rules rules;
static struct cv_error error;

static int read_text(const char *text, size_t length)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, length, "r");
	int rc;

	assert_non_null(file);
	error.text[0] = '\0';
	rc = cv_firewall_rules_read(&rules, file, "f.rules", true, &error);
	fclose(file);
	return rc;
}

// Addresses that no rule needs to ask for are 0/0 and ::/0.
static void good_lines(void **state)
{
	static const struct {
		const char *line;
		const char *src;
		const char *dst;
		struct cv_firewall_ports sport, dport;
		int proto;
		struct cv_firewall_bits l4;
	} rows[] = {
		{"@192.0.2.1/32\t10.0.0.0/8\t0 : 65535\t80 : 80\t0x06/0xFF\t0x1000/0x1000\n",
			"192.0.2.1/32", "10.0.0.0/8", {0, 65535}, {80, 80}, 6, {0x1000, 0x1000}},
		{"@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00", "0.0.0.0/0", "0.0.0.0/0",
			{0, 65535}, {0, 65535}, -1, {0, 0}},
		{"  @ 10.1.2.3/8 1.2.3.4 1:2 3 :4 17/255 0/0 \r\n", "10.0.0.0/8", "1.2.3.4/32",
			{1, 2}, {3, 4}, 17, {0, 0}},
		{"@2001:db8::/32 ::/0 0 : 65535 1024 : 65535 0x11/0xff 0x0000/0x0000\n",
			"2001:db8::/32", "::/0", {0, 65535}, {1024, 65535}, 17, {0, 0}},
		{"@::ffff:1.2.3.4/128 ::1 0 : 65535 0 : 65535 0x3A/0xFF\n", "::ffff:1.2.3.4/128",
			"::1/128", {0, 65535}, {0, 65535}, 58, {0, 0}},
		{"@1.2.3.4/32 1.2.3.4/32 0 : 65535 0 : 65535 0x01/0xFF\n", "1.2.3.4/32",
			"1.2.3.4/32", {0, 65535}, {0, 65535}, 1, {0, 0}},
		{"@1.2.3.4/32 1.2.3.4/32 0 : 65535 0 : 65535 0x01/0xFF 0x0303/0xffff\t\n",
			"1.2.3.4/32", "1.2.3.4/32", {0, 65535}, {0, 65535}, 1, {0x303, 0xffff}},
		{"@1.2.3.4/32 1.2.3.4/32 0 : 65535 0 : 65535 0x06/0xFF 0x1200/0x0200 dscp=1",
			"1.2.3.4/32", "1.2.3.4/32", {0, 65535}, {0, 65535}, 6, {0x200, 0x200}},
		{"@1.2.3.4/32 1.2.3.4/32 0 : 65535 0 : 65535 6/255 tcp-flags=syn,!ack vlan=none",
			"1.2.3.4/32", "1.2.3.4/32", {0, 65535}, {0, 65535}, 6, {0x200, 0x1200}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cv_firewall_rule *rule;
		char text[CV_PREFIX_TEXT];

		if (read_text(rows[i].line, strlen(rows[i].line)) != 0)
			fail_msg("%s: %s", rows[i].line, error.text);
		assert_int_equal(rules.count, 1);
		rule = &rules.rule[0];
		assert_true(rule->allow);
		assert_int_equal(rule->family, strchr(rows[i].src, ':') != NULL ? 6 : 4);
		assert_string_equal(cv_prefix_text(&rule->src, text), rows[i].src);
		assert_string_equal(cv_prefix_text(&rule->dst, text), rows[i].dst);
		assert_memory_equal(&rule->sport, &rows[i].sport, sizeof(rule->sport));
		assert_memory_equal(&rule->dport, &rows[i].dport, sizeof(rule->dport));
		assert_int_equal(rule->proto, rows[i].proto);
		assert_memory_equal(&rule->extra.l4, &rows[i].l4, sizeof(rows[i].l4));
		cv_firewall_rules_clear(&rules);
	}
}

#define GOOD "@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF 0x0000/0x0000\n"

#define LINE "@192.0.2.0/24 0.0.0.0/0 0 : 65535 0 : 65535 "

static void bad_lines(void **state)
{
	static const struct {
		const char *text;
		const char *words;
	} rows[] = {
		{"192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF",
			"f.rules:1: \"192.0.2.0/24\": no @"},
		{GOOD "\n# comment\nx\n",
			"f.rules:4: \"x\": no @ before the source prefix; a rule is @"},
		{GOOD "@", "f.rules:2: \"\": no source prefix"},
		{"@192.0.2.0/33 0.0.0.0/0", "\"192.0.2.0/33\": no source prefix"},
		{"@192.0.2/24 0.0.0.0/0", "\"192.0.2/24\": no source prefix"},
		{"@192.0.2.0/ 0.0.0.0/0", "\"192.0.2.0/\": no source prefix"},
		{"@192.0.2.0/+2 0.0.0.0/0", "no source prefix"},
		{"@1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1 0/0",
			"no source prefix"},
		{"@192.0.2.0/24 ::/0 0 : 1 0 : 1 6/255",
			"\"::/0\": no destination prefix of the same"},
		{"@192.0.2.0/24", "\"\": no destination prefix"},
		{"@192.0.2.0/24 0.0.0.0/0 80", "no source ports FIRST : LAST"},
		{"@192.0.2.0/24 0.0.0.0/0 2 : 1 0 : 1 6/255", "\"2\": no source ports"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 65536 0 : 1 6/255", "\"0\": no source ports"},
		{"@192.0.2.0/24 0.0.0.0/0 -1 : 6 0 : 1 6/255", "\"-1\": no source ports"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 - 1 6/255", "no destination ports"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 : 1 6/255", "\":\": no destination ports"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1", "\"\": no protocol with mask 0x00 or 0xFF"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 256/255", "no protocol with mask"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 0x06/0x0F", "\"0x06/0x0F\": no protocol"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 0x/0xFF", "no protocol"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 tcp", "\"tcp\": no protocol"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 6/255 x", "\"x\": no KEY=VALUE"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 1 0 : 1 6/255 0/0 x",
			"\"x\": no KEY=VALUE, each key"},
		{LINE "6/255 0/", "\"\": no flags FLAGS/MASK"},
		{LINE "17/255 0x0200/0x0200",
			"f.rules:1: flags 0x0200/0x0200: only protocols 1, 6 and 58 have some"},
		{LINE "6/255 0x0002/0x0002", "upper byte; write 0x0000/0x0000"},
		{LINE "6/255 0/0 vlan=7 vlan=8", "\"vlan=8\": no KEY=VALUE, each key once"},
		{LINE "6/255 vlan=", "\"vlan=\": no KEY=VALUE"},
		{LINE "6/255 =7", "\"=7\": no KEY=VALUE"},
		{LINE "6/255 vlan=4096", "f.rules:1: vlan: 4096: write an id"},
		{LINE "6/255 sport=7", "f.rules:1: sport: unknown; known are: tcp_flags"},
		{LINE "6/255 0x0200/0x0200 tcp-flags=syn", "keep one of them"},
		{"@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 1/255",
			"f.rules:1: protocol 1 has no ports; write 0 : 65535 for both"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (read_text(rows[i].text, strlen(rows[i].text)) != -EINVAL)
			fail_msg("accepted: %s", rows[i].text);
		if (strstr(error.text, rows[i].words) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, error.text,
				rows[i].words);
		cv_firewall_rules_clear(&rules);
	}
	assert_int_equal(read_text(GOOD "\0" GOOD, 2 * sizeof(GOOD) - 1), -EINVAL);
	cv_firewall_rules_clear(&rules);
}

// Keys of a descriptor's rule behind the columns.
static void words(void **state)
{
	static const char text[] = LINE "17/255 dscp=46 length=40-1500 fragment=first vlan=7\n" LINE
					"1/255 0/0 icmp-type=3 icmp-code=4 length=99\n";
	const struct cv_firewall_extra *extra;

	if (read_text(text, sizeof(text) - 1) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(rules.count, 2);
	extra = &rules.rule[0].extra;
	assert_int_equal(extra->dscp, 46);
	assert_int_equal(extra->length.first, 40);
	assert_int_equal(extra->length.last, 1500);
	assert_int_equal(extra->fragment, CV_FIREWALL_FRAGMENTS_FIRST);
	assert_int_equal(extra->vlan, 7);
	assert_int_equal(extra->l4.mask, 0);
	extra = &rules.rule[1].extra;
	assert_int_equal(extra->l4.value, 0x0304);
	assert_int_equal(extra->l4.mask, 0xffff);
	assert_int_equal(extra->length.last, 99);
	assert_int_equal(extra->vlan, -1);
	cv_firewall_rules_clear(&rules);
}

static void many_lines(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "# a filter set\n\n");
	for (unsigned i = 0; i < 100000; i++)
		fprintf(out, "@10.%u.%u.%u/32 0.0.0.0/0 0 : 65535 %u : 65535 0x06/0xFF\n", i >> 16,
			i >> 8 & 255, i & 255, i & 0xffff);
	fclose(out);
	assert_int_equal(read_text(text, size), 0);
	assert_int_equal(rules.count, 100000);
	assert_int_equal(rules.rule[99999].dport.first, 99999 & 0xffff);
	cv_firewall_rules_clear(&rules);
	assert_int_equal(rules.count, 0);
	free(text);
}

// The rules of the configuration come before those of the file, whose rules do what
// rules_file_action says.
static void file_behind_rules(void **state)
{
	static const struct packet_row allow[] = {
		{"a rule first", "ip4 src=192.0.2.9 tcp dport=80", "denied", NULL, 0, 0},
		{"then the file", "ip4 src=192.0.2.8 tcp dport=80", "next", NULL, 0, 1},
		{"then the default", "ip4 src=192.0.2.8 tcp dport=81", "default_denied", NULL, 0,
			0},
	};
	static const struct packet_row deny[] = {
		{"the file", "ip4 src=192.0.2.8 tcp dport=80", "denied", NULL, 0, 0},
		{"then the default", "ip4 src=192.0.2.8 tcp dport=81", "next", NULL, 0, 1},
	};
	const struct cv_nf *nf = cv_nf_find("firewall");
	const char *path = test_path("f.rules");
	FILE *file = fopen(path, "w");
	char config[512];
	void *firewall;

	assert_non_null(file);
	fputs(GOOD, file);
	fclose(file);
	snprintf(config, sizeof(config),
		"{'rules': [{'action': 'deny', 'src': '192.0.2.9'}], 'rules_file': '%s'}", path);
	firewall = packet_nf(nf, config, NULL);
	packet_table(nf, firewall, allow, sizeof(allow) / sizeof(allow[0]));
	nf->destroy(firewall);
	snprintf(config, sizeof(config),
		"{'default': 'allow', 'rules_file_action': 'deny', 'rules_file': '%s'}", path);
	firewall = packet_nf(nf, config, NULL);
	packet_table(nf, firewall, deny, sizeof(deny) / sizeof(deny[0]));
	nf->destroy(firewall);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(words),
		cmocka_unit_test(many_lines),
		cmocka_unit_test(file_behind_rules),
	};
	int failed;

	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
