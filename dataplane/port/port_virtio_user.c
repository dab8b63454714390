// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind virtio-user: the driver's side of a virtio-net over a vhost-user socket: what a container
// VNF has. path: the socket; mode: client (the other side makes it; the usual) or server; queues:
// pairs, 1 to 64.
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "ethdev.h"
#include "port_log.h"
#include "socket_path.h"

static const char *const modes[] = {"client", "server", NULL};

static int check(const json_t *config, struct cv_error *error)
{
	int mode = cv_key_word(config, "mode", modes, error);
	int64_t queues;

	if (mode < 0 || cv_key_integer(config, "queues", 1, 64, 1, &queues, error) != 0 ||
		cv_socket_path(config, mode == 1, error) == NULL)
		return -EINVAL;
	return 0;
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;
	const int mode = cv_key_word(args->config, "mode", modes, error);
	const char *path = cv_socket_path(args->config, mode == 1, error);
	int64_t queues;
	int rc;

	if (mode < 0 || path == NULL ||
		cv_key_integer(args->config, "queues", 1, 64, 1, &queues, error) != 0)
		return -EINVAL;
	rc = mode == 1 ? cv_socket_claim(path, error) : 0;
	if (rc != 0)
		return rc;
	// DPDK's virtio-user writes to its socket when it stops, even if the peer is gone.
	signal(SIGPIPE, SIG_IGN);
	ethdev->dev.driver = "net_virtio_user";
	ethdev->dev.rx_queues = (uint16_t)queues;
	ethdev->dev.tx_queues = (uint16_t)queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_virtio_user%u,path=%s,queues=%u,server=%d,queue_size=1024", args->index, path,
		(unsigned)queues, mode);
	ethdev->peer = "peer";
	return cv_ethdev_port_open(ethdev, args, error);
}

const struct cv_port_kind cv_port_virtio_user = {
	.name = "virtio-user",
	.keys = (const char *const[]){"path", "mode", "queues", NULL},
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(struct cv_ethdev_port),
	.shared_memory = true,
};
