// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A vhost-user port of the tester: the tester plays the guest. Its frames lie prebuilt in
// memory that it shares with the device, received buffers are examined in place, descriptors are
// written once: sending a packet is writing its stamp.
#ifndef GEN_PORT_VHOST_PORT_H
#define GEN_PORT_VHOST_PORT_H

#include <stdint.h>

#include "gen/port/vring.h"
#include "gen/traffic/wire.h"

struct gen_vhost_options {
	const char *path; // of the socket
	bool server; // listen, rather than connect
	uint32_t queues; // queue pairs
	uint32_t ring; // descriptors of a vring, power of two
	uint32_t buffer; // largest frame, bytes without FCS
	uint64_t memory; // for prebuilt frames, bytes
};

// Makes the port (not yet attached) in *port. 0 or -errno: -ENOMEM, or of the socket in server
// mode. `path` may go away afterwards.
int gen_vhost_open(struct gen_port *port, const struct gen_vhost_options *options);

// As gen_vhost_open and attach, but without a socket: somebody in this process plays the device
// on the rings of gen_vhost_rings.
int gen_vhost_open_inside(struct gen_port *port, const struct gen_vhost_options *options);

// The rings of a queue pair: from the device's side, rx is where it puts frames.
void gen_vhost_rings(
	struct gen_port *port, uint32_t queue, struct gen_vring **rx, struct gen_vring **tx);

#endif
