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
};

struct common {
	const char *name, *kind;
	uint16_t mtu;
	uint8_t mac[6];
};

static const struct cv_port_kind *find_kind(const json_t *config)
{
	const char *name = json_string_value(json_object_get(config, "kind"));

	for (size_t i = 0; name != NULL && i < RTE_DIM(kinds); i++) {
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	}
	return NULL;
}

static int no_kind(const json_t *config, struct cv_error *error)
{
	const struct cv_where top = cv_where_top("", error);
	const char *names[RTE_DIM(kinds) + 1] = {NULL};
	unsigned kind;
	const struct cv_param params[] = {
		{"kind", CV_WORD, .size = sizeof(kind), .words = names, .required = true}, {0}};
	json_t *only = json_object();
	json_t *given = json_object_get(config, "kind");
	int rc;

	for (size_t i = 0; i < RTE_DIM(kinds); i++)
		names[i] = kinds[i]->name;
	if (given != NULL)
		json_object_set(only, "kind", given);
	rc = cv_params_read(&top, only, params, &kind);
	json_decref(only);
	return rc;
}

// Reads the keys, what all have and behind that the kind's own. Returns them, to be freed, or NULL
// with error set.
static struct common *read_config(
	const struct cv_port_kind *kind, const json_t *json, struct cv_error *error)
{
	const struct cv_where top = cv_where_top("", error);
	const struct cv_param params[] = {
		{"name", CV_TEXT, CV_AT(struct common, name),
			.high = sizeof(((struct cv_port *)NULL)->name) - 1, .required = true},
		{"kind", CV_TEXT, CV_AT(struct common, kind)},
		{"mtu", CV_INTEGER, CV_AT(struct common, mtu), .low = MTU_MIN,
			.high = kind->any_length ? MTU_MAX : DEVICE_MTU_MAX, .fallback = kind->mtu},
		{"mac", CV_MAC, CV_AT(struct common, mac)},
		{NULL, CV_PARAMS, .offset = sizeof(struct common), .params = kind->params},
		{0},
	};
	struct common *common = calloc(1, sizeof(*common) + kind->config_size);

	if (common == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	if (cv_params_read(&top, json, params, common) == 0)
		return common;
	free(common);
	return NULL;
}

int cv_port_check(const json_t *config, struct cv_error *error)
{
	const struct cv_port_kind *kind;
	struct common *common;
	int rc = 0;

	if (!json_is_object(config)) {
		cv_error_set(error, "must be an object with a name and a kind");
		return -EINVAL;
	}
	if (json_object_get(config, "name") == NULL) {
		cv_error_set(error, "name: is missing; add it");
		return -EINVAL;
	}
	kind = find_kind(config);
	if (kind == NULL)
		return no_kind(config, error);
	common = read_config(kind, config, error);
	if (common == NULL)
		return -EINVAL;
	if (kind->check != NULL)
		rc = kind->check(common + 1, error);
	free(common);
	return rc;
}

// Opens the port, and says who may connect to its socket if it makes one. 0, or -errno with error
// set: port is then to be freed by the caller, unless it was closed.
static int open_kind(const struct cv_port_kind *kind, struct cv_port **port,
	const struct cv_port_args *args, struct cv_error *error)
{
	static const struct cv_socket_config none;
	const struct cv_socket_config *socket = kind->socket ? args->config : &none;
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

struct cv_port *cv_port_open(const json_t *json, unsigned index, uint16_t senders,
	struct rte_mempool *pool, struct cv_error *error)
{
	const struct cv_port_kind *kind = find_kind(json);
	struct common *common;
	struct cv_port *port;

	if (kind == NULL) {
		no_kind(json, error);
		return NULL;
	}
	common = read_config(kind, json, error);
	if (common == NULL)
		return NULL;
	port = calloc(1, kind->size);
	if (port == NULL) {
		cv_error_set(error, "out of memory");
	} else {
		const uint8_t own[6] = {0x02, 0xc0, 0x17, 0, 0, (uint8_t)index};
		const bool mac_given = json_object_get(json, "mac") != NULL;
		const struct cv_port_args args = {.config = common + 1,
			.mtu_given = json_object_get(json, "mtu") != NULL,
			.mac_given = mac_given,
			.index = index,
			.senders = senders,
			.pool = pool};

		port->kind = kind->name;
		snprintf(port->name, sizeof(port->name), "%s", common->name);
		port->mtu = common->mtu;
		port->socket = -1;
		memcpy(port->mac, mac_given ? common->mac : own, sizeof(port->mac));
		if (open_kind(kind, &port, &args, error) != 0)
			cv_error_set(error, "cannot be opened"); // unless an error says more
	}
	free(common);
	return port;
}

bool cv_port_any_length(const json_t *config)
{
	const struct cv_port_kind *kind = find_kind(config);

	return kind != NULL && kind->any_length;
}

struct cv_port_needs cv_port_needs(const json_t *config)
{
	const struct cv_port_kind *kind = find_kind(config);

	return kind != NULL ? kind->needs : (struct cv_port_needs){0};
}

bool cv_port_shares_packets(const json_t *config)
{
	const struct cv_port_kind *kind = find_kind(config);

	return kind != NULL && kind->shares_packets;
}
