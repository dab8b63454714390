// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plan_next_hop.h"
#include "chain/classify.h"
#include "daemon/plan_dictionary.h"

// The index of a port, or -EINVAL.
static int find_port(const struct cv_where *at, const char *key, const char *name,
	const char *const *ports, unsigned ports_count)
{
	for (unsigned i = 0; i < ports_count; i++)
		if (strcmp(ports[i], name) == 0)
			return (int)i;
	return cv_where_error(
		at, "%s%sno port is called \"%.64s\"", key, key[0] != '\0' ? ": " : "", name);
}

static int read_address(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_convoy_address *to = of;
	const char *text = json_string_value(value);

	if (text != NULL && inet_pton(AF_INET, text, to->bytes) == 1)
		to->len = 4;
	else if (text != NULL && inet_pton(AF_INET6, text, to->bytes) == 1)
		to->len = 16;
	else
		return cv_where_wrong(at, key, value, "must be an IPv4 or IPv6 address");
	return 0;
}

int cv_plan_scid_read(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct keys {
		int32_t vlan, vni; // -1: not given
	} keys;
	static const struct cv_param params[] = {
		{"vlan", CV_INTEGER, CV_AT(struct keys, vlan), .high = 4095, .fallback = -1},
		{"vni", CV_INTEGER, CV_AT(struct keys, vni), .high = CV_VNI_MAX, .fallback = -1},
		{0},
	};
	const struct cv_where here = key[0] != '\0' ? cv_where_key(at, key) : *at;
	struct cv_plan_scid *to = of;

	if (cv_params_read(&here, value, params, &keys) != 0)
		return -EINVAL;
	if (keys.vlan >= 0 && keys.vni >= 0)
		return cv_where_error(&here, "vlan and vni: give one of them");
	*to = (struct cv_plan_scid){CV_SCID_NONE, 0};
	if (keys.vlan >= 0)
		*to = (struct cv_plan_scid){CV_SCID_VLAN, (uint32_t)keys.vlan};
	if (keys.vni >= 0)
		*to = (struct cv_plan_scid){CV_SCID_VNI, (uint32_t)keys.vni};
	return 0;
}

struct convoys_keys {
	const char *port;
	enum cv_plan_codec expand;
	struct cv_plan_convoys convoys;
};

static int read_sender(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_plan_convoys *to = of;

	return read_address(at, key, value, &to->senders[to->senders_count++]);
}

int cv_plan_convoys_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, struct cv_plan_convoys *to)
{
	static const struct cv_param params[] = {
		{"port", CV_TEXT, CV_AT(struct convoys_keys, port), .required = true},
		{"udp_port", CV_INTEGER, CV_AT(struct convoys_keys, convoys.udp_port), .low = 1,
			.high = UINT16_MAX, .fallback = CV_CONVOY_PORT},
		{"ip", CV_CUSTOM, CV_AT(struct convoys_keys, convoys.address),
			.read = read_address},
		{"from", CV_EACH, CV_AT(struct convoys_keys, convoys), .low = 1,
			.high = CV_CONVOY_SENDERS_MAX, .read = read_sender},
		{"reassemble", CV_BOOL, CV_AT(struct convoys_keys, convoys.reassemble)},
		{"expand", CV_WORD, CV_AT(struct convoys_keys, expand), .words = cv_plan_codecs},
		{"dictionaries", CV_EACH, CV_AT(struct convoys_keys, convoys.expander), .low = 1,
			.high = CV_DICTIONARIES_MAX - 1, .read = cv_plan_dictionary_add},
		{0},
	};
	struct convoys_keys keys = {.convoys = {.carries = true}};
	int port;

	if (cv_params_read(at, object, params, &keys) != 0 ||
		cv_plan_expander_set(at, keys.expand, &keys.convoys.expander) != 0)
		goto refused;
	port = find_port(at, "port", keys.port, ports, ports_count);
	if (port < 0)
		goto refused;
	if (to[port].carries) {
		cv_where_error(at, "port: \"%s\" is there twice", ports[port]);
		goto refused;
	}
	to[port] = keys.convoys;
	return 0;
refused:
	cv_plan_convoys_free(&keys.convoys);
	return -EINVAL;
}

void cv_plan_convoys_free(struct cv_plan_convoys *convoys)
{
	for (unsigned i = 0; i < convoys->expander.dictionaries_count; i++)
		cv_dictionary_release(convoys->expander.dictionaries[i]);
	convoys->expander = (struct cv_expander){0};
}

#define WAIT_NS_MAX 1000000

struct next_hop_keys {
	const char *const *ports; // of the plan
	unsigned ports_count;
	const char *name, *port;
	const json_t *match;
	uint8_t leaving[CV_PORTS_MAX]; // ports
	unsigned leaving_count;
	struct cv_convoy_address ip;
	int32_t vlan; // -1: none
	uint16_t udp_port; // 0: its port's
	struct cv_outer_config outer;
	uint32_t wait_ns;
	uint16_t weight;
	enum spread { BY_FLOW, BY_ADDRESSES } spread;
	enum cv_plan_codec compress;
	struct cv_dictionary *dictionary;
};

static int read_leaving(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct next_hop_keys *keys = of;
	int port;

	if (!json_is_string(value))
		return cv_where_wrong(at, key, value, "give the name of a port");
	port = find_port(at, key, json_string_value(value), keys->ports, keys->ports_count);
	if (port < 0)
		return -EINVAL;
	keys->leaving[keys->leaving_count++] = (uint8_t)port;
	return 0;
}

static const char *const spreads[] = {[BY_FLOW] = "flow", [BY_ADDRESSES] = "addresses", NULL};

static const struct cv_param next_hop_params[] = {
	{"name", CV_TEXT, CV_AT(struct next_hop_keys, name), .high = CV_NEXT_HOP_NAME_MAX - 1,
		.required = true},
	{"port", CV_TEXT, CV_AT(struct next_hop_keys, port), .required = true},
	{"leaving", CV_EACH, .low = 1, .high = CV_PORTS_MAX, .read = read_leaving},
	{"match", CV_LIST, CV_AT(struct next_hop_keys, match), .high = CV_NEXT_HOP_KEYS_MAX,
		.required = true},
	{"mac", CV_MAC, CV_AT(struct next_hop_keys, outer.dst_mac), .required = true},
	{"ip", CV_CUSTOM, CV_AT(struct next_hop_keys, ip), .required = true, .read = read_address},
	{"nfi", CV_INTEGER, CV_AT(struct next_hop_keys, outer.nfi), .high = UINT16_MAX},
	{"mtu", CV_INTEGER, CV_AT(struct next_hop_keys, outer.mtu), .low = CV_OUTER_MTU_MIN,
		.high = CV_OUTER_MTU_MAX, .fallback = CV_CONVOY_MTU},
	{"udp_port", CV_INTEGER, CV_AT(struct next_hop_keys, udp_port), .low = 1,
		.high = UINT16_MAX},
	{"source_port", CV_INTEGER, CV_AT(struct next_hop_keys, outer.sport), .high = UINT16_MAX},
	{"ttl", CV_INTEGER, CV_AT(struct next_hop_keys, outer.ttl), .low = 1, .high = UINT8_MAX,
		.fallback = CV_CONVOY_TTL},
	{"vlan", CV_INTEGER, CV_AT(struct next_hop_keys, vlan), .high = 4095, .fallback = -1},
	{"wait_ns", CV_INTEGER, CV_AT(struct next_hop_keys, wait_ns), .high = WAIT_NS_MAX},
	{"weight", CV_INTEGER, CV_AT(struct next_hop_keys, weight), .low = 1,
		.high = CV_SPREAD_WEIGHT_MAX, .fallback = 1},
	{"spread", CV_WORD, CV_AT(struct next_hop_keys, spread), .words = spreads},
	{"encapsulate", CV_BOOL, CV_AT(struct next_hop_keys, outer.encapsulate)},
	{"fragment", CV_BOOL, CV_AT(struct next_hop_keys, outer.fragment)},
	{"compress", CV_WORD, CV_AT(struct next_hop_keys, compress), .words = cv_plan_codecs},
	{"dictionary", CV_CUSTOM, CV_AT(struct next_hop_keys, dictionary),
		.read = cv_plan_dictionary_read},
	{0},
};

// Each SC-ID by each port that packets would leave by.
static int make_keys(
	const struct cv_where *at, const struct next_hop_keys *keys, struct cv_plan_next_hop *to)
{
	const size_t count = json_array_size(keys->match);

	to->keys = calloc(count * keys->leaving_count, sizeof(*to->keys));
	if (to->keys == NULL) {
		cv_where_error(at, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		const struct cv_where here = cv_where_item(at, "match", i);
		struct cv_plan_scid scid;

		if (cv_plan_scid_read(&here, "", json_array_get(keys->match, i), &scid) != 0)
			return -EINVAL;
		for (unsigned j = 0; j < keys->leaving_count; j++)
			to->keys[to->keys_count++] =
				cv_next_hop_key(keys->leaving[j], scid.kind, scid.id);
	}
	return 0;
}

static void make_outer(const struct next_hop_keys *keys, const struct cv_plan_convoys *port,
	struct cv_outer_config *to)
{
	*to = keys->outer;
	to->version = keys->ip.len == 4 ? 4 : 6;
	to->port = keys->udp_port != 0 ? keys->udp_port : port->udp_port;
	memcpy(to->dst, keys->ip.bytes, sizeof(to->dst));
	memcpy(to->src, port->address.bytes, sizeof(to->src));
	if (keys->vlan >= 0) {
		to->vlans = 1;
		to->vlan[0] = (struct cv_outer_vlan){.type = 0x8100, .tci = (uint16_t)keys->vlan};
	}
}

// What the keys say beyond their own values. 0 or -EINVAL.
static int check(const struct cv_where *at, const struct next_hop_keys *keys, int port,
	const struct cv_plan_convoys *convoys)
{
	if (!convoys[port].carries || convoys[port].address.len == 0)
		return cv_where_error(at,
			"port: \"%s\" does not send convoys; give it convoys with an ip",
			keys->ports[port]);
	if (keys->ip.len != convoys[port].address.len)
		return cv_where_error(at,
			"ip: its port has no IPv%d address to send convoys from; give the port's "
			"convoys one",
			keys->ip.len == 4 ? 4 : 6);
	if (keys->outer.fragment && keys->compress != CV_PLAN_CODEC_OFF)
		return cv_where_error(
			at, "fragment: is not for compressed convoys; leave out compress");
	return 0;
}

int cv_plan_next_hop_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, const struct cv_plan_convoys *convoys, struct cv_plan_next_hop *to)
{
	struct next_hop_keys keys = {.ports = ports, .ports_count = ports_count};
	int port, rc;

	memset(to, 0, sizeof(*to));
	rc = cv_params_read(at, object, next_hop_params, &keys);
	to->dictionary = keys.dictionary;
	if (rc != 0 || (rc = port = find_port(at, "port", keys.port, ports, ports_count)) < 0 ||
		(rc = check(at, &keys, port, convoys)) != 0 ||
		(rc = cv_plan_compress_set(at, keys.compress, &to->dictionary)) != 0)
		goto refused;
	if (keys.leaving_count == 0)
		keys.leaving[keys.leaving_count++] = (uint8_t)port;
	strcpy(to->name, keys.name);
	to->port = (uint8_t)port;
	to->wait_ns = keys.wait_ns;
	to->weight = keys.weight;
	to->by_addresses = keys.spread == BY_ADDRESSES;
	make_outer(&keys, &convoys[port], &to->outer);
	rc = make_keys(at, &keys, to);
	if (rc == 0)
		return 0;
refused:
	cv_plan_next_hop_free(to);
	return rc;
}

void cv_plan_next_hop_free(struct cv_plan_next_hop *next_hop)
{
	free(next_hop->keys);
	next_hop->keys = NULL;
	next_hop->keys_count = 0;
	cv_dictionary_release(next_hop->dictionary);
	next_hop->dictionary = NULL;
	cv_compressor_free(next_hop->compressor);
	next_hop->compressor = NULL;
}
