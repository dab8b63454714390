// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/vhost_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket/endpoint.h"
#include "socket/receive.h"
#include "vhost/protocol.h"

#define HEADER ((uint32_t)CV_VHOST_HEADER_BYTES)
#define PAYLOAD_MAX 1024 // bytes; those of vhost-user net have less than 300
#define PATIENCE_MS 5000 // for a peer and a driver to agree
#define RETRY_MS 50

#define OF(member_pointer, member) \
	((struct side *)((char *)(member_pointer)-offsetof(struct side, member)))

// One end, and the message that is on its way from it.
struct side {
	struct cv_endpoint endpoint;
	struct cv_loop_watch watch; // fd -1: not watched
	struct cv_vhost_relay *relay;
	uint32_t have;
	struct {
		uint32_t request, flags, bytes;
		uint8_t payload[PAYLOAD_MAX];
	} message;
	struct cv_socket_fds fds;
};

enum { DRIVER, PEER };

struct cv_vhost_relay {
	struct side sides[2];
	struct cv_loop_timer patience;
	char driver_path[32];
	int driver_socket; // for its path
	bool has_peer; // atomic
};

static struct side *other(const struct side *side)
{
	return &side->relay->sides[side == &side->relay->sides[DRIVER] ? PEER : DRIVER];
}

// The rest happens when its watch says that it has hung up.
static void hang_up(const struct side *side)
{
	if (side->endpoint.peer >= 0)
		shutdown(side->endpoint.peer, SHUT_RDWR);
}

static uint32_t wanted(const struct side *side)
{
	return side->have < HEADER ? HEADER : HEADER + side->message.bytes;
}

// Receives what there is of one message; 1: all of it; 0: not yet; else -errno.
static int receive(struct side *side)
{
	for (;;) {
		const bool in_header = side->have < HEADER;
		int got;

		if (!in_header && side->message.bytes > PAYLOAD_MAX)
			return -EMSGSIZE;
		if (side->have == wanted(side))
			return 1;
		// Descriptors come with a message's first bytes.
		got = cv_socket_receive(side->watch.fd, (char *)&side->message + side->have,
			wanted(side) - side->have, in_header ? &side->fds : NULL);
		if (got == -EAGAIN)
			return 0;
		if (got <= 0)
			return got < 0 ? got : -EPIPE;
		side->have += (uint32_t)got;
	}
}

// One message, or a part of it.
static void hand_on(struct cv_loop_watch *watch, uint32_t events)
{
	struct side *side = OF(watch, watch);
	const int to = other(side)->endpoint.peer;
	int rc = receive(side);

	(void)events;
	if (rc == 1) {
		rc = to < 0 ? -ENOTCONN
			    : cv_socket_send_fds(to, &side->message, side->have, &side->fds);
		cv_socket_fds_close(&side->fds);
		side->have = 0;
	}
	if (rc < 0)
		cv_endpoint_drop(&side->endpoint);
}

static int watch_side(struct side *side, int fd, uint32_t events)
{
	side->watch = (struct cv_loop_watch){fd, hand_on};
	return cv_loop_watch(&side->watch, events);
}

static void side_gone(struct cv_endpoint *endpoint)
{
	struct side *side = OF(endpoint, endpoint);

	cv_loop_unwatch(&side->watch);
	cv_loop_timer_stop(&side->relay->patience);
	cv_socket_fds_close(&side->fds);
	side->have = 0;
	if (side == &side->relay->sides[PEER])
		__atomic_store_n(&side->relay->has_peer, false, __ATOMIC_RELAXED);
	hang_up(other(side));
}

// It is not listened to before there is a driver, but it may hang up.
static int peer_connected(struct cv_endpoint *endpoint, int fd)
{
	struct side *side = OF(endpoint, endpoint);
	const int rc = watch_side(side, fd, 0);

	if (rc == 0)
		__atomic_store_n(&side->relay->has_peer, true, __ATOMIC_RELAXED);
	return rc;
}

static bool is_this_process(int fd)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == getpid();
}

static int driver_connected(struct cv_endpoint *endpoint, int fd)
{
	struct side *driver = OF(endpoint, endpoint), *peer = other(driver);
	int rc;

	if (!is_this_process(fd))
		return -EPERM;
	if (peer->endpoint.peer < 0)
		return -ENOTCONN;
	rc = watch_side(driver, fd, EPOLLIN);
	if (rc != 0)
		return rc;
	cv_loop_unwatch(&peer->watch);
	if (watch_side(peer, peer->endpoint.peer, EPOLLIN) != 0)
		hang_up(driver); // the peer goes with it
	cv_loop_timer_set(&driver->relay->patience, PATIENCE_MS);
	return 0;
}

static void cut(void *argument)
{
	struct cv_vhost_relay *relay = argument;

	hang_up(&relay->sides[DRIVER]);
	hang_up(&relay->sides[PEER]);
}

static void lose_patience(struct cv_loop_timer *timer)
{
	cut((char *)timer - offsetof(struct cv_vhost_relay, patience));
}

static void agreed(void *argument)
{
	cv_loop_timer_stop(&((struct cv_vhost_relay *)argument)->patience);
}

void cv_vhost_relay_agreed(struct cv_vhost_relay *relay)
{
	cv_loop_run(agreed, relay);
}

void cv_vhost_relay_cut(struct cv_vhost_relay *relay)
{
	cv_loop_run(cut, relay);
}

bool cv_vhost_relay_has_peer(const struct cv_vhost_relay *relay)
{
	return __atomic_load_n(&relay->has_peer, __ATOMIC_RELAXED);
}

const char *cv_vhost_relay_path(const struct cv_vhost_relay *relay)
{
	return relay->driver_path;
}

// A socket that has no name but the one that this process has for it, which is short. It had one for
// a moment, in the directory of the peer's, where sockets can be made.
static int open_driver_side(struct cv_vhost_relay *relay, const char *path, struct cv_error *error)
{
	struct cv_endpoint *endpoint = &relay->sides[DRIVER].endpoint;
	const char *slash = strrchr(path, '/');
	char directory[sizeof(endpoint->path)] = ".";
	int at, rc;

	if (slash != NULL)
		snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path + 1), path);
	at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(endpoint->path, sizeof(endpoint->path), "/proc/self/fd/%d/.convoy-%d-%p", at,
		(int)getpid(), (void *)relay);
	endpoint->type = SOCK_STREAM;
	endpoint->connected = driver_connected;
	endpoint->gone = side_gone;
	rc = at < 0 ? -errno : cv_endpoint_open(endpoint, error);
	if (rc == 0) {
		relay->driver_socket = open(endpoint->path, O_PATH | O_CLOEXEC);
		rc = relay->driver_socket < 0 ? -errno : 0;
		unlink(endpoint->path);
		if (rc != 0)
			cv_endpoint_close(endpoint);
	}
	if (at >= 0)
		close(at);
	snprintf(relay->driver_path, sizeof(relay->driver_path), "/proc/self/fd/%d",
		relay->driver_socket);
	if (rc != 0)
		cv_error_set(error, "path: %s: no socket can be made beside it: %s", path,
			strerror(-rc));
	return rc;
}

static int open_peer_side(
	struct cv_vhost_relay *relay, const char *path, bool listens, struct cv_error *error)
{
	struct cv_endpoint *endpoint = &relay->sides[PEER].endpoint;

	snprintf(endpoint->path, sizeof(endpoint->path), "%s", path);
	endpoint->client = !listens;
	endpoint->type = SOCK_STREAM;
	endpoint->retry_ms = RETRY_MS;
	endpoint->connected = peer_connected;
	endpoint->gone = side_gone;
	return cv_endpoint_open(endpoint, error);
}

static void close_driver_side(struct cv_vhost_relay *relay)
{
	cv_endpoint_close(&relay->sides[DRIVER].endpoint);
	close(relay->driver_socket);
}

struct cv_vhost_relay *cv_vhost_relay_open(const char *path, bool listens, struct cv_error *error)
{
	struct cv_vhost_relay *relay = calloc(1, sizeof(*relay));

	if (relay == NULL) {
		cv_error_set(error, "out of memory");
		return NULL;
	}
	relay->patience.due = lose_patience;
	for (unsigned i = 0; i < 2; i++) {
		relay->sides[i].relay = relay;
		relay->sides[i].endpoint.peer = -1;
	}
	if (cv_loop_hold(error) != 0)
		goto no_loop;
	if (open_driver_side(relay, path, error) != 0)
		goto no_driver;
	if (open_peer_side(relay, path, listens, error) == 0)
		return relay;
	close_driver_side(relay);
no_driver:
	cv_loop_release();
no_loop:
	free(relay);
	return NULL;
}

void cv_vhost_relay_close(struct cv_vhost_relay *relay)
{
	if (relay == NULL)
		return;
	cv_endpoint_close(&relay->sides[PEER].endpoint);
	close_driver_side(relay);
	cv_loop_release();
	free(relay);
}
