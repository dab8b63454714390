// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where controllers are, or connect to, in Open vSwitch's words: tcp:HOST[:PORT], ssl:HOST[:PORT],
// unix:PATH, ptcp:[PORT][:HOST], pssl:[PORT][:HOST], punix:PATH. HOST is an IPv4 address or an IPv6 address in brackets.
#ifndef CV_PEER_TARGET_H
#define CV_PEER_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "packet/error.h"
#include "port/socket_access.h"

#define CV_OF_PORT_DEFAULT 6653
#define CV_PEER_TARGET_TEXT 128 // bytes with the NUL

struct cv_peer_target {
	char text[CV_PEER_TARGET_TEXT];
	bool listens;
	bool tls;
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
		struct sockaddr_un local;
	} address;
	socklen_t length;
	uint16_t tcp_port; // 0: a path
};

// listens: what is asked for. 0, or -EINVAL with error set.
int cv_peer_target_read(
	struct cv_peer_target *target, const char *text, bool listens, struct cv_error *error);

// A socket that does not block: one that listens, or one to connect. Its descriptor, or a negative
// errno with error set.
int cv_peer_target_open(const struct cv_peer_target *target, const struct cv_socket_access *access,
	struct cv_error *error);

// Begins to connect a socket that is connected to nobody. 0, -EINPROGRESS or another negative errno.
int cv_peer_target_connect(const struct cv_peer_target *target, int fd);

// Takes a socket back to where it can be connected again; its descriptor may be another one
// afterwards. A negative errno: there is none any more.
int cv_peer_target_again(const struct cv_peer_target *target, int fd);

#endif
