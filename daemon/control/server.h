// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's control sockets: control.sock, where it is changed, and read.sock, where it is only read.
// Each client has a thread beside the workers' cores, so that one who sends or reads slowly, or asks
// for what takes long, is waited for by nobody else. Clients, and what they may take, are bounded: a
// new one takes the place of the one who has been silent for longest.
#ifndef CV_CONTROL_SERVER_H
#define CV_CONTROL_SERVER_H

#include "daemon/control/rpc.h"
#include "port/socket_access.h"

#define CV_CONTROL_PROTOCOL 1 // grows when a client that knows the one before cannot go on
#define CV_CONTROL_CLIENTS_MAX 32 // of each socket
#define CV_CONTROL_REQUEST_MAX (64u << 20) // bytes of a request
#define CV_CONTROL_READING_MAX (64u << 10) // the same where it is only read
#define CV_CONTROL_MEMORY_MAX \
	(128u << 20) // bytes of all requests longer than CV_CONTROL_READING_MAX
#define CV_CONTROL_SEND_S 10 // for which a client may leave its answer

struct cv_control;

struct cv_control_config {
	const char *folder; // where the sockets are made
	const char *version; // of the node
	const struct cv_socket_access *control, *reading; // who may connect
	struct cv_rpc rpc;
};

// Makes the sockets; whoever connects waits. The configuration must outlive the server. NULL with error
// set.
struct cv_control *cv_control_open(const struct cv_control_config *config, struct cv_error *error);

// Answers from now on. 0, or a negative errno with error set.
int cv_control_start(struct cv_control *control, struct cv_error *error);

// Closes all connections once what they asked for is done. NULL is allowed.
void cv_control_close(struct cv_control *control);

// Paths of the sockets.
const char *cv_control_path(const struct cv_control *control);
const char *cv_control_reading_path(const struct cv_control *control);

#endif
