// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port of the tester that is one of the dataplane's own kinds: memif, virtio-user, af_packet,
// and any device that DPDK has a driver for. Frames are copied from the pool into mbufs. Where
// the kind finds its peer again after that went away, so does the tester.
#ifndef GEN_PORT_DATAPLANE_PORT_H
#define GEN_PORT_DATAPLANE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/traffic/wire.h"
#include "packet/error.h"
#include "port/port.h"

// Starts DPDK with this thread on `core`, on hugepages if there are enough, once for the process.
// pci: one of the ports will be a PCI device. 0 or -EIO.
int gen_dataplane_begin(uint32_t core, bool pci, struct cv_error *error);

// Opens the port that config describes, whose send queue has so many slots. 0, or a negative errno
// with error set.
int gen_dataplane_open(struct gen_port *port, const struct cv_port_config *config, uint32_t slots,
	struct cv_error *error);

// After the last port was closed. Nothing happens if it was not begun.
void gen_dataplane_end(void);

#endif
