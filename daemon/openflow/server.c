// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/server.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/openflow/frames.h"
#include "dpdk/compat.h"
#include "port/log_limit.h"

#define LOOK_MS 100 // how often what came and went is looked at
#define FRAMES_MS 2 // the same where workers hand frames over, who wake nobody
#define BUSY_MS 1 // until the node is asked for again while somebody else changes it
#define PROBE_NS 10000000000ull // of silence, until a controller is asked whether it is there
#define SILENT_NS 30000000000ull // of silence, until it is disconnected
#define GREETING_NS 5000000000ull // until it has greeted
#define RETRY_NS 1000000000ull // until it is connected to again: this, and longer each time
#define RETRY_MOST_NS 8000000000ull

// A connection's place: the first are of controllers that we connect to.
struct peer {
	const struct cv_peer_target *target; // NULL: it came by itself
	int fd; // -1: none
	bool connecting;
	struct cv_of_session *session; // NULL: not connected
	struct cv_peer_tls *tls; // NULL: none
	uint64_t since_ns; // connected
	uint64_t heard_ns, probed_ns;
	uint64_t retry_ns, retry_after_ns;
};

struct cv_of_server {
	const struct cv_of_config *config;
	struct cv_of_switch of;
	struct cv_peer_tls_context *tls; // NULL: no target asks for it
	struct cv_log_limit log;
	struct peer peers[CV_OF_PEERS_MAX];
	int listen[CV_PEER_TARGETS_MAX];
	int wake;
	bool ends, runs;
	rte_thread_t thread;
	uint64_t looked_ns;
	struct cv_of_frames frames;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool asks_tls(const struct cv_peer_target *targets, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (targets[i].tls)
			return true;
	return false;
}

// The files of TLS, where a target asks for it. 0, or -EINVAL with error set.
static int open_tls(struct cv_of_server *server, struct cv_error *error)
{
	const struct cv_of_config *config = server->config;
	const struct cv_peer_tls_files *files = &config->tls;

	if (!asks_tls(config->listen, config->listen_count) &&
		!asks_tls(config->controllers, config->controllers_count))
		return 0;
	if (files->private_key == NULL || files->certificate == NULL ||
		files->ca_certificate == NULL) {
		cv_error_set(error, "openflow: TLS needs private_key, certificate and "
				    "ca_certificate");
		return -EINVAL;
	}
	server->tls = cv_peer_tls_context_open(files, error);
	return server->tls != NULL ? 0 : -EINVAL;
}

static int open_sockets(struct cv_of_server *server, struct cv_error *error)
{
	const struct cv_of_config *config = server->config;

	for (unsigned i = 0; i < config->listen_count; i++) {
		server->listen[i] = cv_peer_target_open(&config->listen[i], &config->access, error);
		if (server->listen[i] < 0)
			return server->listen[i];
	}
	for (unsigned i = 0; i < config->controllers_count; i++) {
		struct peer *peer = &server->peers[i];

		peer->target = &config->controllers[i];
		peer->fd = cv_peer_target_open(peer->target, &config->access, error);
		if (peer->fd < 0)
			return peer->fd;
	}
	return 0;
}

struct cv_of_server *cv_of_server_open(
	const struct cv_of_config *config, const struct cv_of_node *node, struct cv_error *error)
{
	struct cv_of_server *server = calloc(1, sizeof(*server));

	if (server == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	server->config = config;
	for (unsigned i = 0; i < CV_PEER_TARGETS_MAX; i++)
		server->listen[i] = -1;
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++)
		server->peers[i].fd = -1;
	server->wake = -1;
	if (cv_of_switch_init(&server->of, node, config->entries_max) != 0 ||
		cv_of_frames_init(&server->frames, &server->of) != 0) {
		cv_error_set(error, "openflow: out of memory");
		cv_of_server_close(server);
		return NULL;
	}
	server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->wake >= 0 && open_tls(server, error) == 0 && open_sockets(server, error) == 0)
		return server;
	cv_error_set(error, "openflow: %s", strerror(errno)); // unless an error says more
	cv_of_server_close(server);
	return NULL;
}

// secure: by TLS, which the session's first bytes wait for.
static void connected(struct cv_of_server *server, struct peer *peer, bool secure)
{
	peer->connecting = false;
	if (secure)
		peer->tls = cv_peer_tls_open(server->tls, peer->fd, peer->target == NULL);
	if (!secure || peer->tls != NULL)
		peer->session = cv_of_session_open(&server->of);
	peer->since_ns = peer->heard_ns = peer->probed_ns = now_ns();
	peer->retry_after_ns = 0;
	if (peer->session == NULL)
		return;
	cv_of_count(&server->of.counters.connections, 1);
	cv_of_count(&server->of.counters.controllers, 1);
}

// The next attempt comes later than the one before did.
static void retry_later(struct peer *peer)
{
	const uint64_t after = peer->retry_after_ns == 0 ? RETRY_NS : 2 * peer->retry_after_ns;

	peer->retry_after_ns = RTE_MIN(after, RETRY_MOST_NS);
	peer->retry_ns = now_ns() + peer->retry_after_ns;
}

static void disconnected(struct cv_of_server *server, struct peer *peer)
{
	if (peer->session != NULL) {
		cv_of_session_close(peer->session);
		cv_of_count(&server->of.counters.controllers, (uint64_t)-1);
	}
	cv_peer_tls_close(peer->tls);
	peer->session = NULL;
	peer->tls = NULL;
	peer->connecting = false;
	if (peer->target == NULL) {
		close(peer->fd);
		peer->fd = -1;
		return;
	}
	peer->fd = cv_peer_target_again(peer->target, peer->fd);
	retry_later(peer);
}

static void try_to_connect(struct cv_of_server *server, struct peer *peer)
{
	int rc;

	if (peer->fd < 0)
		peer->fd = cv_peer_target_again(peer->target, -1);
	rc = peer->fd < 0 ? peer->fd : cv_peer_target_connect(peer->target, peer->fd);
	if (rc == 0)
		connected(server, peer, peer->target->tls);
	else if (rc == -EINPROGRESS)
		peer->connecting = true;
	else
		disconnected(server, peer);
}

// A connection came to be, or did not.
static void finish_connecting(struct cv_of_server *server, struct peer *peer)
{
	int rc = 0;
	socklen_t length = sizeof(rc);

	if (getsockopt(peer->fd, SOL_SOCKET, SO_ERROR, &rc, &length) == 0 && rc == 0)
		connected(server, peer, peer->target->tls);
	else
		disconnected(server, peer);
}

// Whoever has been silent for longest goes if there is no place: those that connected to us only.
static struct peer *find_place(struct cv_of_server *server)
{
	struct peer *victim = NULL;

	for (unsigned i = server->config->controllers_count; i < CV_OF_PEERS_MAX; i++) {
		struct peer *peer = &server->peers[i];

		if (peer->fd < 0)
			return peer;
		if (victim == NULL || peer->heard_ns < victim->heard_ns)
			victim = peer;
	}
	disconnected(server, victim);
	return victim;
}

static void take_peers(struct cv_of_server *server, int listener, bool secure)
{
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++) {
		const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct peer *peer;

		if (fd < 0)
			return;
		peer = find_place(server);
		*peer = (struct peer){.fd = fd};
		connected(server, peer, secure);
		if (peer->session == NULL)
			disconnected(server, peer);
	}
}

__attribute__((format(printf, 3, 4))) static void say(
	struct cv_of_server *server, const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cv_log_limited(&server->log, "openflow", name, format, args);
	va_end(args);
}

// After what recv() or send() returned as -1, where it was not for want of bytes or room.
static void broken(struct cv_of_server *server, struct peer *peer)
{
	if (peer->tls != NULL && errno == EPROTO)
		say(server, peer->target != NULL ? peer->target->text : "a controller", "TLS: %s",
			cv_peer_tls_why(peer->tls));
	disconnected(server, peer);
}

static void receive(struct cv_of_server *server, struct peer *peer)
{
	struct cv_of_session *session = peer->session;
	uint8_t *to = session->in + session->in_used;
	const size_t room = sizeof(session->in) - session->in_used;
	const ssize_t got = peer->tls != NULL ? cv_peer_tls_receive(peer->tls, to, room)
					      : recv(peer->fd, to, room, 0);

	if (got > 0) {
		session->in_used += (size_t)got;
		peer->heard_ns = peer->probed_ns = now_ns();
	} else if (got == 0) {
		disconnected(server, peer);
	} else if (errno != EAGAIN && errno != EINTR) {
		broken(server, peer);
	}
}

static ssize_t send_to(const struct peer *peer, const void *from, size_t bytes)
{
	if (bytes == 0)
		return 0;
	return peer->tls != NULL ? cv_peer_tls_send(peer->tls, from, bytes)
				 : send(peer->fd, from, bytes, MSG_NOSIGNAL);
}

static void send_what_is_there(struct cv_of_server *server, struct peer *peer)
{
	struct cv_of_session *session = peer->session;
	const size_t bytes = session->out_to - session->out_from;
	const ssize_t sent = send_to(peer, session->out + session->out_from, bytes);

	if (sent >= 0)
		session->out_from += (size_t)sent;
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		broken(server, peer);
	else if (session->failed && session->out_from == session->out_to)
		disconnected(server, peer);
}

static bool has_room(const struct cv_of_session *session)
{
	return !session->failed && session->in_used < sizeof(session->in);
}

// Bytes of a controller that no poll() tells of.
static bool has_more(const struct peer *peer)
{
	return peer->tls != NULL && has_room(peer->session) && cv_peer_tls_has_more(peer->tls);
}

static short events_of(const struct peer *peer)
{
	const struct cv_of_session *session = peer->session;

	if (peer->connecting)
		return POLLOUT;
	if (session == NULL)
		return 0;
	// A handshake may have to read before it can write what is there.
	return (short)((has_room(session) ? POLLIN : 0) |
		       ((peer->tls != NULL ? cv_peer_tls_wants_room(peer->tls)
					   : session->out_from < session->out_to)
				       ? POLLOUT
				       : 0));
}

static bool anybody_has_more(const struct cv_of_server *server)
{
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++)
		if (server->peers[i].session != NULL && has_more(&server->peers[i]))
			return true;
	return false;
}

// Waits until something is to be done, and reads and connects.
static void wait_for_peers(struct cv_of_server *server, int ms)
{
	struct pollfd fds[1 + CV_PEER_TARGETS_MAX + CV_OF_PEERS_MAX];
	struct pollfd *of_peers = &fds[1 + CV_PEER_TARGETS_MAX];

	fds[0] = (struct pollfd){.fd = server->wake, .events = POLLIN};
	for (unsigned i = 0; i < CV_PEER_TARGETS_MAX; i++)
		fds[1 + i] = (struct pollfd){.fd = server->listen[i], .events = POLLIN};
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++) {
		const short events = events_of(&server->peers[i]);

		// One that is not connected would be ready all the time.
		of_peers[i] = (struct pollfd){
			.fd = events != 0 ? server->peers[i].fd : -1, .events = events};
	}
	if (poll(fds, RTE_DIM(fds), anybody_has_more(server) ? 0 : ms) < 0)
		return;
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++) {
		struct peer *peer = &server->peers[i];

		if (of_peers[i].revents == 0 && (peer->session == NULL || !has_more(peer)))
			continue;
		if (peer->connecting)
			finish_connecting(server, peer);
		else if ((of_peers[i].events & POLLIN) != 0)
			receive(server, peer);
		else if ((of_peers[i].revents & (POLLERR | POLLHUP)) != 0)
			disconnected(server, peer);
	}
	for (unsigned i = 0; i < CV_PEER_TARGETS_MAX; i++)
		if ((fds[1 + i].revents & POLLIN) != 0)
			take_peers(server, server->listen[i], server->config->listen[i].tls);
}

static bool is_due(const struct cv_of_server *server)
{
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++)
		if (server->peers[i].session != NULL &&
			cv_of_session_is_due(server->peers[i].session))
			return true;
	return false;
}

// Carries out what has come. False: the node is being changed by somebody else.
static bool carry_out(struct cv_of_server *server)
{
	const struct cv_of_node *node = server->of.node;
	const uint64_t now = now_ns();
	const bool is_time = now - server->looked_ns >= LOOK_MS * 1000000ull;

	if (!cv_of_frames_take(&server->frames) && !is_time && !is_due(server))
		return true;
	if (!node->begin(node->of))
		return false;
	cv_of_switch_look(&server->of, now);
	cv_of_frames_run(&server->frames);
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++)
		if (server->peers[i].session != NULL)
			cv_of_session_run(server->peers[i].session);
	node->end(node->of);
	server->looked_ns = now;
	return true;
}

// Connects, asks, and gives up.
static void tend(struct cv_of_server *server, struct peer *peer)
{
	const uint64_t now = now_ns();
	const struct cv_of_session *session = peer->session;

	if (session == NULL) {
		if (peer->target != NULL && !peer->connecting && now >= peer->retry_ns)
			try_to_connect(server, peer);
		return;
	}
	if ((!session->greeted && now - peer->since_ns > GREETING_NS) ||
		now - peer->heard_ns > SILENT_NS) {
		disconnected(server, peer);
	} else if (now - peer->probed_ns > PROBE_NS) {
		cv_of_session_probe(peer->session);
		peer->probed_ns = now;
	}
}

static uint32_t serve(void *argument)
{
	struct cv_of_server *server = argument;
	const int idle_ms = server->of.node->inband_count > 0 ? FRAMES_MS : LOOK_MS;
	bool busy = false;

	// Pairs with cv_of_server_close().
	while (!__atomic_load_n(&server->ends, __ATOMIC_ACQUIRE)) {
		wait_for_peers(server, busy ? BUSY_MS : is_due(server) ? 0 : idle_ms);
		busy = !carry_out(server);
		for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++) {
			if (server->peers[i].session != NULL)
				send_what_is_there(server, &server->peers[i]);
			tend(server, &server->peers[i]);
		}
	}
	return 0;
}

int cv_of_server_start(struct cv_of_server *server, struct cv_error *error)
{
	const int rc = rte_thread_create_control(&server->thread, "convoy-openflow", serve, server);

	if (rc != 0)
		cv_error_set(error, "no thread for OpenFlow: %s", strerror(-rc));
	server->runs = rc == 0;
	return rc;
}

void cv_of_server_close(struct cv_of_server *server)
{
	const uint64_t one = 1;

	if (server == NULL)
		return;
	__atomic_store_n(&server->ends, true, __ATOMIC_RELEASE);
	if (server->runs && write(server->wake, &one, sizeof(one)) == sizeof(one))
		rte_thread_join(server->thread, NULL);
	for (unsigned i = 0; i < CV_OF_PEERS_MAX; i++) {
		if (server->peers[i].session != NULL)
			cv_of_session_close(server->peers[i].session);
		cv_peer_tls_close(server->peers[i].tls);
		if (server->peers[i].fd >= 0)
			close(server->peers[i].fd);
	}
	for (unsigned i = 0; i < CV_PEER_TARGETS_MAX; i++) {
		if (server->listen[i] < 0)
			continue;
		close(server->listen[i]);
		if (server->config->listen[i].tcp_port == 0)
			unlink(server->config->listen[i].address.local.sun_path);
	}
	if (server->wake >= 0)
		close(server->wake);
	cv_peer_tls_context_close(server->tls);
	cv_of_frames_fini(&server->frames);
	cv_of_switch_fini(&server->of);
	free(server);
}

const struct cv_of_entries *cv_of_server_entries(const struct cv_of_server *server)
{
	return &server->of.entries;
}

struct cv_of_counters cv_of_server_count(const struct cv_of_server *server)
{
	const uint64_t *from = (const uint64_t *)&server->of.counters;
	struct cv_of_counters counters;
	uint64_t *to = (uint64_t *)&counters;

	for (size_t i = 0; i < sizeof(counters) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	return counters;
}
