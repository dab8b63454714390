// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How a vhost-user port finds its device and tells it of its rings, once and again. Part of
// vhost_port.h's.
#ifndef GEN_PORT_VHOST_ATTACH_H
#define GEN_PORT_VHOST_ATTACH_H

#include <stddef.h>
#include <stdint.h>

#include "gen/port/vhost_port.h"
#include "gen/port/vhost_queue.h"
#include "gen/port/vhost_user.h"

// A port's state.
struct gen_vhost {
	struct gen_vhost_options options;
	char path[VHOST_USER_SOCKET_MAX + 1];
	struct vhost_user user;
	int memfd, listener;
	uint8_t *memory;
	size_t memory_bytes;
	uint8_t *rings; // in memory; one queue's rx and tx ring after another
	uint16_t *free_ids; // of all rings
	struct gen_vhost_queue queues[GEN_MAX_QUEUES];
};

// Begins all queues anew.
void gen_vhost_begin(struct gen_port *port, uint64_t features);

// struct gen_port's attach: to the device it has, or the next that comes until the deadline.
int gen_vhost_attach(struct gen_port *port, uint64_t deadline_ns, struct cv_error *error);

// Stops the rings and leaves the device. Nothing happens if there is none.
void gen_vhost_detach(struct gen_port *port);

#endif
