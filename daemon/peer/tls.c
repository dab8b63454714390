// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/peer/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#define KEY_MAX 64
#define KEY_NAME "convoy"

struct cv_peer_tls_context {
	SSL_CTX *ctx;
	uint8_t key[KEY_MAX]; // that both ends have
	size_t key_bytes; // 0: they have certificates
};

struct cv_peer_tls {
	SSL *ssl;
	bool wants_room;
	char why[160];
};

// What OpenSSL says last, without its code and its functions' names.
static const char *reason(void)
{
	const unsigned long code = ERR_peek_last_error();
	const char *words = code == 0 ? NULL : ERR_reason_error_string(code);

	return words != NULL ? words : strerror(errno != 0 ? errno : EPROTO);
}

static int wrong_file(const char *key, const char *path, const char *why, struct cv_error *error)
{
	cv_error_set(error, "openflow: %s: %s: %s", key, path, why);
	return -EINVAL;
}

static int no_password(char *to, int bytes, int writes, void *of)
{
	return 0; // nobody is asked
}

// A pipe would be waited for.
static int check_file(const char *key, const char *path, struct stat *st, struct cv_error *error)
{
	if (stat(path, st) != 0)
		return wrong_file(key, path, strerror(errno), error);
	return S_ISREG(st->st_mode) ? 0 : wrong_file(key, path, "is no file", error);
}

static int read_key(SSL_CTX *ctx, const char *path, struct cv_error *error)
{
	struct stat st;

	if (check_file("private_key", path, &st, error) != 0)
		return -EINVAL;
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return wrong_file(
			"private_key", path, "others may read or write it; chmod 600 it", error);
	if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
		return wrong_file("private_key", path, reason(), error);
	return 0;
}

static int read_files(SSL_CTX *ctx, const struct cv_peer_tls_files *files, struct cv_error *error)
{
	struct stat st;

	if (check_file("certificate", files->certificate, &st, error) != 0 ||
		check_file("ca_certificate", files->ca_certificate, &st, error) != 0)
		return -EINVAL;
	if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate) != 1)
		return wrong_file("certificate", files->certificate, reason(), error);
	if (read_key(ctx, files->private_key, error) != 0)
		return -EINVAL;
	if (SSL_CTX_load_verify_file(ctx, files->ca_certificate) != 1)
		return wrong_file("ca_certificate", files->ca_certificate, reason(), error);
	return 0;
}

// What is the same of all; what it is for goes before errors.
static struct cv_peer_tls_context *make_context(
	const char *what, int least_version, struct cv_error *error)
{
	struct cv_peer_tls_context *context = calloc(1, sizeof(*context));

	ERR_clear_error();
	errno = 0;
	if (context != NULL)
		context->ctx = SSL_CTX_new(TLS_method());
	if (context == NULL || context->ctx == NULL) {
		cv_error_set(error, "%s: no TLS: %s", what, reason());
		cv_peer_tls_context_close(context);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(context->ctx, least_version);
	SSL_CTX_set_options(
		context->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(context->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(
		context->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_clear_mode(context->ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_verify(context->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_default_passwd_cb(context->ctx, no_password);
	return context;
}

struct cv_peer_tls_context *cv_peer_tls_context_open(
	const struct cv_peer_tls_files *files, struct cv_error *error)
{
	struct cv_peer_tls_context *context = make_context("openflow", TLS1_2_VERSION, error);

	if (context == NULL || read_files(context->ctx, files, error) == 0)
		return context;
	cv_peer_tls_context_close(context);
	return NULL;
}

// The key of the connection's context. Its name is the same for all.
static unsigned key_of(SSL *ssl, uint8_t *to, unsigned room)
{
	const struct cv_peer_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	if (context->key_bytes > room)
		return 0;
	memcpy(to, context->key, context->key_bytes);
	return (unsigned)context->key_bytes;
}

static unsigned key_of_client(
	SSL *ssl, const char *hint, char *name, unsigned name_room, uint8_t *key, unsigned room)
{
	if (name_room < sizeof(KEY_NAME))
		return 0;
	memcpy(name, KEY_NAME, sizeof(KEY_NAME));
	return key_of(ssl, key, room);
}

static unsigned key_of_server(SSL *ssl, const char *name, uint8_t *key, unsigned room)
{
	return name != NULL && strcmp(name, KEY_NAME) == 0 ? key_of(ssl, key, room) : 0;
}

struct cv_peer_tls_context *cv_peer_tls_context_open_key(
	const uint8_t *key, size_t bytes, struct cv_error *error)
{
	struct cv_peer_tls_context *context = make_context("standby", TLS1_3_VERSION, error);

	if (context == NULL)
		return NULL;
	context->key_bytes = bytes < KEY_MAX ? bytes : KEY_MAX;
	memcpy(context->key, key, context->key_bytes);
	SSL_CTX_set_app_data(context->ctx, context);
	SSL_CTX_set_num_tickets(context->ctx, 0); // nobody comes back by one
	SSL_CTX_set_psk_client_callback(context->ctx, key_of_client);
	SSL_CTX_set_psk_server_callback(context->ctx, key_of_server);
	return context;
}

void cv_peer_tls_context_close(struct cv_peer_tls_context *context)
{
	if (context == NULL)
		return;
	SSL_CTX_free(context->ctx);
	OPENSSL_cleanse(context->key, sizeof(context->key));
	free(context);
}

struct cv_peer_tls *cv_peer_tls_open(struct cv_peer_tls_context *context, int fd, bool accepts)
{
	struct cv_peer_tls *tls = calloc(1, sizeof(*tls));

	if (tls == NULL)
		return NULL;
	tls->ssl = SSL_new(context->ctx);
	if (tls->ssl == NULL || SSL_set_fd(tls->ssl, fd) != 1) {
		SSL_free(tls->ssl);
		free(tls);
		return NULL;
	}
	// OpenSSL takes a connection by a key for one that goes on, and asks whose that is.
	if (accepts && context->key_bytes > 0)
		SSL_set_session_id_context(
			tls->ssl, (const uint8_t *)KEY_NAME, sizeof(KEY_NAME) - 1);
	if (accepts)
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	return tls;
}

void cv_peer_tls_close(struct cv_peer_tls *tls)
{
	if (tls == NULL)
		return;
	if (tls->why[0] == '\0' && SSL_is_init_finished(tls->ssl))
		SSL_shutdown(tls->ssl);
	SSL_free(tls->ssl);
	free(tls);
}

// What a call came to: 0 at the other's end, else -1 with errno.
static ssize_t failed(struct cv_peer_tls *tls, int rc)
{
	const int before = errno;
	const long verified = SSL_get_verify_result(tls->ssl);

	switch (SSL_get_error(tls->ssl, rc)) {
	case SSL_ERROR_WANT_WRITE:
		tls->wants_room = true;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		errno = before;
		snprintf(tls->why, sizeof(tls->why), "%s",
			verified != X509_V_OK && SSL_get0_peer_certificate(tls->ssl) != NULL
				? X509_verify_cert_error_string(verified)
				: reason());
		errno = EPROTO;
		return -1;
	}
}

ssize_t cv_peer_tls_receive(struct cv_peer_tls *tls, void *to, size_t bytes)
{
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_read(tls->ssl, to, (int)(bytes < INT_MAX ? bytes : INT_MAX));
	return rc > 0 ? rc : failed(tls, rc);
}

ssize_t cv_peer_tls_send(struct cv_peer_tls *tls, const void *from, size_t bytes)
{
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_write(tls->ssl, from, (int)(bytes < INT_MAX ? bytes : INT_MAX));
	tls->wants_room = rc > 0 && (size_t)rc < bytes;
	return rc > 0 ? rc : failed(tls, rc);
}

const char *cv_peer_tls_why(const struct cv_peer_tls *tls)
{
	return tls->why;
}

bool cv_peer_tls_wants_room(const struct cv_peer_tls *tls)
{
	return tls->wants_room;
}

bool cv_peer_tls_has_more(const struct cv_peer_tls *tls)
{
	return SSL_pending(tls->ssl) > 0;
}
