// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as firewall rules: as a ClassBench filter set, and, where they are a JSON array, as a
// descriptor's rules. An error has a text; what is accepted makes sense and, written as a filter
// set, is read again as the same rules.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nf/firewall/rules.h"
#include "packet/tuple.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static void check_rule(const struct cv_firewall_rule *rule)
{
	struct cv_prefix src = rule->src, dst = rule->dst;

	cv_prefix_mask(&src);
	cv_prefix_mask(&dst);
	require(memcmp(&src, &rule->src, sizeof(src)) == 0, "no host bits in src");
	require(memcmp(&dst, &rule->dst, sizeof(dst)) == 0, "no host bits in dst");
	require(rule->family == 0 || rule->family == 4 || rule->family == 6, "a family");
	require(rule->proto >= -1 && rule->proto <= 255, "a protocol");
	require(rule->sport.first <= rule->sport.last, "source ports in order");
	require(rule->dport.first <= rule->dport.last, "destination ports in order");
	require(!cv_firewall_rule_has_ports(rule) || rule->proto < 0 ||
			cv_proto_has_ports((uint8_t)rule->proto),
		"only protocols with ports have ports");
	require((rule->extra.l4.value & ~rule->extra.l4.mask) == 0, "layer 4's bits");
	require(rule->extra.l4.mask == 0 || rule->proto == IPPROTO_TCP ||
			rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6,
		"only TCP and ICMP have them");
	require(rule->extra.length.first <= rule->extra.length.last, "lengths in order");
	require(rule->extra.dscp <= 63 && rule->extra.icmp_type <= 255, "in range");
	require(rule->extra.vlan <= 4095 || rule->extra.vlan == CV_FIREWALL_UNTAGGED, "an id");
}

static int read_all(struct cv_firewall_rules *rules, const void *text, size_t size)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
	struct cv_error error = {""};
	int rc;

	require(file != NULL, "fmemopen");
	rc = cv_firewall_rules_read(rules, file, "rules", true, &error);
	require((rc == 0) == (error.text[0] == '\0'), "an error has a text");
	fclose(file);
	for (size_t i = 0; rc == 0 && i < rules->count; i++)
		check_rule(&rules->rule[i]);
	return rc;
}

// What the columns do not hold. ICMP's type and code do: they are in the flags.
static void write_extra(const struct cv_firewall_extra *extra, FILE *out)
{
	static const char *const fragments[] = {"none", "first", "later", "any"};

	fprintf(out, " 0x%04x/0x%04x length=%u-%u", extra->l4.value, extra->l4.mask,
		extra->length.first, extra->length.last);
	if (extra->dscp >= 0)
		fprintf(out, " dscp=%d", extra->dscp);
	if (extra->vlan == CV_FIREWALL_UNTAGGED)
		fprintf(out, " vlan=none");
	else if (extra->vlan >= 0)
		fprintf(out, " vlan=%d", extra->vlan);
	if (extra->fragment != CV_FIREWALL_FRAGMENTS_ALL)
		fprintf(out, " fragment=%s", fragments[extra->fragment]);
	fputc('\n', out);
}

// Needs rules of a file: those have addresses.
static void write_all(const struct cv_firewall_rules *rules, FILE *out)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct cv_firewall_rule *rule = &rules->rule[i];
		char src[CV_PREFIX_TEXT], dst[CV_PREFIX_TEXT];

		fprintf(out, "@%s %s %u : %u %u : %u %d/%d", cv_prefix_text(&rule->src, src),
			cv_prefix_text(&rule->dst, dst), rule->sport.first, rule->sport.last,
			rule->dport.first, rule->dport.last, rule->proto < 0 ? 0 : rule->proto,
			rule->proto < 0 ? 0 : 255);
		write_extra(&rule->extra, out);
	}
}

// How layer 4's bits were written.
static void forget_words(struct cv_firewall_extra *extra)
{
	extra->tcp_flags = (struct cv_firewall_bits){0, 0};
	extra->icmp_type = extra->icmp_code = -1;
}

static void read_json(const uint8_t *data, size_t size)
{
	json_t *array = json_loadb((const char *)data, size, 0, NULL);
	struct cv_firewall_rules rules = {0};
	struct cv_error error = {""};

	if (json_is_array(array)) {
		int rc = cv_firewall_rules_add(&rules, array, "fw", &error);

		require((rc == 0) == (error.text[0] == '\0'), "an error has a text");
		for (size_t i = 0; rc == 0 && i < rules.count; i++)
			check_rule(&rules.rule[i]);
	}
	cv_firewall_rules_clear(&rules);
	json_decref(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_firewall_rules rules = {0}, again = {0};
	char *text = NULL;
	size_t length = 0;
	FILE *out;

	read_json(data, size);
	if (size > 0 && read_all(&rules, data, size) == 0 && rules.count > 0) {
		out = open_memstream(&text, &length);
		write_all(&rules, out);
		fclose(out);
		require(read_all(&again, text, length) == 0, "what was written is read");
		require(again.count == rules.count, "as many rules");
		for (size_t i = 0; i < rules.count; i++) {
			forget_words(&rules.rule[i].extra);
			require(memcmp(&again.rule[i], &rules.rule[i], sizeof(*rules.rule)) == 0,
				"the same rules");
		}
		free(text);
	}
	cv_firewall_rules_clear(&again);
	cv_firewall_rules_clear(&rules);
	return 0;
}
