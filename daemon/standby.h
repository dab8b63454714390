// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Two nodes on two machines: the flows of the active one are copied to its standby, which goes on with them
// after the first one's death (docs/handover.md). A node that listens waits: it is all there, but forwards
// nothing. One that forwards copies its flows to where its plan says, by a thread of its own. All by the main
// thread unless another is named.
#ifndef CV_STANDBY_H
#define CV_STANDBY_H

#include <jansson.h>

#include "daemon/flow_files.h"
#include "daemon/node.h"
#include "daemon/notify.h"

// Before rights are given up: reads the key, makes sockets. was_active: it does not wait, whatever the plan
// says. 0, or a negative errno with error set.
int cv_standby_open(const struct cv_plan *plan, bool was_active, struct cv_error *error);

// Whether the node is to wait, and does. By any thread.
bool cv_standby_waits(void);

// Waits until the node is to forward. False: a signal came, it is to end.
bool cv_standby_wait(struct cv_node *node, struct cv_notify *notify);

// Nothing runs yet: makes the flows anew that came while it waited.
void cv_standby_restore(struct cv_node *node);

// The node forwards (daemon/running.h): its flows are copied from now on, if it has a standby. 0, or a negative errno
// with error set.
int cv_standby_give_begin(struct cv_error *error);

void cv_standby_end(void);

// By any thread. A new object; NULL: the node has no standby, and is none.
json_t *cv_standby_describe(void);

// By any thread: a waiting node is to forward. 0, or a negative errno with error set.
int cv_standby_activate(struct cv_error *error);

// standby_give.c: the parts of the above that an active node has.
int cv_standby_give_open(const struct cv_standby_config *config, struct cv_peer_tls_context *tls,
	struct cv_error *error);
void cv_standby_give_end(void);
json_t *cv_standby_give_describe(void); // NULL: it copies nothing

#endif
