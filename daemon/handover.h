// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One node takes over from another while packets flow (docs/handover.md): what they say to each other
// is in handover_message.h, what of counters goes along in handover_counts.h.
#ifndef CV_HANDOVER_H
#define CV_HANDOVER_H

#include "daemon/node.h"
#include "daemon/notify.h"

// The running node.

// Set once, before anybody can ask for it: who is told that another process is the service now.
void cv_handover_begin(const struct cv_notify *notify);

struct cv_handover_how {
	bool forget_flows; // also where functions keep what does not go along
	bool starts_with; // what the new node runs is also what it will be started with
};

// Gives the node to who is at the other end of the socket fd, the caller's. With the change begun
// (running.h). A new {"pid", "held_pkts"}, and the node is to end; or NULL with error set: it goes on as
// if nothing was.
json_t *cv_handover_give(
	struct cv_node *node, int fd, const struct cv_handover_how *how, struct cv_error *error);

// The process that has it now; 0: nobody else. For the main thread, which then ends the node.
int cv_handover_given_to(void);

// The new node: the socket fd becomes its own.

// Ports that the running node has as well are not opened from now on, but taken over. running: its plan,
// which stays the caller's.
void cv_handover_expect(const struct cv_plan *plan, const json_t *running);

// Says what it runs, and takes what the running node tells it. The node is connected and started; nothing
// runs. 0, or a negative errno with error set: it is to end.
int cv_handover_take(struct cv_node *node, int fd, struct cv_error *error);

// Begins to forward, in place of the running node, and takes what is left. 0; or a negative errno with
// error set: the running node goes on, and this one is to end.
int cv_handover_take_over(struct cv_node *node, int fd, struct cv_error *error);

// What the "ready" event tells of it: a new {"from", "version", "gap_us"}.
json_t *cv_handover_describe(void);

// Writes to where the node before did. Closes the socket.
void cv_handover_finish(int fd);

#endif
