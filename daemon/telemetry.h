// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's counters on DPDK's telemetry socket. /convoy/ports, /convoy/functions and
// /convoy/workers list names; with a name behind a comma they give its counters, as the final
// counts do. /convoy/accounting gives the node's, and /convoy/info what it gave up after start.
#ifndef CV_TELEMETRY_H
#define CV_TELEMETRY_H

// Registers the commands, once; they answer for the node of running.h.
void cv_telemetry_begin(void);

#endif
