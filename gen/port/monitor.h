// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Watches sockets while the one busy thread makes no system calls: a sleeping thread sets a
// port's `gone` as soon as its peer hangs up.
#ifndef GEN_PORT_MONITOR_H
#define GEN_PORT_MONITOR_H

#include "gen/traffic/wire.h"

// Starts the thread (before the caller pins itself to a core). 0 or -errno.
int gen_monitor_start(void);

// From now on a hang-up of `socket` sets port->gone, once. Closing the socket ends the watch.
int gen_monitor_watch(struct gen_port *port, int socket);

#endif
