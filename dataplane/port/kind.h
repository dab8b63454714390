// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a kind of port is to the rest of this folder. Adding one: a file with its description, a
// line in the list of port.c, a line in meson.build, its keys in docs/ports.md.
#ifndef CV_PORT_KIND_H
#define CV_PORT_KIND_H

#include <stdint.h>

#include "port/keys.h"
#include "port/port.h"

// Layer 3 of the longest frame that a packet's length can say, with Ethernet and two VLAN tags.
#define CV_PORT_ANY_MTU (UINT16_MAX - 22)

// What cv_port_open() was given.
struct cv_port_args {
	const void *config; // the kind's struct, read
	bool mtu_given, mac_given; // in the plan
	unsigned index;
	uint16_t senders;
	struct rte_mempool *pool;
};

struct cv_port_kind {
	const char *name;
	// The keys beside name, kind, mtu and mac, and the size of the struct that they are read into.
	const struct cv_param *params;
	size_t config_size;
	bool socket; // the struct begins with a struct cv_socket_config (socket_path.h)
	uint16_t mtu; // unless the plan says otherwise
	// Checks what the table cannot say, without any effect. 0, or -EINVAL with error set. May be
	// NULL.
	int (*check)(const void *config, struct cv_error *error);
	// Opens a checked port. port is a zeroed struct of size bytes that begins with a struct
	// cv_port, whose name, kind, mac, mtu and socket = -1 are already set. 0, or -errno with
	// error set: port is then freed by the caller.
	int (*open)(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error);
	size_t size;
	bool any_length; // it needs no buffer as long as its mtu; else mtu is limited by buffers
	bool shares_packets; // cv_port_shares_packets()
	struct cv_port_needs needs; // cv_port_needs()
};

extern const struct cv_port_kind cv_port_pcap, cv_port_null, cv_port_vhost_user,
	cv_port_virtio_user, cv_port_memif, cv_port_af_packet, cv_port_af_xdp, cv_port_dpdk;

#endif
