// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// flows: who sends to whom, and how many of them there are.
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/spec/parts.h"
#include "packet/ether.h"

static int read_range(const struct cv_where *at, const char *key, const json_t *value, int family,
	uint64_t max, struct gen_range *range, const char *fix)
{
	char number[24];
	const char *text = json_string_value(value);

	if (text == NULL && json_is_integer(value) && json_integer_value(value) >= 0) {
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)json_integer_value(value));
		text = number;
	}
	if (text == NULL || !gen_range_parse(text, family, max, range))
		return cv_where_wrong(at, key, value, "%s", fix);
	return 0;
}

static int read_port_range(
	const struct cv_where *at, const char *key, const json_t *value, void *range)
{
	return read_range(at, key, value, 0, 65535, range,
		"must be a port (53) or a range (\"1024-2047\") within 0-65535");
}

static int read_vlan(const struct cv_where *at, const char *key, const json_t *value, void *range)
{
	return read_range(at, key, value, 0, 4094, range,
		"must be a VLAN id (100) or a range (\"100-199\") within 0-4094");
}

static int read_address(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct gen_flows *flows = of;

	return read_range(at, key, value, flows->ip == 6 ? AF_INET6 : AF_INET, 0,
		key[0] == 's' ? &flows->src_ip : &flows->dst_ip,
		flows->ip == 6 ? "must be an IPv6 address, A-B, or a prefix of /96 or longer"
			       : "must be an IPv4 address, \"10.0.0.1-10.0.0.9\" or "
				 "\"10.0.0.0/24\" (for IPv6 set flows.ip to 6)");
}

int gen_spec_mac(const struct cv_where *at, const char *key, const json_t *value, void *mac)
{
	if (json_is_string(value) && cv_mac_parse(json_string_value(value), mac))
		return 0;
	return cv_where_wrong(at, key, value, "must be a MAC address like 02:00:00:00:00:01");
}

static int read_protocol(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	enum gen_l4 *protocol = of;
	const char *text = json_string_value(value);

	if (text != NULL && strcmp(text, "udp") == 0)
		*protocol = GEN_UDP;
	else if (text != NULL && strcmp(text, "tcp") == 0)
		*protocol = GEN_TCP;
	else
		return cv_where_wrong(at, key, value, "must be \"udp\" or \"tcp\"");
	return 0;
}

static int read_ip(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	uint32_t *ip = of;

	*ip = (uint32_t)json_integer_value(value);
	return *ip == 4 || *ip == 6 ? 0 : cv_where_wrong(at, key, value, "must be 4 or 6");
}

static const char *const orders[] = {"sequential", "shuffle", NULL};
static const char *const written[] = {"before", "sending", NULL};

#define AT(member) CV_AT(struct gen_flows, member)

const struct cv_param gen_flows_params[] = {
	{"count", CV_INTEGER, AT(count), .low = 1, .high = 1 << 24, .fallback = 1},
	{"order", CV_WORD, AT(shuffle), .words = orders},
	{"written", CV_WORD, AT(written_sending), .words = written},
	{"first", CV_INTEGER, AT(first), .high = 1 << 24},
	{"ip", CV_CUSTOM, AT(ip), .read = read_ip},
	{"protocol", CV_CUSTOM, AT(protocol), .read = read_protocol},
	{"src_mac", CV_CUSTOM, AT(src_mac), .read = gen_spec_mac},
	{"dst_mac", CV_CUSTOM, AT(dst_mac), .read = gen_spec_mac},
	{"vlan", CV_CUSTOM, AT(vlan), .read = read_vlan},
	{"src_ip", CV_CUSTOM, .read = read_address},
	{"dst_ip", CV_CUSTOM, .read = read_address},
	{"src_port", CV_CUSTOM, AT(src_port), .read = read_port_range},
	{"dst_port", CV_CUSTOM, AT(dst_port), .read = read_port_range},
	{0},
};
