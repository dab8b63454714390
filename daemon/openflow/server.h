// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// OpenFlow controllers of a node: those that it connects to, and those that connect to it. One
// thread beside the workers' cores serves them all; none waits for another, and no worker for any.
// What was set stays when a controller goes.
#ifndef CV_OF_SERVER_H
#define CV_OF_SERVER_H

#include "daemon/openflow/switch.h"
#include "daemon/peer/target.h"
#include "daemon/peer/tls.h"

#define CV_PEER_TARGETS_MAX 8 // in each direction
#define CV_OF_ENTRIES_DEFAULT 131072

struct cv_of_config {
	struct cv_peer_target controllers[CV_PEER_TARGETS_MAX]; // to connect to
	struct cv_peer_target listen[CV_PEER_TARGETS_MAX];
	unsigned controllers_count, listen_count;
	struct cv_socket_access access; // of paths that are listened at
	struct cv_peer_tls_files tls; // all three, where a target asks for TLS
	uint32_t entries_max;
	uint64_t datapath_id; // 0: by a port's MAC address
};

// The keys controllers, listen, socket_mode, socket_group, private_key, certificate, ca_certificate,
// entries and datapath_id, into a struct cv_of_config that is zero.
extern const struct cv_param cv_of_params[];

struct cv_of_server;

// Makes the sockets; nobody is connected yet. config and node outlive the server. NULL with error set.
struct cv_of_server *cv_of_server_open(
	const struct cv_of_config *config, const struct cv_of_node *node, struct cv_error *error);

// From now on controllers are connected, and served. 0, or a negative errno with error set.
int cv_of_server_start(struct cv_of_server *server, struct cv_error *error);

// Disconnects all. NULL is allowed.
void cv_of_server_close(struct cv_of_server *server);

// The entries as they are, for whoever has the node as cv_of_node's begin() takes it.
const struct cv_of_entries *cv_of_server_entries(const struct cv_of_server *server);

struct cv_of_counters cv_of_server_count(const struct cv_of_server *server);

#endif
