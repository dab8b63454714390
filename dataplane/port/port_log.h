// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What happens to a port while packets flow, for people: one line on stderr (and in syslog), by
// DPDK's log type convoy.port. Never called by a worker.
#ifndef CV_PORT_LOG_H
#define CV_PORT_LOG_H

#include <rte_log.h>

extern int cv_port_logtype;

#define CV_PORT_LOG(port, format, ...)                                                            \
	rte_log(RTE_LOG_NOTICE, (uint32_t)cv_port_logtype, "port %s: " format "\n", (port)->name, \
		##__VA_ARGS__)

#endif
