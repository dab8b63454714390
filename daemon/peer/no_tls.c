// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// In a build without OpenSSL.
#include "daemon/peer/tls.h"

#include <errno.h>

struct cv_peer_tls_context *cv_peer_tls_context_open(
	const struct cv_peer_tls_files *files, struct cv_error *error)
{
	cv_error_set(error, "openflow: this node was built without TLS (libssl-dev): write tcp: or "
			    "unix: in place of ssl:");
	return NULL;
}

struct cv_peer_tls_context *cv_peer_tls_context_open_key(
	const uint8_t *key, size_t bytes, struct cv_error *error)
{
	cv_error_set(error, "standby: this node was built without TLS (libssl-dev)");
	return NULL;
}

void cv_peer_tls_context_close(struct cv_peer_tls_context *context)
{
}

struct cv_peer_tls *cv_peer_tls_open(struct cv_peer_tls_context *context, int fd, bool accepts)
{
	return NULL;
}

void cv_peer_tls_close(struct cv_peer_tls *tls)
{
}

ssize_t cv_peer_tls_receive(struct cv_peer_tls *tls, void *to, size_t bytes)
{
	errno = EPROTO;
	return -1;
}

ssize_t cv_peer_tls_send(struct cv_peer_tls *tls, const void *from, size_t bytes)
{
	errno = EPROTO;
	return -1;
}

const char *cv_peer_tls_why(const struct cv_peer_tls *tls)
{
	return "";
}

bool cv_peer_tls_wants_room(const struct cv_peer_tls *tls)
{
	return false;
}

bool cv_peer_tls_has_more(const struct cv_peer_tls *tls)
{
	return false;
}
