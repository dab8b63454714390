// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// convoys: how many packets are aggregated, and in what header.
#include <arpa/inet.h>
#include <string.h>

#include "convoy/outer.h"
#include "gen/spec/parts.h"

static int read_address(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_outer_config *outer = &((struct gen_spec *)of)->convoy_outer;
	const char *text = json_string_value(value);
	const int family = text != NULL && strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	const uint8_t version = family == AF_INET6 ? 6 : 4;

	if (text == NULL || inet_pton(family, text, key[0] == 's' ? outer->src : outer->dst) != 1)
		return cv_where_wrong(at, key, value, "must be an IPv4 or IPv6 address");
	if (key[0] == 'd' && version != outer->version)
		return cv_where_wrong(
			at, key, value, "src and dst must be of one kind, IPv4 or IPv6");
	outer->version = version;
	return 0;
}

#define OUTER_AT(member) CV_AT(struct gen_spec, convoy_outer.member)

static const struct cv_param params[] = {
	{"packets", CV_INTEGER, CV_AT(struct gen_spec, convoy_packets), .low = 1,
		.high = CV_CONVOY_PACKETS_MAX, .required = true},
	{"src_mac", CV_CUSTOM, OUTER_AT(src_mac), .read = gen_spec_mac},
	{"dst_mac", CV_CUSTOM, OUTER_AT(dst_mac), .read = gen_spec_mac},
	{"src", CV_CUSTOM, .read = read_address},
	{"dst", CV_CUSTOM, .read = read_address},
	{"port", CV_INTEGER, OUTER_AT(port), .low = 1, .high = UINT16_MAX},
	{"nfi", CV_INTEGER, OUTER_AT(nfi), .high = UINT16_MAX},
	{"mtu", CV_INTEGER, OUTER_AT(mtu), .low = CV_OUTER_MTU_MIN, .high = CV_OUTER_MTU_MAX},
	{0},
};

int gen_spec_convoys(const struct cv_where *at, const char *key, const json_t *value, void *spec)
{
	static const struct cv_param packets = {"convoys", CV_INTEGER,
		CV_AT(struct gen_spec, convoy_packets), .low = 1, .high = CV_CONVOY_PACKETS_MAX};
	const struct cv_where here = cv_where_key(at, key);

	if (json_is_object(value))
		return cv_params_read(&here, value, params, spec);
	if (json_is_integer(value))
		return cv_param_read(at, &packets, value, spec);
	return cv_where_wrong(at, key, value,
		"must be how many packets a convoy has (22), or {\"packets\": 22, …}");
}
