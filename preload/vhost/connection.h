// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Guests as the program's vhost library has them: the program's callbacks, with ours around them,
// so that we know of every device and of every change before the program does.
//
// A connection belongs to us from its device's beginning to its end, or to rte_vhost: its guest
// negotiated what our vring does not do (offloads). Never are both used on one queue. Its messages
// are validated by us either way (messages.h), unless the program uses what we cannot validate.
#ifndef CV_VHOST_CONNECTION_H
#define CV_VHOST_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_vhost.h>

#include "port/log_limit.h"
#include "preload/vhost/from_guest.h"
#include "preload/vhost/guest_device.h"
#include "preload/vhost/messages.h"
#include "preload/vhost/to_guest.h"
#include "preload/vhost/truncated.h"

// A socket of the program's.
struct cv_socket {
	char *path;
	const struct rte_vhost_device_ops *program; // what the program registered
	struct cv_log_limit log;
};

struct cv_connection {
	struct cv_guest_device device;
	struct cv_socket *socket;
	const struct rte_vhost_device_ops *program; // the socket's
	bool ours; // atomic; else rte_vhost's
	bool left; // with all its messages, to rte_vhost: the program uses more than we validate
	bool network; // its packets are rte_vhost's, and convoys pass as they are
	struct cv_messages messages;
	struct cv_truncated memory;
	struct cv_to_guest to[CV_GUEST_PAIRS_MAX]; // under the locks of the queues
	struct cv_from_guest from[CV_GUEST_PAIRS_MAX];
};

// What connections are made with; it stays as it is from the first one on.
struct cv_connection_config {
	const struct cv_outer *outer; // of convoys to the program; len 0: none
	rte_be16_t port; // UDP port of convoys
	uint32_t wait_ns; // that a frame which is not full waits at most; 0: none does
	bool across; // for packets of any queue, not only of the same
	const char *networks; // sockets whose peers are networks, with commas between them
	// rte_vhost_extern_callback_register() itself, not what the program finds.
	int (*set_handlers)(int vid, const struct rte_vhost_user_extern_ops *ops, void *context);
};

// Ops as the program gives them for a socket, in exchange for those that are to be registered. They
// are the program's own where there are too many sockets.
const struct rte_vhost_device_ops *cv_connection_wrap(
	const char *path, const struct rte_vhost_device_ops *program);

// The program handles messages of a connection itself: it is rte_vhost's, and the program's.
void cv_connection_leave(int vid);

extern struct cv_connection_config cv_connection_config;
extern struct cv_connection *cv_connections[RTE_MAX_VHOST_DEVICE]; // atomic

// The connection of a guest, also of one that is left to rte_vhost. NULL: there is none.
static CV_INLINE struct cv_connection *cv_connection_at(int vid)
{
	return vid >= 0 && vid < RTE_MAX_VHOST_DEVICE
		       ? __atomic_load_n(&cv_connections[vid], __ATOMIC_ACQUIRE)
		       : NULL;
}

// The connection to which a queue belongs. NULL: it is rte_vhost's.
static CV_INLINE struct cv_connection *cv_connection_ours(int vid, uint16_t queue)
{
	struct cv_connection *connection = cv_connection_at(vid);

	return connection != NULL && __atomic_load_n(&connection->ours, __ATOMIC_RELAXED) &&
			       queue < 2 * connection->device.pairs
		       ? connection
		       : NULL;
}

#endif
