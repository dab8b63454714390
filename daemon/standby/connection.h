// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An active node's connection to its standby. Its calls wait, for a bounded time each: they are for a thread
// that has nothing else to do.
#ifndef CV_STANDBY_CONNECTION_H
#define CV_STANDBY_CONNECTION_H

#include "daemon/standby/config.h"
#include "daemon/standby/message.h"

#define CV_STANDBY_PATIENCE_MS 5000 // until the other end is given up

struct cv_standby_connection {
	const struct cv_peer_target *to;
	struct cv_peer_tls_context *context;
	int fd; // a socket, also while it is not connected: the sandbox makes none
	int wake; // an event: all that waits gives up
	struct cv_peer_tls *tls; // NULL: not connected
	uint8_t out[32768];
	size_t out_used;
	uint8_t in[2048]; // answers are short
	size_t in_used;
	char why[200]; // it is broken
};

// Makes the socket. 0, or a negative errno with error set. context and wake are the caller's, and stay.
int cv_standby_connection_open(struct cv_standby_connection *connection,
	const struct cv_peer_target *to, struct cv_peer_tls_context *context, int wake,
	struct cv_error *error);
void cv_standby_connection_close(struct cv_standby_connection *connection);

// Connects; the handshake comes with the first message. False: why says so, as for all below.
bool cv_standby_connect(struct cv_standby_connection *connection);
void cv_standby_disconnect(struct cv_standby_connection *connection);

// Says a message; it is sent when there are enough, or with the flush.
bool cv_standby_say(struct cv_standby_connection *connection,
	const struct cv_standby_header *header, const void *body);
bool cv_standby_flush(struct cv_standby_connection *connection);

// Waits for an answer, whose body is of at most CV_STANDBY_ANSWER_MAX bytes.
enum cv_standby_heard { CV_STANDBY_BROKEN = -1, CV_STANDBY_NOTHING, CV_STANDBY_HEARD };

#define CV_STANDBY_ANSWER_MAX 1024u

enum cv_standby_heard cv_standby_hear(struct cv_standby_connection *connection,
	struct cv_standby_header *header, uint8_t *body, int ms);

#endif
