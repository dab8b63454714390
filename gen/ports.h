// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// The --port option: what a port is, from its text.

#include <stddef.h>

#include "vhost_port.h"
#include "wire.h"

enum gen_port_kind { GEN_PORT_VHOST_USER, GEN_PORT_DEV };

struct gen_port_option {
	enum gen_port_kind kind;
	char text[192];
	char path[192]; // of the socket, or the device's arguments for DPDK
	struct gen_vhost_options vhost; // .path points to `path`
};

// Checks and takes apart one --port text. 0, or -1 with a message that says the fix.
int gen_port_parse(
	struct gen_port_option *option, const char *text, char *error, size_t error_size);

// Opens the port (not yet attached); DPDK, if it needs that, on `core`. 0, or -1 with a message.
int gen_port_open(struct gen_port *port, const struct gen_port_option *option, uint32_t core,
	char *error, size_t error_size);
