// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The --port option: what a port is, from its text.
#ifndef GEN_PORT_PORTS_H
#define GEN_PORT_PORTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "gen/port/vhost_port.h"
#include "gen/traffic/wire.h"

struct gen_port_option {
	char text[192];
	char place[192]; // the socket, the interface, the device's arguments: no two ports share it
	const char *kind; // "vhost-user", "memif", "virtio-user", "af_packet", "dev"
	struct gen_vhost_options vhost; // of a vhost-user port; .path points to `place`
	json_t *config; // of any other: as the dataplane's ports take it
};

// Checks and parses one --port text. 0, or -1 with a message that says the fix.
// gen_port_option_free afterwards in both cases.
int gen_port_parse(
	struct gen_port_option *option, const char *text, char *error, size_t error_size);
void gen_port_option_free(struct gen_port_option *option);

// Whether it needs DPDK's environment (gen_dataplane_begin), and that with PCI.
bool gen_port_needs_dpdk(const struct gen_port_option *option, bool *pci);

// Opens the port (not yet attached). 0, or -1 with a message.
int gen_port_open(struct gen_port *port, const struct gen_port_option *option, char *error,
	size_t error_size);

#endif
