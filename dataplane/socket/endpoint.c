// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_MS 100 // when no peer can be taken, for want of descriptors
#define BACKLOG 8

#define OF(member_pointer, member) \
	((struct cv_endpoint *)((char *)(member_pointer)-offsetof(struct cv_endpoint, member)))

static void take(struct cv_endpoint *endpoint, int fd)
{
	endpoint->peer = fd;
	if (endpoint->connected(endpoint, fd) == 0)
		return;
	endpoint->peer = -1;
	close(fd);
	if (endpoint->client)
		cv_loop_timer_set(&endpoint->retry, endpoint->retry_ms);
}

void cv_endpoint_drop(struct cv_endpoint *endpoint)
{
	if (endpoint->peer < 0)
		return;
	endpoint->gone(endpoint);
	close(endpoint->peer);
	endpoint->peer = -1;
	if (endpoint->client)
		cv_loop_timer_set(&endpoint->retry, endpoint->retry_ms);
}

static bool has_hung_up(int fd)
{
	struct pollfd peer = {.fd = fd};

	return poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLERR));
}

static void accept_peer(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_endpoint *endpoint = OF(watch, listener);
	const int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		// It waits there, and would wake us again at once.
		cv_loop_unwatch(watch);
		cv_loop_timer_set(&endpoint->retry, ACCEPT_MS);
		return;
	}
	// Of a peer that died, messages may still have to be read: the next need not wait for that.
	if (endpoint->peer >= 0 && has_hung_up(endpoint->peer))
		cv_endpoint_drop(endpoint);
	if (endpoint->peer >= 0)
		close(fd);
	else
		take(endpoint, fd);
}

static int address_of(const struct cv_endpoint *endpoint, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strnlen(endpoint->path, sizeof(endpoint->path)) == sizeof(endpoint->path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, endpoint->path, sizeof(address->sun_path));
	return 0;
}

static int new_socket(const struct cv_endpoint *endpoint)
{
	const int fd = socket(AF_UNIX, endpoint->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 ? fd : -errno;
}

static void connect_peer(struct cv_endpoint *endpoint)
{
	struct sockaddr_un address;
	const int fd = new_socket(endpoint);

	// Without O_NONBLOCK it would wait for room in a backlog.
	if (fd >= 0 && address_of(endpoint, &address) == 0 &&
		connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		take(endpoint, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	cv_loop_timer_set(&endpoint->retry, endpoint->retry_ms);
}

static void try_again(struct cv_loop_timer *timer)
{
	struct cv_endpoint *endpoint = OF(timer, retry);

	if (endpoint->client)
		connect_peer(endpoint);
	else if (cv_loop_watch(&endpoint->listener, EPOLLIN) != 0)
		cv_loop_timer_set(&endpoint->retry, ACCEPT_MS);
}

static int listen_at_path(struct cv_endpoint *endpoint)
{
	struct sockaddr_un address;
	int rc = address_of(endpoint, &address);
	const int fd = rc == 0 ? new_socket(endpoint) : rc;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	if (listen(fd, BACKLOG) != 0) {
		rc = -errno;
		unlink(endpoint->path);
		close(fd);
		return rc;
	}
	endpoint->listener = (struct cv_loop_watch){fd, accept_peer};
	return 0;
}

static void begin(void *argument)
{
	struct cv_endpoint *endpoint = argument;

	if (endpoint->client)
		connect_peer(endpoint);
	else
		try_again(&endpoint->retry);
}

int cv_endpoint_open(struct cv_endpoint *endpoint, struct cv_error *error)
{
	int rc = 0;

	endpoint->peer = -1;
	endpoint->listener.fd = -1;
	endpoint->retry = (struct cv_loop_timer){.due = try_again};
	if (endpoint->adopts)
		return 0;
	if (!endpoint->client)
		rc = listen_at_path(endpoint);
	if (rc == 0)
		cv_loop_run(begin, endpoint);
	else
		cv_error_set(
			error, "path: %s: cannot listen there: %s", endpoint->path, strerror(-rc));
	return rc;
}

static void end(void *argument)
{
	struct cv_endpoint *endpoint = argument;

	cv_endpoint_drop(endpoint);
	cv_loop_timer_stop(&endpoint->retry);
	if (endpoint->listener.fd < 0)
		return;
	cv_loop_unwatch(&endpoint->listener);
	unlink(endpoint->path);
	close(endpoint->listener.fd);
	endpoint->listener.fd = -1;
}

void cv_endpoint_close(struct cv_endpoint *endpoint)
{
	cv_loop_run(end, endpoint);
}

void cv_endpoint_hold(struct cv_endpoint *endpoint)
{
	cv_loop_timer_stop(&endpoint->retry);
	if (endpoint->listener.fd >= 0)
		cv_loop_unwatch(&endpoint->listener);
}

void cv_endpoint_go_on(struct cv_endpoint *endpoint)
{
	if (!endpoint->client)
		try_again(&endpoint->retry);
	else if (endpoint->peer < 0)
		cv_loop_timer_set(&endpoint->retry, endpoint->retry_ms);
}

void cv_endpoint_forget(struct cv_endpoint *endpoint)
{
	if (endpoint->peer >= 0)
		close(endpoint->peer);
	if (endpoint->listener.fd >= 0)
		close(endpoint->listener.fd);
	endpoint->peer = endpoint->listener.fd = -1;
}

bool cv_endpoint_fits(const struct cv_endpoint *endpoint, int fd, bool listens)
{
	int domain, type, accepts;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == endpoint->type &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 &&
	       (accepts != 0) == listens;
}

void cv_endpoint_adopt(struct cv_endpoint *endpoint, int listener, int peer)
{
	endpoint->adopts = false;
	endpoint->listener = (struct cv_loop_watch){listener, accept_peer};
	endpoint->peer = peer;
	cv_endpoint_go_on(endpoint);
}
