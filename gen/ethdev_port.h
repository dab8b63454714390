// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// A port of the tester that is any device DPDK has a driver for: memif, af_packet, af_xdp,
// virtio-user, ring, a NIC. Frames are copied from the pool into mbufs.

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

// Opens the device of `devargs` (rte_dev_probe's text: net_memif0,role=server,… or a PCI
// address); starts DPDK first, on `core`, if nobody has. 0, or -1 with a message.
int gen_ethdev_open(
	struct gen_port *port, const char *devargs, uint32_t core, char *error, size_t error_size);

// After the last port was closed.
void gen_ethdev_finish(void);
