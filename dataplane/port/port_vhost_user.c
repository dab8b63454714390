// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind vhost-user: the device's side of a virtio-net that a VM, or a virtio-user port, drives.
// path: the socket; mode: server (this port makes the socket and waits; the default) or client (the
// other side makes it; this port connects, again and again); queues: pairs, 1 to 64; datapath:
// vring (our own; the default) or dpdk (DPDK's net_vhost, to compare with: only with trusted: true,
// for what its peers say is not checked as ours is); packed: packed rings are offered, too (true;
// the datapath vring's); max_ring_size: descriptors that a peer's ring may have (4096; vring's).
// When the peer goes away the port stays: it waits for the next.
#include <errno.h>
#include <stdio.h>

#include "port/ethdev.h"
#include "port/port_log.h"
#include "port/socket_path.h"
#include "port/vhost_port.h"

#define RING_SIZE 4096 // QEMU has rings of up to 1024, DPDK's virtio-user of up to 32768
static const char *const modes[] = {"server", "client", NULL};
static const char *const datapaths[] = {"vring", "dpdk", NULL};

union vhost_user_port {
	struct cv_vhost_port vring;
	struct cv_ethdev_port dpdk;
};

enum { SERVER, CLIENT };
enum { VRING, DPDK };

struct options {
	struct cv_socket_config socket;
	unsigned mode, datapath;
	bool packed, trusted;
	uint16_t ring_size;
};

static const struct cv_param params[] = {
	{NULL, CV_PARAMS, CV_AT(struct options, socket), .params = cv_socket_params},
	{"mode", CV_WORD, CV_AT(struct options, mode), .words = modes},
	{"datapath", CV_WORD, CV_AT(struct options, datapath), .words = datapaths},
	{"packed", CV_BOOL, CV_AT(struct options, packed), .fallback = true},
	{"max_ring_size", CV_INTEGER, CV_AT(struct options, ring_size), .low = 64,
		.high = CV_VRING_SIZE_MAX, .fallback = RING_SIZE},
	{"trusted", CV_BOOL, CV_AT(struct options, trusted)},
	{0},
};

static int check(struct cv_port_config *config, struct cv_error *error)
{
	const struct options *options = config->own;

	config->needs.drivers = options->datapath != VRING;
	if (cv_socket_check(&options->socket, options->mode == SERVER, error) != 0)
		return -EINVAL;
	if (options->datapath == VRING || options->trusted)
		return 0;
	cv_error_set(error,
		"datapath: dpdk: a peer of DPDK's driver must be one that you trust; write "
		"trusted: true beside it, or leave datapath out");
	return -EINVAL;
}

static int open_dpdk(struct cv_ethdev_port *ethdev, const struct options *options,
	const struct cv_port_args *args, struct cv_error *error)
{
	ethdev->dev.driver = "net_vhost";
	ethdev->dev.rx_queues = args->config->queues;
	// Only the queues that the peer enables take packets: each has its receiving twin.
	ethdev->dev.tx_queues = args->config->queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_vhost_%u,iface=%s,queues=%u,client=%d", args->index, options->socket.path,
		args->config->queues, options->mode == CLIENT);
	ethdev->peer = "peer";
	return cv_ethdev_port_open(ethdev, args, error);
}

static int open_vring(struct cv_vhost_port *vhost, const struct options *options,
	const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_endpoint *endpoint = &vhost->device.endpoint;

	snprintf(endpoint->path, sizeof(endpoint->path), "%s", options->socket.path);
	endpoint->client = options->mode == CLIENT;
	endpoint->adopts = args->config->adopts;
	vhost->device.session.pairs = args->config->queues;
	vhost->device.session.ring_size_max = options->ring_size;
	vhost->device.session.packed = options->packed;
	return cv_vhost_port_open(vhost, args, error);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	union vhost_user_port *either = (union vhost_user_port *)port;
	const struct options *options = args->config->own;
	const bool client = options->mode == CLIENT;
	const char *path = options->socket.path;
	bool up;
	const bool adopts = args->config->adopts;
	int rc = client || adopts ? 0 : cv_socket_claim(path, error);

	if (rc != 0)
		return rc;
	if (options->datapath == VRING) {
		rc = open_vring(&either->vring, options, args, error);
		up = rc == 0 && cv_vhost_device_is_up(&either->vring.device);
	} else {
		rc = open_dpdk(&either->dpdk, options, args, error);
		up = rc == 0 && either->dpdk.up;
	}
	if (rc == 0 && !up && !adopts)
		cv_port_log(port, "%s %s", client ? "connects to" : "waits for a peer at", path);
	return rc;
}

const struct cv_port_kind cv_port_vhost_user = {
	.name = "vhost-user",
	.params = params,
	.config_size = sizeof(struct options),
	.socket = true,
	.mtu = 1500,
	.queues_max = CV_VHOST_PAIRS_MAX,
	.check = check,
	.open = open_port,
	.size = sizeof(union vhost_user_port),
};
