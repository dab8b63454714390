// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// convoys: how many packets are aggregated, and in what header.
#include <arpa/inet.h>
#include <string.h>

#include "convoy/outer.h"
#include "gen/spec/parts.h"
#include "packet/ether.h"

static int read_convoy_address(struct gen_reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &gen_spec_of(reader)->convoy_outer;
	const char *text = json_string_value(value);
	const int family = text != NULL && strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	const uint8_t version = family == AF_INET6 ? 6 : 4;

	if (text == NULL || inet_pton(family, text, key[0] == 's' ? outer->src : outer->dst) != 1)
		return gen_fields_wrong(reader, key, value, "must be an IPv4 or IPv6 address");
	if (key[0] == 'd' && version != outer->version)
		return gen_fields_wrong(
			reader, key, value, "src and dst must be of one kind, IPv4 or IPv6");
	outer->version = version;
	return 0;
}

static int read_convoy_mac(struct gen_reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &gen_spec_of(reader)->convoy_outer;

	if (!json_is_string(value) || !cv_mac_parse(json_string_value(value),
					      key[0] == 's' ? outer->src_mac : outer->dst_mac))
		return gen_fields_wrong(
			reader, key, value, "must be a MAC address like 02:00:00:00:00:01");
	return 0;
}

// A number that is kept in 16 bits.
static int read_convoy_number(struct gen_reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &gen_spec_of(reader)->convoy_outer;
	const bool mtu = strcmp(key, "mtu") == 0;
	const struct gen_field bounds = {.key = key,
		.type = GEN_UNSIGNED,
		.min = mtu                       ? CV_OUTER_MTU_MIN
		       : strcmp(key, "nfi") == 0 ? 0
						 : 1,
		.max = mtu ? CV_OUTER_MTU_MAX : 65535};
	double number;

	if (gen_fields_number(reader, &bounds, value, &number) < 0)
		return -1;
	*(mtu                             ? &outer->mtu
		: strcmp(key, "nfi") == 0 ? &outer->nfi
					  : &outer->port) = (uint16_t)number;
	return 0;
}

int gen_spec_convoys(struct gen_reader *reader, const char *key, json_t *value)
{
	static const struct gen_field number = {
		"convoys", GEN_UNSIGNED, 0, 1, CV_CONVOY_PACKETS_MAX, NULL};
	static const struct gen_field fields[] = {
		{"packets", GEN_UNSIGNED, GEN_SPEC_AT(convoy_packets), 1, CV_CONVOY_PACKETS_MAX,
			NULL},
		{"src_mac", GEN_CUSTOM, 0, 0, 0, read_convoy_mac},
		{"dst_mac", GEN_CUSTOM, 0, 0, 0, read_convoy_mac},
		{"src", GEN_CUSTOM, 0, 0, 0, read_convoy_address},
		{"dst", GEN_CUSTOM, 0, 0, 0, read_convoy_address},
		{"port", GEN_CUSTOM, 0, 0, 0, read_convoy_number},
		{"nfi", GEN_CUSTOM, 0, 0, 0, read_convoy_number},
		{"mtu", GEN_CUSTOM, 0, 0, 0, read_convoy_number},
		{0},
	};
	double packets;

	if (json_is_object(value)) {
		if (gen_fields_read(reader, key, value, fields) < 0)
			return -1;
		if (gen_spec_of(reader)->convoy_packets == 0)
			return gen_fields_wrong(reader, key, value, "needs \"packets\"");
		return 0;
	}
	if (!json_is_integer(value))
		return gen_fields_wrong(reader, key, value,
			"must be how many packets a convoy has (22), or {\"packets\": 22, …}");
	if (gen_fields_number(reader, &number, value, &packets) < 0)
		return -1;
	gen_spec_of(reader)->convoy_packets = (uint32_t)packets;
	return 0;
}
