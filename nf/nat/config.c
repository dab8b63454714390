// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nf/config.h"
#include "packet/prefix.h"

static int read_ports(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);
	unsigned first = 0, last = 0;
	char end;

	if (json_is_integer(value) && json_integer_value(value) <= UINT16_MAX)
		first = last =
			(unsigned)(json_integer_value(value) > 0 ? json_integer_value(value) : 0);
	else if (text != NULL && sscanf(text, "%5u-%5u%c", &first, &last, &end) != 2)
		last = sscanf(text, "%5u%c", &first, &end) == 1 ? first : 0;
	if (first < 1 || last < 1 || first > UINT16_MAX || last > UINT16_MAX)
		return cv_where_wrong(
			at, key, value, "write a port, 80, or a range, \"1024-65535\", from 1 up");
	if (first > last)
		return cv_where_wrong(
			at, key, value, "the range runs backwards; write \"%u-%u\"", last, first);
	*(struct cv_nat_ports *)member = (struct cv_nat_ports){(uint16_t)first, (uint16_t)last};
	return 0;
}

// RFC 4787's words.
#define INDEPENDENT "endpoint-independent"
#define PORT_DEPENDENT "address-and-port-dependent"
static const char *const mapping_modes[] = {INDEPENDENT, PORT_DEPENDENT, NULL};
static const char *const filterings[] = {INDEPENDENT, PORT_DEPENDENT, "address-dependent", NULL};

const struct cv_param cv_nat_params[] = {
	{"outside", CV_LIST, CV_AT(struct cv_nat_config, outside), .required = true, .low = 1,
		.high = CV_PORTS_MAX, .doc = "ports that lead to the outside"},
	{"pool", CV_LIST, CV_AT(struct cv_nat_config, pool), .required = true, .low = 1,
		.high = CV_NAT_ADDRESSES_MAX,
		.doc = "external addresses: IPv4 addresses or prefixes"},
	{"share_address", CV_BOOL, CV_AT(struct cv_nat_config, share_address),
		.doc = "an external address may be the node's router's, too"},
	{"inside", CV_LIST, CV_AT(struct cv_nat_config, inside), .required = true, .low = 1,
		.high = 1024, .doc = "internal addresses: IPv4 prefixes"},
	{"ports", CV_CUSTOM, CV_AT(struct cv_nat_config, ports), .read = read_ports,
		.doc = "external ports of each address of the pool"},
	{"block_size", CV_INTEGER, CV_AT(struct cv_nat_config, block_size), .low = 64, .high = 4096,
		.power_of_two = true, .fallback = 512, .doc = "ports of a block"},
	{"blocks_per_subscriber", CV_INTEGER, CV_AT(struct cv_nat_config, blocks_per_subscriber),
		.low = 1, .high = 64, .fallback = 8,
		.doc = "blocks that one internal address may have on one worker"},
	{"block_rest_s", CV_INTEGER, CV_AT(struct cv_nat_config, block_rest_s), .low = 0,
		.high = 86400, .fallback = 120,
		.doc = "how long a block that was given back is kept from others, s"},
	{"mapping", CV_WORD, CV_AT(struct cv_nat_config, mapping), .words = mapping_modes,
		.doc = "whether one external port serves all remote ends"},
	{"filtering", CV_WORD, CV_AT(struct cv_nat_config, filtering), .words = filterings,
		.doc = "who may send to a port in use: any remote end, or those sent to"},
	{"hairpinning", CV_BOOL, CV_AT(struct cv_nat_config, hairpinning), .fallback = true,
		.doc = "whether internal hosts reach each other by external addresses"},
	{"mappings", CV_INTEGER, CV_AT(struct cv_nat_config, mappings), .low = 64, .high = 1 << 26,
		.fallback = 65536, .doc = "mappings of all workers together"},
	{"forwards", CV_LIST, CV_AT(struct cv_nat_config, forwards), .low = 0,
		.high = CV_NAT_FORWARDS_MAX, .doc = "static mappings for packets from outside"},
	{"block_log", CV_TEXT, CV_AT(struct cv_nat_config, block_log),
		.doc = "file that each block's beginning and end is appended to, as JSON lines"},
	{0},
};

static int read_outside(const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_nat_lists *lists, const struct cv_where *top)
{
	const json_t *value;
	size_t index;

	json_array_foreach (config->outside, index, value) {
		const struct cv_where at = cv_where_item(top, "outside", index);
		char where[256];
		int port;

		if (!json_is_string(value))
			return cv_where_wrong(&at, "", value, "must be the name of a port");
		port = cv_nf_env_port(env, json_string_value(value));
		snprintf(where, sizeof(where), "%s: %s", env->name, at.path);
		if (port < 0)
			return cv_config_no_port(where, json_string_value(value), env, top->error);
		lists->outside[port] = true;
	}
	return 0;
}

// An IPv4 prefix.
static int read_prefix(
	const struct cv_where *at, const char *key, const json_t *value, struct cv_nat_prefix *out)
{
	struct cv_prefix prefix;
	char fixed[CV_PREFIX_TEXT];
	rte_be32_t address;
	int rc = json_is_string(value) ? cv_prefix_parse(json_string_value(value), &prefix)
				       : -EINVAL;

	if (rc == -EDOM) {
		cv_prefix_mask(&prefix);
		return cv_where_wrong(at, key, value, "host bits are set; write \"%s\"",
			cv_prefix_text(&prefix, fixed));
	}
	if (rc != 0 || prefix.address.v6)
		return cv_where_wrong(
			at, key, value, "write an IPv4 address or prefix, \"192.0.2.0/24\"");
	memcpy(&address, prefix.address.bytes, 4);
	out->first = rte_be_to_cpu_32(address);
	out->last = out->first | (uint32_t)(UINT32_MAX >> prefix.length % 32);
	if (prefix.length == 32)
		out->last = out->first;
	return 0;
}

static int read_inside(
	const struct cv_nat_config *config, struct cv_nat_lists *lists, const struct cv_where *top)
{
	const json_t *value;
	size_t index;

	lists->inside_count = (unsigned)json_array_size(config->inside);
	lists->inside = calloc(lists->inside_count, sizeof(*lists->inside));
	if (lists->inside == NULL)
		return -ENOMEM;
	json_array_foreach (config->inside, index, value) {
		const struct cv_where at = cv_where_item(top, "inside", index);

		if (read_prefix(&at, "", value, &lists->inside[index]) != 0)
			return -EINVAL;
	}
	return 0;
}

static bool overlap(struct cv_nat_prefix a, struct cv_nat_prefix b)
{
	return a.first <= b.last && b.first <= a.last;
}

int cv_nat_compare_addresses(const void *a, const void *b)
{
	const uint32_t x = rte_be_to_cpu_32(*(const rte_be32_t *)a);
	const uint32_t y = rte_be_to_cpu_32(*(const rte_be32_t *)b);

	return x < y ? -1 : x > y;
}

// One entry of the pool.
static int add_to_pool(const struct cv_nat_config *config, struct cv_nat_lists *lists,
	const struct cv_where *at, const json_t *value)
{
	struct cv_nat_prefix prefix;

	if (read_prefix(at, "", value, &prefix) != 0)
		return -EINVAL;
	if (prefix.first >> 28 >= 14 || prefix.first >> 24 == 0 || prefix.first >> 24 == 127)
		return cv_where_wrong(at, "", value, "is not of hosts; write addresses of yours");
	if (prefix.last - prefix.first >= CV_NAT_ADDRESSES_MAX - lists->pool_count)
		return cv_where_wrong(at, "", value,
			"more than %u addresses; write a longer prefix", CV_NAT_ADDRESSES_MAX);
	for (unsigned i = 0; i < lists->inside_count; i++)
		if (overlap(prefix, lists->inside[i]))
			return cv_where_wrong(at, "", value,
				"is inside, too (inside[%u]); an address is internal or external",
				i);
	for (unsigned i = 0; i < lists->pool_count; i++) {
		const uint32_t other = rte_be_to_cpu_32(lists->pool[i]);

		if (overlap(prefix, (struct cv_nat_prefix){other, other}))
			return cv_where_wrong(at, "", value,
				"%u.%u.%u.%u is in the pool already; write each address once",
				other >> 24, other >> 16 & 255, other >> 8 & 255, other & 255);
	}
	for (uint64_t each = prefix.first; each <= prefix.last; each++)
		lists->pool[lists->pool_count++] = rte_cpu_to_be_32((uint32_t)each);
	return 0;
}

static int read_pool(const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_nat_lists *lists, const struct cv_where *top)
{
	const unsigned ports = config->ports.last - config->ports.first + 1u;
	const unsigned workers = (unsigned)__builtin_popcountll(cv_nf_env_runners(env));
	const json_t *value;
	size_t index;

	if (ports / config->block_size < workers)
		return cv_where_error(top,
			"ports: \"%u-%u\": hold %u blocks of %u ports, and %u workers need one "
			"each; write more ports or a smaller block_size",
			config->ports.first, config->ports.last, ports / config->block_size,
			config->block_size, workers);
	lists->pool = calloc(CV_NAT_ADDRESSES_MAX, sizeof(*lists->pool));
	if (lists->pool == NULL)
		return -ENOMEM;
	json_array_foreach (config->pool, index, value) {
		const struct cv_where at = cv_where_item(top, "pool", index);

		if (add_to_pool(config, lists, &at, value) != 0)
			return -EINVAL;
	}
	qsort(lists->pool, lists->pool_count, sizeof(*lists->pool), cv_nat_compare_addresses);
	return 0;
}

enum protocol { TCP, UDP, ICMP };
static const char *const protocols[] = {"tcp", "udp", "icmp", NULL};
static const uint8_t numbers[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};

struct forward_text {
	enum protocol proto;
	const char *external, *to;
	struct cv_nat_ports port;
	uint32_t to_port; // 0: as outside
};

static int read_host(
	const struct cv_where *at, const char *key, const char *text, rte_be32_t *address)
{
	struct cv_address parsed;

	if (cv_address_parse(text, &parsed) != 0 || parsed.v6)
		return cv_where_error(at, "%s: \"%s\": write an IPv4 address", key, text);
	memcpy(address, parsed.bytes, 4);
	return 0;
}

// Whether a forward takes ports that the pool gives to anybody.
static bool is_in_pool(const struct cv_nat_config *config, const struct cv_nat_lists *lists,
	rte_be32_t external, struct cv_nat_ports ports)
{
	return ports.first <= config->ports.last && config->ports.first <= ports.last &&
	       bsearch(&external, lists->pool, lists->pool_count, sizeof(*lists->pool),
		       cv_nat_compare_addresses) != NULL;
}

static int check_forward(const struct cv_nat_config *config, const struct cv_nat_lists *lists,
	const struct cv_where *at, const struct forward_text *text, rte_be32_t external)
{
	const unsigned more = text->port.last - (unsigned)text->port.first;

	if (text->proto == ICMP)
		return text->port.first == 0 && text->to_port == 0
			       ? 0
			       : cv_where_error(
					 at, "icmp has no ports; leave out port and to_port");
	if (text->port.first == 0)
		return cv_where_error(at, "port: is missing; write the external port");
	if (text->to_port + more > UINT16_MAX)
		return cv_where_error(
			at, "to_port: %u: %u more behind it end above 65535", text->to_port, more);
	if (is_in_pool(config, lists, external, text->port))
		return cv_where_error(at,
			"%s port %u-%u: the pool gives these ports to anybody; take one outside of "
			"ports (%u-%u), or write fewer there",
			text->external, text->port.first, text->port.last, config->ports.first,
			config->ports.last);
	return 0;
}

static int read_forward(const struct cv_nat_config *config, struct cv_nat_lists *lists,
	const struct cv_where *at, const json_t *value)
{
	static const struct cv_param params[] = {
		{"proto", CV_WORD, CV_AT(struct forward_text, proto), .words = protocols,
			.required = true},
		{"external", CV_TEXT, CV_AT(struct forward_text, external), .required = true},
		{"port", CV_CUSTOM, CV_AT(struct forward_text, port), .read = read_ports},
		{"to", CV_TEXT, CV_AT(struct forward_text, to), .required = true},
		{"to_port", CV_INTEGER, CV_AT(struct forward_text, to_port), .low = 1,
			.high = UINT16_MAX, .fallback = 0},
		{0},
	};
	struct forward_text text = {.port = {0, 0}};
	struct cv_nat_forward forward;

	if (cv_params_read(at, value, params, &text) != 0 ||
		read_host(at, "external", text.external, &forward.external) != 0 ||
		read_host(at, "to", text.to, &forward.internal) != 0 ||
		check_forward(config, lists, at, &text, forward.external) != 0)
		return -EINVAL;
	forward.proto = numbers[text.proto];
	if (text.to_port == 0)
		text.to_port = text.port.first;
	for (unsigned i = 0; i <= (unsigned)text.port.last - text.port.first; i++) {
		if (lists->forwards_count == CV_NAT_FORWARDS_MAX)
			return cv_where_error(at, "more than %u ports are forwarded; write fewer",
				CV_NAT_FORWARDS_MAX);
		forward.external_port = rte_cpu_to_be_16((uint16_t)(text.port.first + i));
		forward.internal_port = rte_cpu_to_be_16((uint16_t)(text.to_port + i));
		lists->forwards[lists->forwards_count++] = forward;
	}
	return 0;
}

int cv_nat_compare_forwards(const void *a, const void *b)
{
	const struct cv_nat_forward *x = a, *y = b;
	const int addresses = cv_nat_compare_addresses(&x->external, &y->external);

	if (addresses != 0)
		return addresses;
	if (x->proto != y->proto)
		return x->proto - y->proto;
	return rte_be_to_cpu_16(x->external_port) - rte_be_to_cpu_16(y->external_port);
}

static int read_forwards(
	const struct cv_nat_config *config, struct cv_nat_lists *lists, const struct cv_where *top)
{
	const json_t *value;
	size_t index;

	lists->forwards = calloc(CV_NAT_FORWARDS_MAX, sizeof(*lists->forwards));
	if (lists->forwards == NULL)
		return -ENOMEM;
	json_array_foreach (config->forwards, index, value) {
		const struct cv_where at = cv_where_item(top, "forwards", index);

		if (read_forward(config, lists, &at, value) != 0)
			return -EINVAL;
	}
	qsort(lists->forwards, lists->forwards_count, sizeof(*lists->forwards),
		cv_nat_compare_forwards);
	for (unsigned i = 1; i < lists->forwards_count; i++)
		if (cv_nat_compare_forwards(&lists->forwards[i - 1], &lists->forwards[i]) == 0) {
			const uint8_t *ip = (const uint8_t *)&lists->forwards[i].external;

			return cv_where_error(top,
				"forwards: %u.%u.%u.%u port %u is forwarded twice; keep one", ip[0],
				ip[1], ip[2], ip[3],
				rte_be_to_cpu_16(lists->forwards[i].external_port));
		}
	return 0;
}

int cv_nat_lists_read(const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_nat_lists *lists, struct cv_error *error)
{
	const struct cv_where top = cv_where_top(env->name, error);
	int rc;

	memset(lists, 0, sizeof(*lists));
	if (config->mapping == CV_NAT_MAPS_EACH && config->filtering != CV_NAT_FROM_PORTS)
		return cv_where_error(&top, "mapping: \"" PORT_DEPENDENT
					    "\": an external port belongs to one remote end "
					    "then; write filtering \"" PORT_DEPENDENT "\", too");
	rc = read_outside(config, env, lists, &top);
	if (rc == 0)
		rc = read_inside(config, lists, &top);
	if (rc == 0)
		rc = read_pool(config, env, lists, &top);
	if (rc == 0)
		rc = read_forwards(config, lists, &top);
	return rc;
}

void cv_nat_lists_free(struct cv_nat_lists *lists)
{
	free(lists->inside);
	free(lists->pool);
	free(lists->forwards);
}
