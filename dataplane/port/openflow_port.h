// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a port of kind openflow was sent, for the thread that serves controllers.
#ifndef CV_OPENFLOW_PORT_H
#define CV_OPENFLOW_PORT_H

#include <stdint.h>

#include "port/port.h"

#define CV_OPENFLOW_KEY_BYTES 32

// Whether the port is of that kind. The following are for such ports only.
bool cv_openflow_port_is(const struct cv_port *port);

// Up to n packets that the port was sent, in order; the caller frees them. Called by one thread.
unsigned cv_openflow_port_take(struct cv_port *port, struct rte_mbuf **packets, unsigned n);

// The key that they are authenticated by.
const uint8_t *cv_openflow_port_key(const struct cv_port *port);

#endif
