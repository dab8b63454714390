// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port that goes over to another process while its peer stays. One process gives: it tells what its
// peer has said, then that no worker moves packets any more and where each ring goes on. The other takes
// that, and goes on. Until the first has left, it can resume.
//
// Called by one thread, the same or another; resume, leave and listen in the thread of socket/loop.h.
#ifndef CV_PORT_HANDOVER_H
#define CV_PORT_HANDOVER_H

#include "port/port.h"
#include "socket/record.h"

struct cv_port_handover {
	// The peer is listened to no more; packets move on. 0, or -errno with error set.
	int (*give)(struct cv_port *port, struct cv_record_sink *sink, struct cv_error *error);
	// No packet moves any more. 0, or -errno with error set.
	int (*freeze)(struct cv_port *port, struct cv_record_sink *sink, struct cv_error *error);
	// After either: as before.
	void (*resume)(struct cv_port *port);
	// The peer is the other process's; the port can be closed.
	void (*leave)(struct cv_port *port);

	// The other process, whose port was opened with config->adopts. A record of either call above; of
	// its descriptors those that are kept become -1. 0, or -errno with error set.
	int (*take)(struct cv_port *port, struct cv_record *record, struct cv_error *error);
	// Whether all is there. Nothing of the peer's was touched. 0, or -errno with error set.
	int (*taken)(struct cv_port *port, struct cv_error *error);
	// The first process has frozen it: packets may move.
	void (*adopt)(struct cv_port *port);
	// After that: the peer is listened to.
	void (*listen)(struct cv_port *port);
};

// For ports that have no peer: there is nothing to tell.
extern const struct cv_port_handover cv_port_handover_nothing;

#endif
