// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The vhost-user protocol as the front end (the guest's side) speaks it, over one UNIX socket.
// Source: the vhost-user specification of the QEMU project, and VIRTIO 1.2 for the features.
//
// Every function returns 0 (or what it says) or -errno: -EPROTO for an answer that is not one,
// -EPIPE when the peer went away, -ETIMEDOUT when it did not answer within 5 s.
#ifndef GEN_PORT_VHOST_USER_H
#define GEN_PORT_VHOST_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VHOST_USER_SOCKET_MAX 107 // bytes in a UNIX socket's path

struct vhost_user {
	int socket;
	uint64_t features; // negotiated
	uint64_t protocol_features;
	uint32_t queue_pairs_max; // what the back end offers
};

struct vhost_user_vring {
	uint32_t index;
	uint32_t size;
	const void *desc, *avail, *used;
	int kick, call; // eventfds, stay the caller's
};

// Connects to a listening back end: the socket, or -errno at once (-ENOENT, -ECONNREFUSED …).
int vhost_user_connect(const char *path);

// Listens at `path` for a back end; replaces a socket that nobody listens at any more.
// -EADDRINUSE: somebody does. -EEXIST: the path is something else.
int vhost_user_listen(const char *path);

// Owner, features (`wanted` of what is offered), protocol features, number of queues.
int vhost_user_negotiate(struct vhost_user *user, int socket, uint64_t wanted);

// Shares one region; address in the guest's physical space = our virtual address.
int vhost_user_share(struct vhost_user *user, const void *memory, size_t bytes, int fd);

// Describes a vring, starting at index 0, not yet enabled.
int vhost_user_vring_setup(struct vhost_user *user, const struct vhost_user_vring *vring);

// Enables (or disables) a vring; without protocol features there is no need to.
int vhost_user_vring_enable(struct vhost_user *user, uint32_t index, bool enable);

// Kicks a vring for the first time: some back ends start it only then, as the specification has it,
// and keep a port down of which one is not started.
int vhost_user_vring_start(const struct vhost_user_vring *vring);

// Tells a back end that asked for it that the driver is ready.
int vhost_user_ready(struct vhost_user *user);

// Stops a vring; the index the back end had reached, or -errno.
int64_t vhost_user_vring_stop(struct vhost_user *user, uint32_t index);

#endif
