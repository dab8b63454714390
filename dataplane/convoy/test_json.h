// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests: frames and outer headers as the golden vectors write them, in JSON.
#ifndef CV_TEST_JSON_H
#define CV_TEST_JSON_H

#include <arpa/inet.h>
#include <stdlib.h>

#include <jansson.h>

#include "convoy/outer.h"
#include "packet/ether.h"

// The bytes, in memory of their own size, so that a read behind them is found by the sanitizer.
// The caller frees them. NULL: not pairs of hexadecimal digits.
static inline uint8_t *hex_bytes(const char *text, size_t *len)
{
	size_t n = strlen(text);
	uint8_t *bytes = malloc(n / 2 + (n < 2));

	*len = n / 2;
	for (size_t i = 0; i < n / 2; i++) {
		unsigned value;

		if (sscanf(text + 2 * i, "%2x", &value) != 1) {
			free(bytes);
			return NULL;
		}
		bytes[i] = (uint8_t)value;
	}
	return bytes;
}

// What is not there is "" and 0.
static inline const char *json_text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value != NULL ? value : "";
}

static inline unsigned json_number(const json_t *object, const char *key)
{
	return (unsigned)json_integer_value(json_object_get(object, key));
}

// The next hop of an object with "outer" and "nfi". False: an address that is none.
static inline bool json_outer(struct cv_outer_config *config, const json_t *object)
{
	const json_t *outer = json_object_get(object, "outer");
	const json_t *vlan;
	size_t i;
	int family = strchr(json_text(outer, "src"), ':') != NULL ? AF_INET6 : AF_INET;

	memset(config, 0, sizeof(*config));
	config->version = family == AF_INET ? 4 : 6;
	json_array_foreach (json_object_get(outer, "vlans"), i, vlan) {
		if (i >= CV_OUTER_VLANS_MAX)
			return false;
		config->vlan[i].type = json_number(vlan, "type");
		config->vlan[i].tci = json_number(vlan, "tci");
		config->vlans++;
	}
	config->tos = json_number(outer, "tos");
	config->ttl = json_number(outer, "ttl");
	config->port = json_number(outer, "port");
	config->sport = json_number(outer, "source_port");
	config->mtu = json_number(outer, "mtu");
	config->nfi = json_number(object, "nfi");
	return cv_mac_parse(json_text(outer, "dst_mac"), config->dst_mac) &&
	       cv_mac_parse(json_text(outer, "src_mac"), config->src_mac) &&
	       inet_pton(family, json_text(outer, "src"), config->src) == 1 &&
	       inet_pton(family, json_text(outer, "dst"), config->dst) == 1;
}

#endif
