// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the library is to do, from the environment variable CONVOY_ETHDEV that `convoy preload
// ethdev` sets: words KEY=VALUE with spaces between them. Unset: the defaults.
#ifndef CV_ETHDEV_CONFIG_H
#define CV_ETHDEV_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "convoy/outer.h"
#include "packet/error.h"

#define CV_ETHDEV_ENV "CONVOY_ETHDEV"

enum cv_ethdev_mode {
	CV_ETHDEV_AUTO, // views, until the program turns out to need headroom; then copies
	CV_ETHDEV_VIEW, // received packets stay in their convoy, and may leave in it
	CV_ETHDEV_COPY, // each is copied into a buffer of its own
};

struct cv_ethdev_config {
	enum cv_ethdev_mode mode; // mode=auto|view|copy
	uint64_t ports; // ports=0,2: bit i: port i below 64; default all
	uint16_t port; // port=51966: UDP destination port of convoys, received and sent
	uint16_t mtu; // mtu=1500: of what is sent, bytes of the IP packet
	uint32_t wait_ns; // wait=5000: that a frame which is not full waits at most; under a switch
	bool across; // across=yes: for packets of any guest
	char networks[512]; // network=PATH,PATH: sockets of peers that are networks; under a switch
	bool fixed; // a next hop is given: everything goes there
	struct cv_outer_config next_hop; // dst_mac= src_mac= dst= src= nfi= vlan=
	char counts[256]; // counts=FILE: JSON, written when the program ends; "" for none
};

const char *cv_ethdev_mode_name(enum cv_ethdev_mode mode);

// Fills config from text (NULL: defaults), the value of an environment variable of that name. 0, or
// -EINVAL with error set.
int cv_ethdev_config_read(struct cv_ethdev_config *config, const char *variable, const char *text,
	struct cv_error *error);

#endif
