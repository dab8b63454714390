// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind dpdk: any other device that DPDK has a driver for. devargs: a PCI address
// ("0000:3b:00.0", with arguments after a comma), or a virtual device ("net_tap0,iface=tap0");
// queues: 1 to 64, with RSS where the device can.
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "port/ethdev.h"

static bool is_pci(const char *devargs)
{
	unsigned domain, bus, device, function;

	return sscanf(devargs, "%x:%x:%x.%u", &domain, &bus, &device, &function) == 4 ||
	       sscanf(devargs, "%x:%x.%u", &bus, &device, &function) == 3;
}

static const struct cv_param params[] = {
	{"devargs", CV_TEXT, .size = sizeof(const char *),
		.high = sizeof(((struct cv_ethdev *)NULL)->devargs) - 1, .required = true},
	{0},
};

static int check(struct cv_port_config *config, struct cv_error *error)
{
	const char *devargs = *(const char *const *)config->own;

	config->needs.pci = is_pci(devargs);
	if (!config->needs.pci && strncmp(devargs, "net_", 4) != 0 &&
		strncmp(devargs, "eth_", 4) != 0) {
		cv_error_set(error,
			"devargs: \"%.64s\": is neither a PCI address (0000:3b:00.0) nor a virtual "
			"network device (net_tap0,iface=tap0)",
			devargs);
		return -EINVAL;
	}
	return 0;
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;
	const char *devargs = *(const char *const *)args->config->own;

	if (args->config->needs.pci && rte_eal_has_pci() == 0) {
		cv_error_set(error, "devargs: %.64s: the EAL was started without PCI", devargs);
		return -ENODEV;
	}
	ethdev->dev.rx_queues = args->config->queues;
	snprintf(ethdev->dev.devargs, sizeof(ethdev->dev.devargs), "%s", devargs);
	ethdev->peer = "link";
	return cv_ethdev_port_open(ethdev, args, error);
}

const struct cv_port_kind cv_port_dpdk = {
	.name = "dpdk",
	.params = params,
	.config_size = sizeof(const char *),
	.mtu = 1500,
	.queues_max = 64,
	.check = check,
	.open = open_port,
	.size = sizeof(struct cv_ethdev_port),
	// Drivers map memory for a NIC as the heap grows, and undo at the end what they set up.
	.needs = {.drivers = true,
		.shared_packets = true,
		.capabilities = 1ull << CAP_IPC_LOCK | 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW |
				1ull << CAP_BPF,
		.interface = true,
		.bpf = true},
};
