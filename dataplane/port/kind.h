// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a kind of port is to the rest of this folder. Adding one: a file with its description, a
// line in the list of port.c, a line in meson.build, its keys in docs/ports.md.
#ifndef CV_PORT_KIND_H
#define CV_PORT_KIND_H

#include <stdint.h>

#include "config/params.h"
#include "port/port.h"

// Layer 3 of the longest frame that a packet's length can say, with Ethernet and two VLAN tags.
#define CV_PORT_ANY_MTU (UINT16_MAX - 22)

// What cv_port_open() was given.
struct cv_port_args {
	const struct cv_port_config *config;
	unsigned index;
	uint16_t senders;
	struct rte_mempool *pool;
};

struct cv_port_kind {
	const char *name;
	// The keys beside name, kind, mtu, mac and queues, and the size of the struct that they are
	// read into.
	const struct cv_param *params;
	size_t config_size;
	bool socket; // the struct begins with a struct cv_socket_config (socket_path.h)
	uint16_t mtu; // unless the plan says otherwise
	uint16_t queues_max; // 0: it has one, and no key for it
	// Checks what the table cannot say, without any effect; may say more of what the port needs.
	// 0, or -EINVAL with error set. May be NULL.
	int (*check)(struct cv_port_config *config, struct cv_error *error);
	// Opens a port. port is a zeroed struct of size bytes that begins with a struct cv_port,
	// whose name, kind, mac, mtu and socket = -1 are already set. 0, or -errno with error set:
	// port is then freed by the caller.
	int (*open)(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error);
	size_t size;
	bool any_length; // it needs no buffer as long as its mtu; else mtu is limited by buffers
	struct cv_port_needs needs;
};

// "slots": what the ring of a link holds; all of it without the key.
#define CV_PORT_SLOTS(config)                                                                      \
	{                                                                                          \
		"slots", CV_INTEGER, CV_AT(config, slots), .low = 64, .high = 1024,                \
							   .fallback = 1024, .power_of_two = true, \
	}

// A member const char *: a string that can stand in a device's arguments, without the characters
// that DPDK reads as punctuation there.
int cv_read_plain(const struct cv_where *at, const char *key, const json_t *value, void *member);

extern const struct cv_port_kind cv_port_pcap, cv_port_null, cv_port_vhost_user,
	cv_port_virtio_user, cv_port_memif, cv_port_af_packet, cv_port_af_xdp, cv_port_dpdk,
	cv_port_openflow, cv_port_shared;

#endif
