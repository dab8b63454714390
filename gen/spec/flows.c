// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// flows: who sends to whom, and how many of them there are.
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/spec/parts.h"
#include "gen/spec/range.h"

static int read_range(struct gen_reader *reader, const char *key, json_t *value, int family,
	uint64_t max, struct gen_range *range, const char *fix)
{
	char number[24];
	const char *text = json_string_value(value);

	if (text == NULL && json_is_integer(value) && json_integer_value(value) >= 0) {
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)json_integer_value(value));
		text = number;
	}
	if (text == NULL || !gen_range_parse(text, family, max, range))
		return gen_fields_wrong(reader, key, value, fix);
	return 0;
}

static int read_port_range(struct gen_reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &gen_spec_of(reader)->flows;

	return read_range(reader, key, value, 0, 65535,
		key[0] == 's' ? &flows->src_port : &flows->dst_port,
		"must be a port (53) or a range (\"1024-2047\") within 0-65535");
}

static int read_vlan(struct gen_reader *reader, const char *key, json_t *value)
{
	gen_spec_of(reader)->flows.tagged = true;
	return read_range(reader, key, value, 0, 4094, &gen_spec_of(reader)->flows.vlan,
		"must be a VLAN id (100) or a range (\"100-199\") within 0-4094");
}

static int read_address(struct gen_reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &gen_spec_of(reader)->flows;

	return read_range(reader, key, value, flows->ip == 6 ? AF_INET6 : AF_INET, 0,
		key[0] == 's' ? &flows->src_ip : &flows->dst_ip,
		flows->ip == 6 ? "must be an IPv6 address, A-B, or a prefix of /96 or longer"
			       : "must be an IPv4 address, \"10.0.0.1-10.0.0.9\" or "
				 "\"10.0.0.0/24\" (for IPv6 set flows.ip to 6)");
}

static int read_mac(struct gen_reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &gen_spec_of(reader)->flows;
	uint8_t *mac = key[0] == 's' ? flows->src_mac : flows->dst_mac;
	const char *text = json_string_value(value);
	int end = 0;

	if (text == NULL ||
		sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
			&mac[3], &mac[4], &mac[5], &end) != 6 ||
		text[end] != '\0')
		return gen_fields_wrong(
			reader, key, value, "must be a MAC address like 02:00:00:00:00:01");
	return 0;
}

static int read_protocol(struct gen_reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	if (text != NULL && strcmp(text, "udp") == 0)
		gen_spec_of(reader)->flows.protocol = GEN_UDP;
	else if (text != NULL && strcmp(text, "tcp") == 0)
		gen_spec_of(reader)->flows.protocol = GEN_TCP;
	else
		return gen_fields_wrong(reader, key, value, "must be \"udp\" or \"tcp\"");
	return 0;
}

static int read_ip(struct gen_reader *reader, const char *key, json_t *value)
{
	gen_spec_of(reader)->flows.ip = (uint32_t)json_integer_value(value);
	if (gen_spec_of(reader)->flows.ip != 4 && gen_spec_of(reader)->flows.ip != 6)
		return gen_fields_wrong(reader, key, value, "must be 4 or 6");
	return 0;
}

static int read_order(struct gen_reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	gen_spec_of(reader)->flows.shuffle = text != NULL && strcmp(text, "shuffle") == 0;
	if (!gen_spec_of(reader)->flows.shuffle &&
		(text == NULL || strcmp(text, "sequential") != 0))
		return gen_fields_wrong(
			reader, key, value, "must be \"shuffle\" or \"sequential\"");
	return 0;
}

int gen_spec_flows(struct gen_reader *reader, const char *key, json_t *value)
{
	static const struct gen_field fields[] = {
		{"count", GEN_UNSIGNED, GEN_SPEC_AT(flows.count), 1, 1 << 24, NULL},
		{"order", GEN_CUSTOM, 0, 0, 0, read_order},
		{"ip", GEN_CUSTOM, 0, 0, 0, read_ip},
		{"protocol", GEN_CUSTOM, 0, 0, 0, read_protocol},
		{"src_mac", GEN_CUSTOM, 0, 0, 0, read_mac},
		{"dst_mac", GEN_CUSTOM, 0, 0, 0, read_mac},
		{"vlan", GEN_CUSTOM, 0, 0, 0, read_vlan},
		{"src_ip", GEN_CUSTOM, 0, 0, 0, read_address},
		{"dst_ip", GEN_CUSTOM, 0, 0, 0, read_address},
		{"src_port", GEN_CUSTOM, 0, 0, 0, read_port_range},
		{"dst_port", GEN_CUSTOM, 0, 0, 0, read_port_range},
		{0},
	};

	return gen_fields_read(reader, key, value, fields);
}
