// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/firewall/rules.h"
#include "nf/config.h"
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
		.proto = -1, .sport = {0, UINT16_MAX}, .dport = {0, UINT16_MAX}};
	return rule;
}

void cv_firewall_rules_clear(struct cv_firewall_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->rule[i].name);
	free(rules->rule);
	*rules = (struct cv_firewall_rules){0};
}

static int parse_prefix(const json_t *object, const char *key, const char *where,
	struct cv_prefix *prefix, uint8_t *family, struct cv_error *error)
{
	char fixed[CV_PREFIX_TEXT];
	const char *text = NULL;
	uint8_t found;
	int rc;

	if (cv_config_string(object, key, where, &text, error) != 0)
		return -EINVAL;
	if (text == NULL)
		return 0;
	rc = cv_prefix_parse(text, prefix);
	if (rc == -EDOM) {
		cv_prefix_mask(prefix);
		cv_error_set(error, "%s: %s is \"%s\": host bits are set; write \"%s\"", where, key,
			text, cv_prefix_text(prefix, fixed));
		return -EINVAL;
	}
	if (rc != 0) {
		cv_error_set(error,
			"%s: %s is \"%s\"; write a prefix like \"192.0.2.0/24\" or "
			"\"2001:db8::/32\"",
			where, key, text);
		return -EINVAL;
	}
	found = prefix->address.v6 ? 6 : 4;
	if (*family != 0 && *family != found) {
		cv_error_set(error,
			"%s: %s is \"%s\"; src and dst must both be IPv4 or both be IPv6", where,
			key, text);
		return -EINVAL;
	}
	*family = found;
	return 0;
}

static int parse_proto(
	const json_t *object, const char *where, int16_t *proto, struct cv_error *error)
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
	const char *text = NULL;
	int64_t number = -1;

	if (json_is_integer(json_object_get(object, "proto"))) {
		if (cv_config_integer(object, "proto", where, 0, 255, &number, error) != 0)
			return -EINVAL;
		*proto = (int16_t)number;
		return 0;
	}
	if (cv_config_string(object, "proto", where, &text, error) != 0)
		return -EINVAL;
	if (text == NULL)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i].name) == 0) {
			*proto = names[i].number;
			return 0;
		}
	}
	cv_error_set(error,
		"%s: proto is \"%s\"; write tcp, udp, icmp, icmpv6, sctp, dccp, udplite "
		"or a number from 0 to 255",
		where, text);
	return -EINVAL;
}

// A decimal number up to 65535 that is all of text. Returns -1 if it is not.
static int port_number(const char *text, size_t length)
{
	int value = 0;

	if (length < 1 || length > 5)
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + (text[i] - '0');
	}
	return value <= UINT16_MAX ? value : -1;
}

static int parse_ports(const json_t *object, const char *key, const char *where,
	struct cv_firewall_ports *ports, struct cv_error *error)
{
	const char *text = NULL, *dash;
	int64_t number = -1;
	int first, last;

	if (json_is_integer(json_object_get(object, key))) {
		if (cv_config_integer(object, key, where, 0, UINT16_MAX, &number, error) != 0)
			return -EINVAL;
		*ports = (struct cv_firewall_ports){(uint16_t)number, (uint16_t)number};
		return 0;
	}
	if (cv_config_string(object, key, where, &text, error) != 0)
		return -EINVAL;
	if (text == NULL)
		return 0;
	dash = strchr(text, '-');
	first = port_number(text, dash != NULL ? (size_t)(dash - text) : strlen(text));
	last = dash != NULL ? port_number(dash + 1, strlen(dash + 1)) : first;
	if (first < 0 || last < 0) {
		cv_error_set(error,
			"%s: %s is \"%s\"; write a port, 80, or a range, \"1000-2000\", up to "
			"65535",
			where, key, text);
		return -EINVAL;
	}
	if (first > last) {
		cv_error_set(error, "%s: %s is \"%s\": the range runs backwards; write \"%d-%d\"",
			where, key, text, last, first);
		return -EINVAL;
	}
	*ports = (struct cv_firewall_ports){(uint16_t)first, (uint16_t)last};
	return 0;
}

static int parse_action(
	const json_t *object, const char *where, bool *allow, struct cv_error *error)
{
	const char *text = "(absent)";

	if (cv_config_string(object, "action", where, &text, error) != 0)
		return -EINVAL;
	*allow = strcmp(text, "allow") == 0;
	if (*allow || strcmp(text, "deny") == 0)
		return 0;
	cv_error_set(error, "%s: action: \"%s\": must be allow or deny", where, text);
	return -EINVAL;
}

static int parse_rule(struct cv_firewall_rule *rule, const json_t *object, const char *where,
	struct cv_error *error)
{
	static const char *const known[] = {
		"action", "src", "dst", "proto", "sport", "dport", "name", NULL};
	const char *name = NULL;

	if (cv_config_keys(object, known, where, error) != 0 ||
		parse_action(object, where, &rule->allow, error) != 0 ||
		parse_prefix(object, "src", where, &rule->src, &rule->family, error) != 0 ||
		parse_prefix(object, "dst", where, &rule->dst, &rule->family, error) != 0 ||
		parse_proto(object, where, &rule->proto, error) != 0 ||
		parse_ports(object, "sport", where, &rule->sport, error) != 0 ||
		parse_ports(object, "dport", where, &rule->dport, error) != 0 ||
		cv_config_string(object, "name", where, &name, error) != 0)
		return -EINVAL;
	if (rule->proto >= 0 && !cv_proto_has_ports((uint8_t)rule->proto) &&
		(json_object_get(object, "sport") != NULL ||
			json_object_get(object, "dport") != NULL)) {
		cv_error_set(error,
			"%s: protocol %d has no ports; leave out sport and dport, or write proto "
			"tcp, "
			"udp, sctp, dccp or udplite",
			where, rule->proto);
		return -EINVAL;
	}
	if (name != NULL && (rule->name = strdup(name)) == NULL)
		return -ENOMEM;
	return 0;
}

int cv_firewall_rules_add(struct cv_firewall_rules *rules, const json_t *array, const char *name,
	struct cv_error *error)
{
	struct cv_firewall_rule *rule;
	const json_t *object;
	char where[128];
	size_t index;
	int rc;

	json_array_foreach (array, index, object) {
		snprintf(where, sizeof(where), "%s: rules[%zu]", name, index);
		rule = cv_firewall_rules_append(rules);
		if (rule == NULL) {
			cv_error_set(error, "%s: no memory for so many rules", where);
			return -ENOMEM;
		}
		rc = parse_rule(rule, object, where, error);
		if (rc != 0)
			return rc;
	}
	return 0;
}
