// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plan_next_hop.h"
#include "chain/classify.h"
#include "packet/ether.h"

static int read_port(const struct cv_where *at, const json_t *value, const char *const *ports,
	unsigned ports_count, const char *key)
{
	const char *name = json_string_value(value);

	for (unsigned i = 0; name != NULL && i < ports_count; i++)
		if (strcmp(ports[i], name) == 0)
			return (int)i;
	if (name == NULL)
		cv_where_error(at, "%s: give the name of a port", key);
	else
		cv_where_error(at, "%s: no port is called \"%.64s\"", key, name);
	return -EINVAL;
}

// The length of the address, 4 or 16; 0: it is none.
static uint8_t parse_address(const char *text, uint8_t *to)
{
	if (inet_pton(AF_INET, text, to) == 1)
		return 4;
	return inet_pton(AF_INET6, text, to) == 1 ? 16 : 0;
}

// The length of the address, 4 or 16, or -EINVAL.
static int read_address(const struct cv_where *at, const json_t *object, uint8_t *to)
{
	const char *text = cv_json_string(at, object, "ip", NULL);
	uint8_t len;

	if (text == NULL)
		return -EINVAL;
	len = parse_address(text, to);
	if (len > 0)
		return len;
	cv_where_error(at, "ip: \"%.64s\": must be an IPv4 or IPv6 address", text);
	return -EINVAL;
}

// Whose convoys a port takes; a missing key: anybody's.
static int read_senders(const struct cv_where *at, const json_t *object, struct cv_plan_convoys *to)
{
	const json_t *senders, *item;
	size_t i;

	if (json_object_get(object, "from") == NULL)
		return 0;
	senders = cv_json_array(at, object, "from", 1, CV_CONVOY_SENDERS_MAX);
	if (senders == NULL)
		return -EINVAL;
	json_array_foreach (senders, i, item) {
		const char *text = json_string_value(item);

		to->senders[i].len = text != NULL ? parse_address(text, to->senders[i].bytes) : 0;
		if (to->senders[i].len == 0) {
			const struct cv_where here = cv_where_item(at, "from", i);

			cv_where_error(&here, "\"%.64s\": must be an IPv4 or IPv6 address",
				text != NULL ? text : "");
			return -EINVAL;
		}
	}
	to->senders_count = (uint8_t)json_array_size(senders);
	return 0;
}

int cv_plan_convoys_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, struct cv_plan_convoys *to)
{
	static const char *const keys[] = {"port", "udp_port", "ip", "from", NULL};
	int64_t udp_port;
	int port, len = 0;

	if (cv_json_keys(at, object, keys) != 0)
		return -EINVAL;
	port = read_port(at, json_object_get(object, "port"), ports, ports_count, "port");
	if (port < 0 || cv_json_integer(at, object, "udp_port", 1, UINT16_MAX, CV_CONVOY_PORT,
				&udp_port) != 0)
		return -EINVAL;
	if (to[port].carries) {
		cv_where_error(at, "port: \"%s\" is there twice", ports[port]);
		return -EINVAL;
	}
	if (json_object_get(object, "ip") != NULL)
		len = read_address(at, object, to[port].address.bytes);
	if (len < 0 || read_senders(at, object, &to[port]) != 0)
		return -EINVAL;
	to[port].carries = true;
	to[port].udp_port = (uint16_t)udp_port;
	to[port].address.len = (uint8_t)len;
	return port;
}

// One SC-ID: {"vlan": 10}, {"vni": 5000}, or {}: everything else.
static int read_scid(
	const struct cv_where *at, const json_t *match, enum cv_scid_kind *kind, int64_t *id)
{
	static const char *const keys[] = {"vlan", "vni", NULL};

	*kind = CV_SCID_NONE;
	*id = 0;
	if (cv_json_keys(at, match, keys) != 0)
		return -EINVAL;
	if (json_object_size(match) > 1) {
		cv_where_error(at, "vlan and vni: give one of them");
		return -EINVAL;
	}
	if (json_object_get(match, "vlan") != NULL) {
		*kind = CV_SCID_VLAN;
		return cv_json_integer(at, match, "vlan", 0, 4095, -1, id);
	}
	if (json_object_get(match, "vni") != NULL) {
		*kind = CV_SCID_VNI;
		return cv_json_integer(at, match, "vni", 0, CV_VNI_MAX, -1, id);
	}
	return 0;
}

// Each SC-ID by each port that packets would leave by.
static int read_keys(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, struct cv_plan_next_hop *to)
{
	const json_t *matches = cv_json_array(at, object, "match", 1, CV_NEXT_HOP_KEYS_MAX);
	const json_t *leaving = json_object_get(object, "leaving");
	json_t *match;
	size_t i;

	if (matches == NULL)
		return -EINVAL;
	if (leaving != NULL && cv_json_array(at, object, "leaving", 1, CV_PORTS_MAX) == NULL)
		return -EINVAL;
	to->keys = calloc(json_array_size(matches) * (leaving ? json_array_size(leaving) : 1),
		sizeof(*to->keys));
	if (to->keys == NULL)
		return -ENOMEM;
	json_array_foreach (matches, i, match) {
		struct cv_where here = cv_where_item(at, "match", i);
		enum cv_scid_kind kind;
		json_t *name;
		int64_t id;
		size_t j;

		if (read_scid(&here, match, &kind, &id) != 0)
			return -EINVAL;
		if (leaving == NULL)
			to->keys[to->keys_count++] = cv_next_hop_key(to->port, kind, (uint32_t)id);
		json_array_foreach (leaving, j, name) {
			int port = read_port(at, name, ports, ports_count, "leaving");

			if (port < 0)
				return -EINVAL;
			to->keys[to->keys_count++] =
				cv_next_hop_key((uint8_t)port, kind, (uint32_t)id);
		}
	}
	return 0;
}

static int read_outer(const struct cv_where *at, const json_t *object,
	const struct cv_plan_convoys *port, struct cv_outer_config *to)
{
	const char *mac = cv_json_string(at, object, "mac", NULL);
	int64_t nfi, mtu, udp_port, sport, ttl, vlan;
	int len;

	if (mac == NULL)
		return -EINVAL;
	if (!cv_mac_parse(mac, to->dst_mac) || cv_mac_group(to->dst_mac)) {
		cv_where_error(at, "mac: \"%.64s\": must be a unicast MAC address", mac);
		return -EINVAL;
	}
	len = read_address(at, object, to->dst);
	if (len < 0)
		return -EINVAL;
	if (len != port->address.len) {
		cv_where_error(at,
			"ip: its port has no IPv%d address to send convoys from; give the port's "
			"convoys one",
			len == 4 ? 4 : 6);
		return -EINVAL;
	}
	if (cv_json_integer(at, object, "nfi", 0, UINT16_MAX, 0, &nfi) != 0 ||
		cv_json_integer(at, object, "mtu", CV_OUTER_MTU_MIN, CV_OUTER_MTU_MAX,
			CV_CONVOY_MTU, &mtu) != 0 ||
		cv_json_integer(at, object, "udp_port", 1, UINT16_MAX, port->udp_port, &udp_port) !=
			0 ||
		cv_json_integer(at, object, "source_port", 0, UINT16_MAX, 0, &sport) != 0 ||
		cv_json_integer(at, object, "ttl", 1, UINT8_MAX, CV_CONVOY_TTL, &ttl) != 0)
		return -EINVAL;
	if (json_object_get(object, "vlan") != NULL) {
		if (cv_json_integer(at, object, "vlan", 0, 4095, -1, &vlan) != 0)
			return -EINVAL;
		to->vlans = 1;
		to->vlan[0] = (struct cv_outer_vlan){.type = 0x8100, .tci = (uint16_t)vlan};
	}
	to->version = len == 4 ? 4 : 6;
	memcpy(to->src, port->address.bytes, sizeof(to->src));
	to->ttl = (uint8_t)ttl;
	to->port = (uint16_t)udp_port;
	to->sport = (uint16_t)sport;
	to->nfi = (uint16_t)nfi;
	to->mtu = (uint16_t)mtu;
	return 0;
}

int cv_plan_next_hop_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, const struct cv_plan_convoys *convoys, struct cv_plan_next_hop *to)
{
	static const char *const keys[] = {"name", "port", "leaving", "match", "mac", "ip", "nfi",
		"mtu", "udp_port", "source_port", "ttl", "vlan", NULL};
	const char *name;
	int port, rc;

	memset(to, 0, sizeof(*to));
	if (cv_json_keys(at, object, keys) != 0)
		return -EINVAL;
	name = cv_json_string(at, object, "name", NULL);
	if (name == NULL)
		return -EINVAL;
	if (name[0] == '\0' || strlen(name) >= sizeof(to->name)) {
		cv_where_error(at, "name: \"%.64s\": a name has 1 to %d bytes", name,
			(int)sizeof(to->name) - 1);
		return -EINVAL;
	}
	strcpy(to->name, name);
	port = read_port(at, json_object_get(object, "port"), ports, ports_count, "port");
	if (port < 0)
		return -EINVAL;
	to->port = (uint8_t)port;
	if (!convoys[port].carries || convoys[port].address.len == 0) {
		cv_where_error(at, "port: \"%s\" does not send convoys; give it convoys with an ip",
			ports[port]);
		return -EINVAL;
	}
	rc = read_outer(at, object, &convoys[port], &to->outer);
	if (rc == 0)
		rc = read_keys(at, object, ports, ports_count, to);
	if (rc != 0)
		cv_plan_next_hop_free(to);
	return rc;
}

int cv_plan_next_hop_parse(const char *text, const char *const *ports, unsigned ports_count,
	const struct cv_plan_convoys *convoys, struct cv_plan_next_hop *to, struct cv_error *error)
{
	const struct cv_where at = cv_where_top("next hop", error);
	const size_t length = strnlen(text, CV_NEXT_HOP_TEXT_MAX + 1);
	json_error_t why;
	json_t *json;
	int rc;

	if (length > CV_NEXT_HOP_TEXT_MAX) {
		cv_error_set(error, "next hop: longer than %d bytes", CV_NEXT_HOP_TEXT_MAX);
		return -E2BIG;
	}
	json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
	if (json == NULL) {
		cv_error_set(error, "next hop: not JSON: %s", why.text);
		return -EINVAL;
	}
	rc = cv_plan_next_hop_read(&at, json, ports, ports_count, convoys, to);
	json_decref(json);
	if (rc != 0)
		cv_error_set(error, "next hop: out of memory"); // unless an error says more
	return rc;
}

void cv_plan_next_hop_free(struct cv_plan_next_hop *next_hop)
{
	free(next_hop->keys);
	next_hop->keys = NULL;
	next_hop->keys_count = 0;
}
