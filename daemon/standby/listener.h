// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Where a standby waits for its active node. Whoever has the key is one, and the last that greeted is the
// one. Everybody else is disconnected after a bounded time, has a bounded number of places, and costs a
// handshake.
#ifndef CV_STANDBY_LISTENER_H
#define CV_STANDBY_LISTENER_H

#include "daemon/standby/config.h"
#include "daemon/standby/session.h"
#include "port/log_limit.h"

#define CV_STANDBY_PEERS_MAX 16

struct cv_standby_peer {
	int fd; // -1: none
	struct cv_peer_tls *tls;
	struct cv_standby_session session;
	size_t out_sent; // of the session's
	uint64_t since_ns, heard_ns;
};

struct cv_standby_listener {
	const struct cv_standby_config *config;
	const struct cv_standby_own *own;
	unsigned own_count;
	const char *version;
	struct cv_peer_tls_context *tls;
	int fd;
	struct cv_standby_peer peers[CV_STANDBY_PEERS_MAX];
	struct cv_standby_peer *active; // that greeted last; NULL: none does
	struct cv_standby_set
		*whole; // the newest of which all flows are there; NULL: none. active may go
	// on with it
	uint64_t heard_ns; // when somebody who has the key last said something; 0: never
	uint64_t whole_ns; // when the last pass came
	uint64_t connections, refused; // that greeted, and all others
	uint64_t writes, bytes; // of connections before
	char noted[512]; // what was written last, and is not again
	struct cv_log_limit log;
};

// Listens. NULL with error set. What the node has (own) may be told later.
struct cv_standby_listener *cv_standby_listener_open(const struct cv_standby_config *config,
	struct cv_peer_tls_context *tls, const char *version, struct cv_error *error);
void cv_standby_listener_close(struct cv_standby_listener *listener);

// Waits until something is to be done, at most so long, or until wake can be read; and does it.
void cv_standby_listener_run(struct cv_standby_listener *listener, int wake, int ms);

// Bytes that active nodes have written, and in how many messages.
void cv_standby_listener_count(
	const struct cv_standby_listener *listener, uint64_t *writes, uint64_t *bytes);

#endif
