// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind vhost-user: the device's side of a virtio-net that a VM, or a virtio-user port, drives.
// path: the socket; mode: server (this port makes the socket and waits; the usual) or client (the
// other side makes it; this port connects, again and again); queues: pairs, 1 to 64; datapath:
// vring (our own; the usual) or dpdk (DPDK's net_vhost, to compare with).
// When the peer goes away the port stays: it waits for the next.
#include <errno.h>
#include <stdio.h>

#include "ethdev.h"
#include "port_log.h"
#include "socket_path.h"
#include "vhost_port.h"

static const char *const modes[] = {"server", "client", NULL};
static const char *const datapaths[] = {"vring", "dpdk", NULL};

union vhost_user_port {
	struct cv_vhost_port vring;
	struct cv_ethdev_port dpdk;
};

static int check(const json_t *config, struct cv_error *error)
{
	int mode = cv_key_word(config, "mode", modes, error);
	int64_t queues;

	if (mode < 0 || cv_key_word(config, "datapath", datapaths, error) < 0 ||
		cv_key_integer(config, "queues", 1, CV_VHOST_PAIRS_MAX, 1, &queues, error) != 0 ||
		cv_socket_path(config, mode == 0, error) == NULL)
		return -EINVAL;
	return 0;
}

static int open_dpdk(struct cv_ethdev_port *ethdev, const char *path, bool client, unsigned queues,
	const struct cv_port_args *args, struct cv_error *error)
{
	ethdev->dev.driver = "net_vhost";
	ethdev->dev.rx_queues = (uint16_t)queues;
	// Only the queues that the peer enables take packets: each has its receiving twin.
	ethdev->dev.tx_queues = (uint16_t)queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_vhost_%u,iface=%s,queues=%u,client=%d", args->index, path, queues, client);
	ethdev->peer = "peer";
	return cv_ethdev_port_open(ethdev, args, error);
}

static int open_vring(struct cv_vhost_port *vhost, const char *path, bool client, unsigned queues,
	const struct cv_port_args *args, struct cv_error *error)
{
	snprintf(vhost->device.path, sizeof(vhost->device.path), "%s", path);
	vhost->device.client = client;
	vhost->device.pairs = (uint16_t)queues;
	return cv_vhost_port_open(vhost, args, error);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	union vhost_user_port *either = (union vhost_user_port *)port;
	const int mode = cv_key_word(args->config, "mode", modes, error);
	const int datapath = cv_key_word(args->config, "datapath", datapaths, error);
	const char *path = cv_socket_path(args->config, mode == 0, error);
	int64_t queues;
	bool up;
	int rc;

	if (mode < 0 || datapath < 0 || path == NULL ||
		cv_key_integer(args->config, "queues", 1, CV_VHOST_PAIRS_MAX, 1, &queues, error) !=
			0)
		return -EINVAL;
	rc = mode == 0 ? cv_socket_claim(path, error) : 0;
	if (rc != 0)
		return rc;
	if (datapath == 0) {
		rc = open_vring(&either->vring, path, mode == 1, (unsigned)queues, args, error);
		up = rc == 0 && cv_vhost_is_up(&either->vring.device);
	} else {
		rc = open_dpdk(&either->dpdk, path, mode == 1, (unsigned)queues, args, error);
		up = rc == 0 && either->dpdk.up;
	}
	if (rc == 0 && !up)
		cv_port_log(port, "%s %s", mode == 0 ? "waits for a peer at" : "connects to", path);
	return rc;
}

const struct cv_port_kind cv_port_vhost_user = {
	.name = "vhost-user",
	.keys = (const char *const[]){"path", "mode", "queues", "datapath", "socket_mode",
		"socket_group", NULL},
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(union vhost_user_port),
};
