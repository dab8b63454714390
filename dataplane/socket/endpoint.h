// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where one peer at a time comes to: a UNIX socket that we listen at (a second peer is turned away
// while there is one), or that we connect to, again and again for as long as it takes. Served by the
// node's one thread for sockets (loop.h); never blocks.
#ifndef CV_SOCKET_ENDPOINT_H
#define CV_SOCKET_ENDPOINT_H

#include <sys/un.h>

#include "packet/error.h"
#include "socket/loop.h"

struct cv_endpoint {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	bool client; // connects, rather than listens
	bool adopts; // its sockets come by cv_endpoint_adopt(): it neither listens nor connects before
	int type; // SOCK_STREAM or SOCK_SEQPACKET
	unsigned retry_ms; // between two attempts to connect
	// In the loop's thread: a peer is there, at a socket that does not block and stays ours (the
	// endpoint closes it). 0, or -errno: it is turned away.
	int (*connected)(struct cv_endpoint *endpoint, int fd);
	// In the loop's thread: the peer is gone, or is to go; what watches its socket goes first.
	void (*gone)(struct cv_endpoint *endpoint);

	// The loop's thread's own.
	int peer; // the socket; -1: there is none
	struct cv_loop_watch listener; // fd -1: not listening
	struct cv_loop_timer retry;
};

// path, client, type, retry_ms and the two calls are set; the caller holds the loop. Begins to listen (a path
// that nobody listens at any more was removed before) or to connect. 0, or -errno with error set.
int cv_endpoint_open(struct cv_endpoint *endpoint, struct cv_error *error);

// No call comes after this; `gone` is called for a peer that is there. Removes our socket's path.
void cv_endpoint_close(struct cv_endpoint *endpoint);

// In the loop's thread: closes the peer's socket, after `gone`, and waits for the next peer.
void cv_endpoint_drop(struct cv_endpoint *endpoint);

// Handing its sockets over to another process; all in the loop's thread. From hold on no peer comes,
// until go_on. forget closes our ends without `gone`; the path stays: the sockets are the other's.
void cv_endpoint_hold(struct cv_endpoint *endpoint);
void cv_endpoint_go_on(struct cv_endpoint *endpoint);
void cv_endpoint_forget(struct cv_endpoint *endpoint);

// Whether a descriptor that another process gave is such a socket: one that listens, or a peer's.
bool cv_endpoint_fits(const struct cv_endpoint *endpoint, int fd, bool listens);

// The other side, in the loop's thread: the sockets are ours from now on. -1: there is none. `connected`
// is not called.
void cv_endpoint_adopt(struct cv_endpoint *endpoint, int listener, int peer);

#endif
