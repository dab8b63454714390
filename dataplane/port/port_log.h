// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What happens to a port while packets flow, for people: one line on stderr, "port left: peer
// gone". Not by rte_log(): how much DPDK says is another question. Never called by a worker. A port
// writes a few lines in a while (log_limit.h); the rest are counted.
#ifndef CV_PORT_LOG_H
#define CV_PORT_LOG_H

#include "port/port.h"

__attribute__((format(printf, 2, 3))) void cv_port_log(
	struct cv_port *port, const char *format, ...);

#endif
