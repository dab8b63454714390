// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TLS (1.2 or newer) on a connection, by OpenSSL. Both ends of a controller's show a certificate, which the
// same authority must have signed; names in certificates are not looked at, as in Open vSwitch. Nothing
// here waits: the handshake goes on with each call of receive or send.
#ifndef CV_PEER_TLS_H
#define CV_PEER_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "packet/error.h"

// Paths of PEM files; NULL: none.
struct cv_peer_tls_files {
	const char *private_key; // that only its owner may read
	const char *certificate; // ours, with those between it and the authority's
	const char *ca_certificate; // the authority's
};

struct cv_peer_tls_context;
struct cv_peer_tls;

// Reads the files. NULL with error set: also in a build without OpenSSL.
struct cv_peer_tls_context *cv_peer_tls_context_open(
	const struct cv_peer_tls_files *files, struct cv_error *error);

// The same without certificates: both ends have a key (TLS 1.3, a pre-shared key with an exchange of fresh
// ones), and whoever does not is no end. It is copied.
struct cv_peer_tls_context *cv_peer_tls_context_open_key(
	const uint8_t *key, size_t bytes, struct cv_error *error);
void cv_peer_tls_context_close(struct cv_peer_tls_context *context); // NULL is allowed

// On a connected socket, which stays the caller's and does not block. accepts: the other end has
// connected. NULL: no memory.
struct cv_peer_tls *cv_peer_tls_open(struct cv_peer_tls_context *context, int fd, bool accepts);
void cv_peer_tls_close(
	struct cv_peer_tls *tls); // tells the other end, if it reads; NULL is allowed

// As recv() and send() do, errno included: EAGAIN where nothing can be done now; EPROTO, and then
// cv_peer_tls_why() has words. A send that could not be done must be repeated with the same bytes, or more
// behind them, wherever these are by then.
ssize_t cv_peer_tls_receive(struct cv_peer_tls *tls, void *to, size_t bytes);
ssize_t cv_peer_tls_send(struct cv_peer_tls *tls, const void *from, size_t bytes);
const char *cv_peer_tls_why(const struct cv_peer_tls *tls);

// Whether it waits for room in the socket; and whether bytes have come that the socket no longer has.
bool cv_peer_tls_wants_room(const struct cv_peer_tls *tls);
bool cv_peer_tls_has_more(const struct cv_peer_tls *tls);

#endif
