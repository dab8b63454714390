// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/kind.h"
#include "port/socket_path.h"

#define MTU_MIN 68 // RFC 791
#define MTU_MAX 65500
#define DEVICE_MTU_MAX 65300 // such a frame fits into one buffer, headroom included

static const struct cv_port_kind *const kinds[] = {
	&cv_port_pcap,
	&cv_port_null,
	&cv_port_vhost_user,
	&cv_port_virtio_user,
	&cv_port_memif,
	&cv_port_af_packet,
	&cv_port_af_xdp,
	&cv_port_dpdk,
	&cv_port_openflow,
	&cv_port_shared,
};

int cv_read_plain(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text == NULL)
		return cv_where_wrong(at, key, value, "must be a string");
	if (text[0] == '\0')
		return cv_where_wrong(at, key, value, "must not be empty");
	for (const char *c = text; *c != '\0'; c++) {
		if ((unsigned char)*c > ' ' && strchr(",=[]()\"'", *c) == NULL)
			continue;
		return cv_where_wrong(at, key, value,
			"has a character that devices' arguments cannot carry; rename it without "
			"spaces, commas, quotes, brackets and =");
	}
	*(const char **)member = text;
	return 0;
}

static int read_kind(const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *name = json_string_value(value);
	char list[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		if (name != NULL && strcmp(kinds[i]->name, name) == 0) {
			*(const struct cv_port_kind **)member = kinds[i];
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, " %s", kinds[i]->name);
	}
	return cv_where_wrong(at, key, value, "must be one of:%s", list);
}

// Reads the keys that all kinds have, and the kind's own.
static int read_keys(const struct cv_where *top, const json_t *json, struct cv_port_config *config)
{
	const struct cv_port_kind *kind = config->kind;
	const struct cv_param params[] = {
		{"name", CV_TEXT, CV_AT(struct cv_port_config, name),
			.high = sizeof(((struct cv_port *)NULL)->name) - 1, .required = true},
		{"kind", CV_CUSTOM, CV_AT(struct cv_port_config, kind), .read = read_kind},
		{"mtu", CV_INTEGER, CV_AT(struct cv_port_config, mtu), .low = MTU_MIN,
			.high = kind->any_length ? MTU_MAX : DEVICE_MTU_MAX, .fallback = kind->mtu},
		{"mac", CV_MAC, CV_AT(struct cv_port_config, mac)},
		{NULL, CV_PARAMS, .offset = sizeof(*config), .params = kind->params},
		{"queues", kind->queues_max > 0 ? CV_INTEGER : CV_PARAMS_END,
			CV_AT(struct cv_port_config, queues), .low = 1, .high = kind->queues_max,
			.fallback = 1},
		{0},
	};
	const int rc = cv_params_read(top, json, params, config);

	if (rc != 0)
		return rc;
	config->mtu_given = json_object_get(json, "mtu") != NULL;
	config->mac_given = json_object_get(json, "mac") != NULL;
	if (kind->socket)
		config->socket_path = ((const struct cv_socket_config *)config->own)->path;
	return kind->check != NULL ? kind->check(config, top->error) : 0;
}

struct cv_port_config *cv_port_config_read(const json_t *json, struct cv_error *error)
{
	const struct cv_where top = cv_where_top("", error);
	const json_t *name = json_object_get(json, "kind");
	const struct cv_port_kind *kind;
	struct cv_port_config *config;

	if (!json_is_object(json)) {
		cv_where_error(&top, "must be an object with a name and a kind");
		return NULL;
	}
	if (name == NULL) {
		cv_where_error(&top, "kind: is missing; add it");
		return NULL;
	}
	if (read_kind(&top, "kind", name, &kind) != 0)
		return NULL;
	config = calloc(1, sizeof(*config) + kind->config_size);
	if (config == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	config->kind = kind;
	config->json = json_incref((json_t *)(uintptr_t)json);
	config->queues = 1;
	config->any_length = kind->any_length;
	config->needs = kind->needs;
	config->own = config + 1;
	if (read_keys(&top, json, config) == 0)
		return config;
	cv_port_config_free(config);
	return NULL;
}

void cv_port_config_free(struct cv_port_config *config)
{
	if (config == NULL)
		return;
	json_decref(config->json);
	free(config);
}

// Opens the port, and says who may connect to its socket if it makes one. 0, or -errno with error
// set: port is then to be freed by the caller, unless it was closed.
static int open_kind(struct cv_port **port, const struct cv_port_args *args, struct cv_error *error)
{
	static const struct cv_socket_config none;
	const struct cv_port_kind *kind = args->config->kind;
	const struct cv_socket_config *socket =
		kind->socket && !args->config->adopts ? args->config->own : &none;
	const mode_t begun = cv_socket_access_begin(&socket->access);
	const int rc = kind->open(*port, args, error);
	const int given =
		cv_socket_access_finish(&socket->access, begun, rc == 0, socket->path, error);

	if (rc == 0 && given == 0)
		return 0;
	if (rc == 0)
		(*port)->close(*port); // frees it, too
	else
		free(*port);
	*port = NULL;
	return rc != 0 ? rc : given;
}

struct cv_port *cv_port_open(const struct cv_port_config *config, unsigned index, uint16_t senders,
	struct rte_mempool *pool, struct cv_error *error)
{
	const uint8_t own[6] = {0x02, 0xc0, 0x17, 0, 0, (uint8_t)index};
	const struct cv_port_args args = {
		.config = config, .index = index, .senders = senders, .pool = pool};
	struct cv_port *port = calloc(1, config->kind->size);

	if (port == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	port->kind = config->kind->name;
	snprintf(port->name, sizeof(port->name), "%s", config->name);
	port->mtu = config->mtu;
	port->socket = -1;
	memcpy(port->mac, config->mac_given ? config->mac : own, sizeof(port->mac));
	if (open_kind(&port, &args, error) != 0)
		cv_error_set(error, "cannot be opened"); // unless an error says more
	return port;
}
