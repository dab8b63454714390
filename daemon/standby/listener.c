// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/standby/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GREETING_NS 5000000000ull // until it has greeted
#define SILENT_NS 10000000000ull // of silence, until it is disconnected
#define READS 64 // of a peer, one after the other: then it is others' turn

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct cv_standby_listener *cv_standby_listener_open(const struct cv_standby_config *config,
	struct cv_peer_tls_context *tls, const char *version, struct cv_error *error)
{
	struct cv_standby_listener *listener = calloc(1, sizeof(*listener));
	const struct cv_socket_access access = {.has_mode = false};

	if (listener == NULL) {
		cv_error_set(error, "standby: out of memory");
		return NULL;
	}
	listener->config = config;
	listener->tls = tls;
	listener->version = version;
	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++)
		listener->peers[i].fd = -1;
	listener->fd = cv_peer_target_open(&config->listen, &access, error);
	if (listener->fd >= 0)
		return listener;
	free(listener);
	return NULL;
}

__attribute__((format(printf, 2, 3))) static void say(
	struct cv_standby_listener *listener, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cv_log_limited(&listener->log, "standby", listener->config->listen.text, format, args);
	va_end(args);
}

static void disconnect(struct cv_standby_listener *listener, struct cv_standby_peer *peer)
{
	struct cv_standby_session *session = &peer->session;

	if (session->set != NULL) {
		listener->writes += session->writes;
		listener->bytes += session->bytes;
		if (session->set != listener->whole)
			cv_standby_set_free(session->set);
		session->set = NULL;
	} else {
		listener->refused++;
	}
	if (listener->active == peer)
		listener->active = NULL;
	cv_peer_tls_close(peer->tls);
	close(peer->fd);
	peer->tls = NULL;
	peer->fd = -1;
}

void cv_standby_listener_close(struct cv_standby_listener *listener)
{
	if (listener == NULL)
		return;
	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++)
		if (listener->peers[i].fd >= 0)
			disconnect(listener, &listener->peers[i]);
	cv_standby_set_free(listener->whole);
	close(listener->fd);
	free(listener);
}

// Of those that have not greeted the oldest goes if there is no place.
static struct cv_standby_peer *find_place(struct cv_standby_listener *listener)
{
	struct cv_standby_peer *oldest = NULL;

	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++) {
		struct cv_standby_peer *peer = &listener->peers[i];

		if (peer->fd < 0)
			return peer;
		if (peer != listener->active &&
			(oldest == NULL || peer->since_ns < oldest->since_ns))
			oldest = peer;
	}
	disconnect(listener, oldest);
	return oldest;
}

static void accept_peers(struct cv_standby_listener *listener)
{
	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++) {
		const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct cv_standby_peer *peer;

		if (fd < 0)
			return;
		peer = find_place(listener);
		cv_standby_session_begin(
			&peer->session, listener->own, listener->own_count, listener->version);
		peer->fd = fd;
		peer->out_sent = 0;
		peer->since_ns = peer->heard_ns = now_ns();
		peer->tls = cv_peer_tls_open(listener->tls, fd, true);
		if (peer->tls == NULL)
			disconnect(listener, peer);
	}
}

// A peer may have become the active node, or have written all of its flows.
static void look_at(struct cv_standby_listener *listener, struct cv_standby_peer *peer)
{
	const struct cv_standby_session *session = &peer->session;

	if (session->note.text[0] != '\0' &&
		strncmp(session->note.text, listener->noted, sizeof(listener->noted) - 1) != 0) {
		snprintf(listener->noted, sizeof(listener->noted), "%s", session->note.text);
		say(listener, "%s", session->note.text);
	}
	peer->session.note.text[0] = '\0';
	if (session->set == NULL)
		return;
	if (listener->active != peer) {
		if (listener->active != NULL)
			disconnect(listener, listener->active);
		listener->active = peer;
		listener->connections++;
	}
	if (session->set->passes == 0)
		return;
	listener->whole_ns = now_ns();
	if (listener->whole == session->set)
		return;
	cv_standby_set_free(listener->whole);
	listener->whole = session->set;
}

// False: it is to be disconnected.
static bool receive(struct cv_standby_listener *listener, struct cv_standby_peer *peer)
{
	struct cv_standby_session *session = &peer->session;
	const ssize_t got = cv_peer_tls_receive(
		peer->tls, session->in + session->in_used, sizeof(session->in) - session->in_used);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got < 0 && errno == EPROTO)
		say(listener, "a connection ends: TLS: %s", cv_peer_tls_why(peer->tls));
	if (got <= 0)
		return false;
	listener->heard_ns = peer->heard_ns = now_ns();
	session->in_used += (size_t)got;
	cv_standby_session_run(session);
	look_at(listener, peer);
	return true;
}

// False: it is to be disconnected.
static bool send_answers(struct cv_standby_peer *peer)
{
	struct cv_standby_session *session = &peer->session;
	ssize_t sent;

	if (session->out_used == 0)
		return !session->failed;
	sent = cv_peer_tls_send(
		peer->tls, session->out + peer->out_sent, session->out_used - peer->out_sent);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	peer->out_sent += (size_t)sent;
	if (peer->out_sent < session->out_used)
		return true;
	peer->out_sent = session->out_used = 0;
	return !session->failed;
}

static void serve(struct cv_standby_listener *listener, struct cv_standby_peer *peer)
{
	unsigned reads = 0;

	do {
		if (!receive(listener, peer) || !send_answers(peer)) {
			disconnect(listener, peer);
			return;
		}
	} while (cv_peer_tls_has_more(peer->tls) && ++reads < READS);
}

static void tend(struct cv_standby_listener *listener, struct cv_standby_peer *peer)
{
	const uint64_t now = now_ns();

	if (listener->active == peer ? now - peer->heard_ns > SILENT_NS
				     : now - peer->since_ns > GREETING_NS)
		disconnect(listener, peer);
}

void cv_standby_listener_run(struct cv_standby_listener *listener, int wake, int ms)
{
	struct pollfd fds[2 + CV_STANDBY_PEERS_MAX];

	fds[0] = (struct pollfd){.fd = wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = listener->fd, .events = POLLIN};
	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++) {
		const struct cv_standby_peer *peer = &listener->peers[i];
		const bool wants_room = peer->fd >= 0 && cv_peer_tls_wants_room(peer->tls);

		fds[2 + i] = (struct pollfd){
			.fd = peer->fd, .events = (short)(POLLIN | (wants_room ? POLLOUT : 0))};
		if (peer->fd >= 0 && cv_peer_tls_has_more(peer->tls))
			ms = 0;
	}
	if (poll(fds, 2 + CV_STANDBY_PEERS_MAX, ms) < 0)
		return;
	for (unsigned i = 0; i < CV_STANDBY_PEERS_MAX; i++) {
		struct cv_standby_peer *peer = &listener->peers[i];

		// Whoever greets may have had another one disconnected.
		if (peer->fd >= 0 && (fds[2 + i].revents != 0 || cv_peer_tls_has_more(peer->tls)))
			serve(listener, peer);
		if (peer->fd >= 0)
			tend(listener, peer);
	}
	if (fds[1].revents & POLLIN)
		accept_peers(listener);
}

void cv_standby_listener_count(
	const struct cv_standby_listener *listener, uint64_t *writes, uint64_t *bytes)
{
	const struct cv_standby_peer *active = listener->active;

	*writes = listener->writes + (active == NULL ? 0 : active->session.writes);
	*bytes = listener->bytes + (active == NULL ? 0 : active->session.bytes);
}
