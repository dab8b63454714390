// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/firewall/rules.h"
#include "config/params.h"
#include "packet/tuple.h"

struct cv_firewall_rule *cv_firewall_rules_append(struct cv_firewall_rules *rules)
{
	struct cv_firewall_rule *rule;

	if (rules->count == rules->size) {
		size_t size = rules->size == 0 ? 16 : 2 * rules->size;

		if (size > CV_FIREWALL_RULES_MAX)
			return NULL;
		rule = realloc(rules->rule, size * sizeof(*rule));
		if (rule == NULL)
			return NULL;
		rules->rule = rule;
		rules->size = size;
	}
	rule = &rules->rule[rules->count++];
	*rule = (struct cv_firewall_rule){
		.proto = -1,
		.sport = {0, UINT16_MAX},
		.dport = {0, UINT16_MAX},
		.extra = {.icmp_type = -1,
			.icmp_code = -1,
			.length = {0, UINT16_MAX},
			.dscp = -1,
			.vlan = -1,
			.fragment = CV_FIREWALL_FRAGMENTS_ALL},
	};
	return rule;
}

void cv_firewall_rules_clear(struct cv_firewall_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->rule[i].name);
	free(rules->rule);
	*rules = (struct cv_firewall_rules){0};
}

// A rule while it is read.
struct reading {
	struct cv_firewall_rule *rule;
	unsigned action;
	const char *name;
	bool has_ports;
	struct cv_firewall_extra extra;
};

static int read_prefix(
	const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	struct cv_firewall_rule *rule = ((struct reading *)target)->rule;
	struct cv_prefix *prefix = key[0] == 's' ? &rule->src : &rule->dst;
	const char *text = json_string_value(value);
	char fixed[CV_PREFIX_TEXT];
	uint8_t family;
	int rc;

	if (text == NULL)
		return cv_where_wrong(at, key, value, "must be a string");
	rc = cv_prefix_parse(text, prefix);
	if (rc == -EDOM) {
		cv_prefix_mask(prefix);
		return cv_where_wrong(at, key, value, "host bits are set; write \"%s\"",
			cv_prefix_text(prefix, fixed));
	}
	if (rc != 0)
		return cv_where_wrong(at, key, value,
			"write a prefix like \"192.0.2.0/24\" or \"2001:db8::/32\"");
	family = prefix->address.v6 ? 6 : 4;
	if (rule->family != 0 && rule->family != family)
		return cv_where_wrong(
			at, key, value, "src and dst must both be IPv4 or both be IPv6");
	rule->family = family;
	return 0;
}

static int read_proto(const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	static const struct {
		const char *name;
		uint8_t number;
	} names[] = {
		{"tcp", 6},
		{"udp", 17},
		{"icmp", 1},
		{"icmpv6", 58},
		{"sctp", 132},
		{"dccp", 33},
		{"udplite", 136},
	};
	struct cv_firewall_rule *rule = ((struct reading *)target)->rule;
	const char *text = json_string_value(value);

	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
		json_integer_value(value) <= UINT8_MAX) {
		rule->proto = (int16_t)json_integer_value(value);
		return 0;
	}
	for (size_t i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i].name) == 0) {
			rule->proto = names[i].number;
			return 0;
		}
	}
	return cv_where_wrong(at, key, value,
		"write tcp, udp, icmp, icmpv6, sctp, dccp, udplite or a number from 0 to 255");
}

static int read_ports(const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	struct reading *reading = target;

	reading->has_ports = true;
	return cv_firewall_range_read(at, key, value,
		"write a port, 80, or a range, \"1000-2000\", up to 65535",
		key[0] == 's' ? &reading->rule->sport : &reading->rule->dport);
}

static int read_rule(
	const struct cv_where *at, const json_t *object, struct cv_firewall_rule *rule, bool flows)
{
	static const char *const actions[] = {"deny", "allow", NULL};
	static const struct cv_param params[] = {
		{"action", CV_WORD, CV_AT(struct reading, action), .words = actions,
			.required = true},
		{"src", CV_CUSTOM, .read = read_prefix},
		{"dst", CV_CUSTOM, .read = read_prefix},
		{"proto", CV_CUSTOM, .read = read_proto},
		{"sport", CV_CUSTOM, .read = read_ports},
		{"dport", CV_CUSTOM, .read = read_ports},
		{NULL, CV_PARAMS, CV_AT(struct reading, extra), .params = cv_firewall_extra_params},
		{"name", CV_TEXT, CV_AT(struct reading, name)},
		{0},
	};
	struct reading reading = {.rule = rule, .extra = rule->extra};

	if (cv_params_read(at, object, params, &reading) != 0)
		return -EINVAL;
	rule->allow = reading.action == 1;
	if (reading.has_ports && rule->proto >= 0 && !cv_proto_has_ports((uint8_t)rule->proto))
		return cv_where_error(at,
			"protocol %d has no ports; leave out sport and dport, or write proto tcp, "
			"udp, sctp, dccp or udplite",
			rule->proto);
	rule->extra = reading.extra;
	if (cv_firewall_extra_check(at, rule, flows) != 0)
		return -EINVAL;
	if (reading.name != NULL && (rule->name = strdup(reading.name)) == NULL)
		return -ENOMEM;
	return 0;
}

int cv_firewall_rules_add(struct cv_firewall_rules *rules, const json_t *array, const char *name,
	struct cv_error *error)
{
	const struct cv_where top = cv_where_top(name, error);
	const json_t *object;
	size_t index;

	json_array_foreach (array, index, object) {
		const struct cv_where at = cv_where_item(&top, "rules", index);
		struct cv_firewall_rule *rule = cv_firewall_rules_append(rules);
		int rc;

		if (rule == NULL) {
			cv_where_error(&at, "no memory for so many rules");
			return -ENOMEM;
		}
		rc = read_rule(&at, object, rule, rules->flows);
		if (rc != 0)
			return rc;
	}
	return 0;
}

void cv_firewall_rules_in_words(const struct cv_firewall_rules *rules,
	const struct cv_nf_because *because, char *words, size_t room)
{
	const size_t index = because->row - 2u;

	if (because->row == 1)
		snprintf(words, room, "no rule");
	else if (index < rules->count && rules->rule[index].name != NULL)
		snprintf(words, room, "rule %zu (%s)", index + 1, rules->rule[index].name);
	else
		snprintf(words, room, "rule %zu", index + 1);
}
