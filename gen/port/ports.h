// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The --port option: what a port is, from its text.
#ifndef GEN_PORT_PORTS_H
#define GEN_PORT_PORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/port/vhost_port.h"
#include "gen/traffic/wire.h"
#include "port/port.h"

struct gen_port_option {
	char text[192];
	char place[192]; // the socket, the interface, the device's arguments: no two ports share it
	const char *kind; // "vhost-user", "memif", "virtio-user", "af_packet", "dev"
	struct gen_vhost_options vhost; // of a vhost-user port; .path points to `place`
	struct cv_port_config *config; // of any other
	uint32_t slots; // of its send queue, as far as we know
};

// Checks and parses one --port text. 0, or -EINVAL with error set.
// gen_port_option_free afterwards in both cases.
int gen_port_parse(struct gen_port_option *option, const char *text, struct cv_error *error);
void gen_port_option_free(struct gen_port_option *option);

// Whether it needs DPDK's environment (gen_dataplane_begin), and that with PCI.
bool gen_port_needs_dpdk(const struct gen_port_option *option, bool *pci);

// Opens the port (not yet attached). 0, or a negative errno with error set.
int gen_port_open(
	struct gen_port *port, const struct gen_port_option *option, struct cv_error *error);

#endif
