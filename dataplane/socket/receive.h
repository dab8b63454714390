// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Bytes and descriptors from a peer, as they come: nothing here waits, and no descriptor that a peer
// sends stays open unless the caller takes it.
#ifndef CV_SOCKET_RECEIVE_H
#define CV_SOCKET_RECEIVE_H

#include <stddef.h>
#include <stdint.h>

#define CV_SOCKET_FDS_MAX 8 // that come with one message

// Descriptors that came with a message; who takes one puts -1 there.
struct cv_socket_fds {
	unsigned count;
	int fds[CV_SOCKET_FDS_MAX];
};

void cv_socket_fds_close(struct cv_socket_fds *fds);

// Receives up to size >= 1 bytes. Descriptors that come along are added to fds (close-on-exec); where
// fds is NULL, none may come. Returns the bytes; 0: the peer has ended; -EAGAIN: nothing is there;
// -EMFILE: more descriptors than are allowed, or than this process can have; other -errno. After an
// error the connection is to be closed; fds is still the caller's to close.
int cv_socket_receive(int fd, void *data, size_t size, struct cv_socket_fds *fds);

// Sends size bytes, or nothing at all to a peer that does not read. 0 or -errno: close then.
int cv_socket_send(int fd, const void *data, size_t size);

// The same with a descriptor, which stays the caller's; passed -1: without.
int cv_socket_send_with(int fd, const void *data, size_t size, int passed);

// The same with all of these descriptors, which stay the caller's.
int cv_socket_send_fds(int fd, const void *data, size_t size, const struct cv_socket_fds *fds);

#endif
