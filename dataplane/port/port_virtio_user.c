// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind virtio-user: the driver's side of a virtio-net over a vhost-user socket: what a container
// VNF has. path: the socket; mode: client (the other side makes it; the default) or server; queues:
// pairs, 1 to 64; slots: of each ring, 1024 or a smaller power of two, 64 at least. The peer may come
// later, go away and come back (reconnecting_port.h).
#include <errno.h>
#include <stdio.h>

#include "port/reconnecting_port.h"
#include "port/socket_path.h"
#include "port/vhost_relay.h"

static const char *const modes[] = {"client", "server", NULL};

enum { CLIENT, SERVER };

struct config {
	struct cv_socket_config socket;
	unsigned mode, slots;
};

static const struct cv_param params[] = {
	{"path", CV_CUSTOM, CV_AT(struct config, socket.path), .required = true,
		.read = cv_read_plain},
	{"mode", CV_WORD, CV_AT(struct config, mode), .words = modes},
	CV_PORT_SLOTS(struct config),
	{0},
};

static int check(struct cv_port_config *port, struct cv_error *error)
{
	const struct config *config = port->own;

	return cv_socket_check(&config->socket, config->mode == SERVER, error);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;
	const struct config *config = args->config->own;
	const char *path = config->socket.path;

	int rc;

	if (config->mode == SERVER) {
		rc = cv_socket_claim(path, error);
		if (rc != 0)
			return rc;
	}
	reconnecting->relay = cv_vhost_relay_open(path, config->mode == SERVER, error);
	if (reconnecting->relay == NULL)
		return -EIO;
	snprintf(reconnecting->path, sizeof(reconnecting->path), "%s", path);
	reconnecting->mode = CV_RECONNECT_RELAYED;
	reconnecting->dev.driver = "net_virtio_user";
	reconnecting->dev.rx_queues = args->config->queues;
	snprintf(reconnecting->dev.devargs, sizeof(reconnecting->dev.devargs),
		"net_virtio_user%u,path=%s,queues=%u,queue_size=%u", args->index,
		cv_vhost_relay_path(reconnecting->relay), args->config->queues, config->slots);
	rc = cv_reconnecting_port_open(reconnecting, args, error);
	if (rc != 0)
		cv_vhost_relay_close(reconnecting->relay);
	return rc;
}

const struct cv_port_kind cv_port_virtio_user = {
	.name = "virtio-user",
	.params = params,
	.config_size = sizeof(struct config),
	.socket = true,
	.mtu = 1500,
	.queues_max = 64,
	.check = check,
	.open = open_port,
	.size = sizeof(struct cv_reconnecting_port),
	.needs = {.drivers = true, .shared_packets = true},
};
