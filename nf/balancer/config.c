// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "nf/config.h"

static const char *const modes[] = {"dsr", "nat", "ipip", "gue", NULL};

// Protocols, by the words of the parameter.
static const char *const protos[] = {"any", "tcp", "udp", "sctp", NULL};
static const uint8_t proto_numbers[] = {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

static int read_address(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text == NULL || cv_address_parse(text, member) != 0)
		return cv_where_wrong(at, key, value, "must be an IPv4 or IPv6 address");
	return 0;
}

// Where tunnels of one family begin; the parameter's name says which.
static int read_source(
	const struct cv_where *at, const char *key, const json_t *value, void *config_of)
{
	struct cv_balancer_config *config = config_of;
	const bool v6 = strcmp(key, "source_ipv6") == 0;
	struct cv_address address;

	if (read_address(at, key, value, &address) != 0 || address.v6 != v6)
		return cv_where_wrong(at, key, value, "must be an IPv%d address", v6 ? 6 : 4);
	config->tunnel.source[v6] = address;
	config->has_source[v6] = true;
	return 0;
}

static int read_health(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const char *const kinds[] = {"link", "icmp", "tcp", NULL};
	static const struct cv_param params[] = {
		{"by", CV_WORD, CV_AT(struct cv_health_config, by), .words = kinds,
			.required = true},
		{"port", CV_INTEGER, CV_AT(struct cv_health_config, port), .low = 1, .high = 65535},
		{"interval_ms", CV_INTEGER, CV_AT(struct cv_health_config, interval_ms), .low = 50,
			.high = 3600000, .fallback = 1000},
		{"rise", CV_INTEGER, CV_AT(struct cv_health_config, rise), .low = 1, .high = 100,
			.fallback = 2},
		{"fall", CV_INTEGER, CV_AT(struct cv_health_config, fall), .low = 1, .high = 100,
			.fallback = 3},
		{0},
	};
	const struct cv_where in = cv_where_key(at, key);
	struct cv_health_config *health = member;

	if (cv_params_read(&in, value, params, health) != 0)
		return -EINVAL;
	if (health->port != 0 && health->by != CV_PROBE_TCP)
		return cv_where_error(&in, "port: is for tcp; remove it");
	health->given = true;
	return 0;
}

static int read_service(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"address", CV_CUSTOM, CV_AT(struct cv_service, address), .required = true,
			.read = read_address},
		{"proto", CV_WORD, CV_AT(struct cv_service, proto), .words = protos},
		{"port", CV_INTEGER, CV_AT(struct cv_service, port), .low = 1, .high = 65535},
		{0},
	};
	struct cv_services *services = member;
	struct cv_service *service = &services->list[services->count++];
	int rc = cv_params_read(at, value, params, service);

	service->proto = rc == 0 ? proto_numbers[service->proto] : 0;
	if (rc == 0 && service->port != 0 && service->proto == 0)
		rc = cv_where_error(at, "port: needs proto; write tcp, udp or sctp");
	return rc;
}

static int read_backend(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const struct cv_param params[] = {
		{"address", CV_CUSTOM, CV_AT(struct cv_backend, address), .required = true,
			.read = read_address},
		{"mac", CV_MAC, CV_AT(struct cv_backend, mac)},
		{"dev", CV_TEXT, CV_AT(struct cv_backend, dev)},
		{"port", CV_INTEGER, CV_AT(struct cv_backend, port), .low = 1, .high = 65535},
		{"weight", CV_INTEGER, CV_AT(struct cv_backend, weight), .high = 1000,
			.fallback = 1},
		{"drain", CV_BOOL, CV_AT(struct cv_backend, drain)},
		{0},
	};
	struct cv_backends *backends = member;
	struct cv_backend *backend = &backends->list[backends->count];

	backend->index = backends->count++;
	return cv_params_read(at, value, params, backend);
}

const struct cv_param cv_balancer_params[] = {
	{"mode", CV_WORD, CV_AT(struct cv_balancer_config, mode), .words = modes,
		.doc = "to the backend's MAC address, to its IP address, or in a tunnel to it"},
	{"source", CV_CUSTOM, .read = read_source,
		.doc = "where tunnels and probes over IPv4 come from"},
	{"source_ipv6", CV_CUSTOM, .read = read_source,
		.doc = "where tunnels and probes over IPv6 come from"},
	{"gue_port", CV_INTEGER, CV_AT(struct cv_balancer_config, tunnel.port), .low = 1,
		.high = 65535, .fallback = 6080, .doc = "gue: the backends' UDP port"},
	{"health", CV_CUSTOM, CV_AT(struct cv_balancer_config, health), .read = read_health,
		.doc = "asks backends whether they are there"},
	{"mtu", CV_INTEGER, CV_AT(struct cv_balancer_config, mtu), .low = 576, .high = 65535,
		.doc = "ipip, gue: the longest packet outside; default: the least of the ports"},
	{"table_size", CV_INTEGER, CV_AT(struct cv_balancer_config, table_size), .low = 251,
		.high = 5000011, .fallback = 65537, .doc = "places of Maglev's table, a prime"},
	{"seed", CV_INTEGER, CV_AT(struct cv_balancer_config, seed), .high = UINT32_MAX,
		.doc = "of the flows' hash: equal in all balancers of a service"},
	{"services", CV_EACH, CV_AT(struct cv_balancer_config, services), .low = 1,
		.high = CV_SERVICES_MAX, .required = true, .read = read_service,
		.doc = "addresses that clients use"},
	{"backends", CV_EACH, CV_AT(struct cv_balancer_config, backends), .low = 1,
		.high = CV_MAGLEV_BACKENDS_MAX, .required = true, .read = read_backend,
		.doc = "who serves them"},
	{0},
};

// What is wrong with an address twice; backends are sorted.
static int check_backends(
	struct cv_balancer_config *config, const char *name, struct cv_error *error)
{
	static const uint8_t none[CV_MAC_LEN];
	char text[CV_PREFIX_TEXT];
	uint32_t weights = 0;

	for (unsigned i = 0; i < config->backends.count; i++) {
		const struct cv_backend *one = &config->backends.list[i];
		const struct cv_backend *next = one + 1;

		weights += one->drain ? 0 : one->weight;
		if (config->mode == CV_BALANCER_DSR && memcmp(one->mac, none, CV_MAC_LEN) == 0) {
			cv_error_set(error, "%s: backends[%u]: mac is missing; mode dsr needs it",
				name, one->index);
			return -EINVAL;
		}
		if (config->mode != CV_BALANCER_NAT && one->port != 0) {
			cv_error_set(error,
				"%s: backends[%u]: port: %u: is for mode nat; remove it", name,
				one->index, one->port);
			return -EINVAL;
		}
		if ((cv_balancer_tunnels(config) || config->health.given) &&
			!config->has_source[one->address.v6]) {
			cv_error_set(error,
				"%s: %s: is missing, and backends[%u] is %s; add an address of the "
				"node that tunnels and probes come from",
				name, one->address.v6 ? "source_ipv6" : "source", one->index,
				cv_address_text(&one->address, text));
			return -EINVAL;
		}
		// A function behind would not hear the answers, which are for the balancer.
		if (config->health.given && config->health.by == CV_PROBE_LINK &&
			memcmp(one->mac, none, CV_MAC_LEN) == 0) {
			cv_error_set(error,
				"%s: backends[%u]: mac is missing; health by link needs it: behind "
				"a router ask by icmp",
				name, one->index);
			return -EINVAL;
		}
		if (config->health.given && one->out < 0 &&
			memcmp(one->mac, none, CV_MAC_LEN) != 0) {
			cv_error_set(error,
				"%s: backends[%u]: dev is missing; health needs the port that it "
				"is behind",
				name, one->index);
			return -EINVAL;
		}
		if (config->health.given && config->health.by == CV_PROBE_TCP &&
			config->health.port == 0 && one->port == 0) {
			cv_error_set(error, "%s: health: port is missing; tcp needs it", name);
			return -EINVAL;
		}
		if (i + 1 == config->backends.count ||
			cv_address_compare(&one->address, &next->address) != 0)
			continue;
		cv_error_set(error, "%s: backends[%u]: %s is backends[%u] as well; remove one",
			name, RTE_MAX(one->index, next->index),
			cv_address_text(&one->address, text), RTE_MIN(one->index, next->index));
		return -EINVAL;
	}
	if (weights != 0)
		return 0;
	cv_error_set(error,
		"%s: backends: each has weight 0 or drain; give one that does not drain a weight",
		name);
	return -EINVAL;
}

static int check_service(const struct cv_balancer_config *config, unsigned index, const char *name,
	struct cv_error *error)
{
	const struct cv_service *service = &config->services.list[index];
	bool family = config->mode != CV_BALANCER_NAT;
	char text[CV_PREFIX_TEXT];

	cv_address_text(&service->address, text);
	for (unsigned i = 0; i < index; i++) {
		const struct cv_service *before = &config->services.list[i];

		if (cv_address_compare(&service->address, &before->address) == 0 &&
			service->proto == before->proto && service->port == before->port) {
			cv_error_set(error,
				"%s: services[%u]: %s is services[%u] as well; remove one", name,
				index, text, i);
			return -EINVAL;
		}
	}
	for (unsigned i = 0; i < config->backends.count; i++) {
		const struct cv_backend *backend = &config->backends.list[i];

		family |= backend->address.v6 == service->address.v6;
		if (cv_address_compare(&service->address, &backend->address) == 0) {
			cv_error_set(error,
				"%s: services[%u]: %s is backends[%u] as well; a service has an "
				"address of its own",
				name, index, text, backend->index);
			return -EINVAL;
		}
		if (backend->port != 0 && service->port == 0) {
			cv_error_set(error,
				"%s: services[%u]: has no port, and backends[%u] has; give both "
				"one, or none",
				name, index, backend->index);
			return -EINVAL;
		}
	}
	if (family)
		return 0;
	cv_error_set(error, "%s: services[%u]: no backend is IPv%d as %s is; mode nat needs one",
		name, index, service->address.v6 ? 6 : 4, text);
	return -EINVAL;
}

static int compare_backends(const void *a, const void *b)
{
	return cv_address_compare(
		&((const struct cv_backend *)a)->address, &((const struct cv_backend *)b)->address);
}

int cv_balancer_config_check(
	struct cv_balancer_config *config, const struct cv_nf_env *env, struct cv_error *error)
{
	int rc;

	config->tunnel.gue = config->mode == CV_BALANCER_GUE;
	if (!cv_balancer_tunnels(config) && config->mtu != 0) {
		cv_error_set(error, "%s: mtu: is for modes ipip and gue; remove it", env->name);
		return -EINVAL;
	}
	if (!cv_balancer_tunnels(config) && !config->health.given &&
		(config->has_source[0] || config->has_source[1])) {
		cv_error_set(error, "%s: %s: is for modes ipip and gue, and for health; remove it",
			env->name, config->has_source[0] ? "source" : "source_ipv6");
		return -EINVAL;
	}
	if (!cv_maglev_is_size(config->table_size)) {
		cv_error_set(error, "%s: table_size: %u: is no prime; use 65537 or 655373",
			env->name, config->table_size);
		return -EINVAL;
	}
	for (unsigned i = 0; i < config->backends.count; i++) {
		struct cv_backend *backend = &config->backends.list[i];
		char where[128];

		backend->out = -1;
		if (backend->dev == NULL)
			continue;
		snprintf(where, sizeof(where), "%s: backends[%u]: dev", env->name, i);
		backend->out = cv_nf_env_port(env, backend->dev);
		if (backend->out < 0)
			return cv_config_no_port(where, backend->dev, env, error);
		backend->dev = NULL; // it is the configuration's
	}
	qsort(config->backends.list, config->backends.count, sizeof(struct cv_backend),
		compare_backends);
	rc = check_backends(config, env->name, error);
	for (unsigned i = 0; rc == 0 && i < config->services.count; i++)
		rc = check_service(config, i, env->name, error);
	return rc;
}
