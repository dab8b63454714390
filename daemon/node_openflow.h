// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A node as OpenFlow controllers see it: its next hops are ports, and the packets that leave by each
// of its ports have a flow table.
#ifndef CV_NODE_OPENFLOW_H
#define CV_NODE_OPENFLOW_H

#include "daemon/node.h"
#include "daemon/openflow/server.h"

// Makes the sockets, as the node's plan says; it is connected and not running yet. *server is NULL if
// the plan says nothing. 0, or a negative errno with error set.
int cv_node_openflow_open(
	struct cv_node *node, struct cv_of_server **server, struct cv_error *error);

#endif
