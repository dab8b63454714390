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

static const char *const modes[] = {"client", "server", NULL};

static int check(const json_t *config, struct cv_error *error)
{
	int mode = cv_key_word(config, "mode", modes, error);
	unsigned slots;
	int64_t queues;

	if (mode < 0 || cv_key_slots(config, &slots, error) != 0 ||
		cv_key_integer(config, "queues", 1, 64, 1, &queues, error) != 0 ||
		cv_socket_path(config, mode == 1, error) == NULL)
		return -EINVAL;
	return 0;
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;
	const int mode = cv_key_word(args->config, "mode", modes, error);
	const char *path = cv_socket_path(args->config, mode == 1, error);
	unsigned slots;
	int64_t queues;

	if (mode < 0 || path == NULL || cv_key_slots(args->config, &slots, error) != 0 ||
		cv_key_integer(args->config, "queues", 1, 64, 1, &queues, error) != 0)
		return -EINVAL;
	snprintf(reconnecting->path, sizeof(reconnecting->path), "%s", path);
	reconnecting->mode = mode == 1 ? CV_RECONNECT_LISTENS : CV_RECONNECT_CONNECTS;
	reconnecting->dev.driver = "net_virtio_user";
	reconnecting->dev.rx_queues = (uint16_t)queues;
	snprintf(reconnecting->dev.devargs, sizeof(reconnecting->dev.devargs),
		"net_virtio_user%u,path=%s,queues=%u,server=%d,queue_size=%u", args->index, path,
		(unsigned)queues, mode, slots);
	return cv_reconnecting_port_open(reconnecting, args, error);
}

const struct cv_port_kind cv_port_virtio_user = {
	.name = "virtio-user",
	.keys = (const char *const[]){"path", "mode", "queues", "slots", NULL},
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(struct cv_reconnecting_port),
	.shares_packets = true,
};
