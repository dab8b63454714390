// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The service manager has the memory that flows are in while the node runs (FDSTORE of sd_notify(3)), and
// gives it to the process that it starts after this one was killed (LISTEN_FDS). Nothing of it is in a file
// system, and the service manager frees it when the service ends (docs/handover.md).
//
// What belongs together has one name, "convoy-flows-" and 16 hexadecimal digits that grow, and comes in one
// message: files of flows, of what functions know of them, and a list of these. All by the main thread.
#ifndef CV_FLOW_STORE_H
#define CV_FLOW_STORE_H

#include <jansson.h>

#include "daemon/node.h"
#include "daemon/notify.h"

// Takes what the service manager kept of a process before, of this process's descriptors. To be called before
// others are opened.
void cv_flow_store_open(void);

// Whether it kept some: the process before forwarded.
bool cv_flow_store_has_some(void);

// Makes these flows anew. Nothing runs yet; the node is started. What is wrong with them is said on standard
// error, and costs flows only. Some may come back once the workers run.
void cv_flow_store_restore(struct cv_node *node);

// Whether all came back that will. Until then what was kept stays kept, for a process that comes after
// this one.
bool cv_flow_store_restored(struct cv_node *node);

// The service manager has the node's flows from now on, and no others. Says on standard error which it cannot
// have.
void cv_flow_store_begin(const struct cv_node *node, const struct cv_notify *notify);

// To be called often: they may be in other files since a change.
void cv_flow_store_due(const struct cv_node *node);

// The node ends, and its flows with it.
void cv_flow_store_end(void);

// What the "ready" event tells of it: a new {"restored", "lost", "ms"}; NULL: it was not begun.
json_t *cv_flow_store_describe(void);

// The name goes along to another process, which has the same flows, and begins with them.
void cv_flow_store_give(json_t *json);
void cv_flow_store_adopt(const json_t *json);

#endif
