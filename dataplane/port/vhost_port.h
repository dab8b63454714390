// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A vhost-user port whose packets our own vring moves.
#ifndef CV_VHOST_PORT_H
#define CV_VHOST_PORT_H

#include "port/kind.h"
#include "port/rx_stash.h"
#include "vhost/device.h"

struct cv_vhost_port {
	struct cv_port port;
	struct cv_vhost_device device;
	struct rte_mempool *pool;
	struct cv_rx_stash *rx; // of each pair, used under the lock of its queue from the guest
	uint8_t **bounce; // of each pair: a packet in several segments is linearized here
};

// device's part that its opener sets is set, but for the calls. 0, or -errno with error set.
int cv_vhost_port_open(
	struct cv_vhost_port *vhost, const struct cv_port_args *args, struct cv_error *error);

#endif
