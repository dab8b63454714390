// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/values.h"
#include "port/kind.h"
#include "port/socket_access.h"

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

static const char *const common_keys[] = {"name", "kind", "mtu", "mac", NULL};

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
	const char *names[RTE_DIM(kinds) + 1] = {NULL};
	unsigned unused;

	for (size_t i = 0; i < RTE_DIM(kinds); i++)
		names[i] = kinds[i]->name;
	if (json_object_get(config, "kind") == NULL)
		return cv_config_missing("", "kind", error);
	return cv_config_word(config, "kind", "", names, &unused, error);
}

static int read_mtu(
	const struct cv_port_kind *kind, const json_t *config, int64_t *mtu, struct cv_error *error)
{
	const int64_t most = kind->any_length ? MTU_MAX : DEVICE_MTU_MAX;

	return cv_key_integer(config, "mtu", MTU_MIN, most, kind->mtu, mtu, error);
}

int cv_port_check(const json_t *config, struct cv_error *error)
{
	const struct cv_port_kind *kind;
	const char *name;
	uint8_t mac[6];
	int64_t mtu;

	if (!json_is_object(config)) {
		cv_error_set(error, "must be an object with a name and a kind");
		return -EINVAL;
	}
	name = cv_key_string(config, "name", NULL, error);
	if (name == NULL)
		return -EINVAL;
	if (strlen(name) >= sizeof(((struct cv_port *)NULL)->name)) {
		cv_error_set(error, "name: \"%.64s\": is too long; at most 31 bytes", name);
		return -EINVAL;
	}
	kind = find_kind(config);
	if (kind == NULL)
		return no_kind(config, error);
	if (cv_keys_known(config, common_keys, kind->keys, error) != 0 ||
		read_mtu(kind, config, &mtu, error) != 0 ||
		cv_key_mac(config, "mac", mac, error) < 0)
		return -EINVAL;
	return kind->check(config, error);
}

struct cv_port *cv_port_open(const json_t *config, unsigned index, uint16_t senders,
	struct rte_mempool *pool, struct cv_error *error)
{
	const struct cv_port_args args = {config, index, senders, pool};
	const struct cv_port_kind *kind = find_kind(config);
	struct cv_socket_access access;
	struct cv_port *port;
	int64_t mtu;
	int rc, given = 0;

	if (kind == NULL) {
		no_kind(config, error);
		return NULL;
	}
	if (read_mtu(kind, config, &mtu, error) != 0)
		return NULL;
	port = calloc(1, kind->size);
	if (port == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	port->kind = kind->name;
	snprintf(port->name, sizeof(port->name), "%s",
		json_string_value(json_object_get(config, "name")));
	port->mtu = (uint16_t)mtu;
	port->socket = -1;
	rc = cv_key_mac(config, "mac", port->mac, error);
	if (rc == 0)
		memcpy(port->mac, (uint8_t[]){0x02, 0xc0, 0x17, 0, 0, (uint8_t)index}, 6);
	if (rc >= 0)
		rc = cv_socket_access_read(config, &access, error);
	if (rc == 0) {
		const mode_t begun = cv_socket_access_begin(&access);

		rc = kind->open(port, &args, error);
		given = cv_socket_access_finish(&access, begun, rc == 0,
			json_string_value(json_object_get(config, "path")), error);
	}
	if (rc != 0) {
		cv_error_set(error, "cannot be opened");
		free(port);
		return NULL;
	}
	if (given != 0) {
		port->close(port); // frees it, too
		return NULL;
	}
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
