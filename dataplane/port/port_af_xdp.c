// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind af_xdp: an interface of the kernel by AF_XDP sockets: faster than af_packet, and the kernel
// no longer sees the packets of these queues. interface: its name; queues: the first 1 to 64 of
// the interface (ethtool -L sets how many it has, and its RSS spreads the packets). Needs
// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. Frames up to 3,498 bytes (a page).
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>

#include "port/ethdev.h"
#include "port/interface.h"

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;
	const char *name = *(const char *const *)args->config->own;
	const uint16_t queues = args->config->queues;
	int rc;

	rc = cv_interface_rights((const int[]){CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, -1}, error);
	if (rc == 0)
		rc = cv_interface_is_up(name, error);
	if (rc != 0)
		return rc;
	ethdev->dev.driver = "net_af_xdp";
	ethdev->dev.rx_queues = queues;
	ethdev->dev.tx_queues = queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_af_xdp%u,iface=%s,start_queue=0,queue_count=%u", args->index, name, queues);
	return cv_ethdev_port_open(ethdev, args, error);
}

const struct cv_port_kind cv_port_af_xdp = {
	.name = "af_xdp",
	.params = cv_interface_params,
	.config_size = sizeof(const char *),
	.mtu = 1500,
	.queues_max = 64,
	.open = open_port,
	.size = sizeof(struct cv_ethdev_port),
	// Its program is taken from the interface at the end.
	.needs = {.drivers = true,
		.shared_packets = true,
		.capabilities = 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW | 1ull << CAP_BPF,
		.interface = true,
		.bpf = true},
};
