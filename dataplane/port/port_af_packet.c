// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind af_packet: an interface of the kernel (a NIC, veth, tap), by packet sockets: works
// everywhere, needs CAP_NET_RAW. interface: its name; queues: 1 to 16, packets are spread over
// them by flow (PACKET_FANOUT); slots: frames in each of its rings. The kernel goes on seeing the packets, too. Fragments stay fragments;
// those of a packet share a queue, which need not be that of the flow's whole packets.
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>

#include "port/ethdev.h"
#include "port/interface.h"
#include "port/packet_socket.h"

struct keys {
	const char *interface;
	unsigned slots;
};

static const struct cv_param params[] = {
	{NULL, CV_PARAMS, CV_AT(struct keys, interface), .params = cv_interface_params},
	CV_PORT_SLOTS(struct keys),
	{0},
};

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;
	const struct keys *keys = args->config->own;
	const char *name = keys->interface;
	const uint16_t queues = args->config->queues;
	// A slot of the socket's rings: a frame and what the kernel puts before it.
	const unsigned slot = rte_align32pow2(port->mtu + 256);
	int rc;

	rc = cv_interface_rights((const int[]){CAP_NET_RAW, -1}, error);
	if (rc == 0)
		rc = cv_interface_is_up(name, error);
	if (rc != 0)
		return rc;
	ethdev->dev.driver = "net_af_packet";
	ethdev->dev.any_mtu = true; // that of its slots; DPDK's driver claims 1,518 bytes for all
	ethdev->dev.rx_queues = queues;
	ethdev->dev.tx_queues = queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs),
		"net_af_packet%u,iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u", args->index,
		name, queues, slot, RTE_MAX(slot, 4096u), keys->slots);
	cv_packet_socket_begin();
	return cv_ethdev_port_open(ethdev, args, error);
}

const struct cv_port_kind cv_port_af_packet = {
	.name = "af_packet",
	.params = params,
	.config_size = sizeof(struct keys),
	.mtu = 1500,
	.queues_max = 16,
	.open = open_port,
	.size = sizeof(struct cv_ethdev_port),
	.needs = {.drivers = true, .interface = true},
};
