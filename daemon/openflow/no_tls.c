// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// In a build without OpenSSL.
#include "daemon/openflow/tls.h"

#include <errno.h>

struct cv_of_tls_context *cv_of_tls_context_open(
	const struct cv_of_tls_files *files, struct cv_error *error)
{
	cv_error_set(error, "openflow: this node was built without TLS (libssl-dev): write tcp: or "
			    "unix: in place of ssl:");
	return NULL;
}

struct cv_of_tls_context *cv_of_tls_context_open_key(
	const uint8_t *key, size_t bytes, struct cv_error *error)
{
	cv_error_set(error, "standby: this node was built without TLS (libssl-dev)");
	return NULL;
}

void cv_of_tls_context_close(struct cv_of_tls_context *context)
{
}

struct cv_of_tls *cv_of_tls_open(struct cv_of_tls_context *context, int fd, bool accepts)
{
	return NULL;
}

void cv_of_tls_close(struct cv_of_tls *tls)
{
}

ssize_t cv_of_tls_receive(struct cv_of_tls *tls, void *to, size_t bytes)
{
	errno = EPROTO;
	return -1;
}

ssize_t cv_of_tls_send(struct cv_of_tls *tls, const void *from, size_t bytes)
{
	errno = EPROTO;
	return -1;
}

const char *cv_of_tls_why(const struct cv_of_tls *tls)
{
	return "";
}

bool cv_of_tls_wants_room(const struct cv_of_tls *tls)
{
	return false;
}

bool cv_of_tls_has_more(const struct cv_of_tls *tls)
{
	return false;
}
