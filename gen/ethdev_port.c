// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "ethdev_port.h"

#include <stdio.h>

int gen_ethdev_open(struct gen_port *port, const char *devargs, char *error, size_t error_size)
{
	snprintf(error, error_size, "--port %s: not there yet", port->name);
	return -1;
}
