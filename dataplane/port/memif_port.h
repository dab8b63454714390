// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A memif port whose packets our own rings move.
#ifndef CV_MEMIF_PORT_H
#define CV_MEMIF_PORT_H

#include "memif/device.h"
#include "port/kind.h"
#include "port/rx_stash.h"

struct cv_memif_port {
	struct cv_port port;
	struct cv_memif device;
	struct rte_mempool *pool;
	struct cv_rx_stash *rx; // used under the lock of the queue
	uint8_t *
		bounce; // a packet in several segments is linearized here, under the tx queue's lock
};

// device.endpoint.path and client, device.session.id and slots are set. 0, or -errno with error set.
int cv_memif_port_open(
	struct cv_memif_port *memif, const struct cv_port_args *args, struct cv_error *error);

#endif
