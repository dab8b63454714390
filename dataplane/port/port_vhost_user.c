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

#include "config/values.h"
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

// The keys, read.
struct options {
	const char *path;
	bool client, dpdk, packed, trusted;
	int64_t queues, ring_size;
};

static int read_options(const json_t *config, struct options *options, struct cv_error *error)
{
	const int mode = cv_key_word(config, "mode", modes, error);
	const int datapath = cv_key_word(config, "datapath", datapaths, error);

	*options = (struct options){.client = mode == 1, .dpdk = datapath == 1, .packed = true};
	if (mode < 0 || datapath < 0 ||
		cv_key_integer(
			config, "queues", 1, CV_VHOST_PAIRS_MAX, 1, &options->queues, error) != 0 ||
		cv_key_integer(config, "max_ring_size", 64, CV_VRING_SIZE_MAX, RING_SIZE,
			&options->ring_size, error) != 0 ||
		cv_config_bool(config, "packed", "", &options->packed, error) != 0 ||
		cv_config_bool(config, "trusted", "", &options->trusted, error) != 0)
		return -EINVAL;
	options->path = cv_socket_path(config, mode == 0, error);
	return options->path != NULL ? 0 : -EINVAL;
}

static int check(const json_t *config, struct cv_error *error)
{
	struct options options;

	if (read_options(config, &options, error) != 0)
		return -EINVAL;
	if (!options.dpdk || options.trusted)
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
	ethdev->dev.rx_queues = (uint16_t)options->queues;
	// Only the queues that the peer enables take packets: each has its receiving twin.
	ethdev->dev.tx_queues = (uint16_t)options->queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_vhost_%u,iface=%s,queues=%u,client=%d", args->index, options->path,
		(unsigned)options->queues, options->client);
	ethdev->peer = "peer";
	return cv_ethdev_port_open(ethdev, args, error);
}

static int open_vring(struct cv_vhost_port *vhost, const struct options *options,
	const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_endpoint *endpoint = &vhost->device.endpoint;

	snprintf(endpoint->path, sizeof(endpoint->path), "%s", options->path);
	endpoint->client = options->client;
	vhost->device.session.pairs = (uint16_t)options->queues;
	vhost->device.session.ring_size_max = (uint16_t)options->ring_size;
	vhost->device.session.packed = options->packed;
	return cv_vhost_port_open(vhost, args, error);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	union vhost_user_port *either = (union vhost_user_port *)port;
	struct options options;
	bool up;
	int rc = read_options(args->config, &options, error);

	if (rc == 0 && !options.client)
		rc = cv_socket_claim(options.path, error);
	if (rc != 0)
		return rc;
	if (!options.dpdk) {
		rc = open_vring(&either->vring, &options, args, error);
		up = rc == 0 && cv_vhost_device_is_up(&either->vring.device);
	} else {
		rc = open_dpdk(&either->dpdk, &options, args, error);
		up = rc == 0 && either->dpdk.up;
	}
	if (rc == 0 && !up)
		cv_port_log(port, "%s %s", options.client ? "connects to" : "waits for a peer at",
			options.path);
	return rc;
}

const struct cv_port_kind cv_port_vhost_user = {
	.name = "vhost-user",
	.keys = (const char *const[]){"path", "mode", "queues", "datapath", "packed",
		"max_ring_size", "trusted", "socket_mode", "socket_group", NULL},
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(union vhost_user_port),
};
