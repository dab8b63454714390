// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/peer/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/socket_path.h"

#define BACKLOG 128

static int refuse(const char *text, struct cv_error *error)
{
	cv_error_set(error,
		"%.100s: write tcp:ADDRESS[:PORT], ssl:ADDRESS[:PORT] or unix:PATH for a "
		"controller, ptcp:[PORT][:ADDRESS], pssl:[PORT][:ADDRESS] or punix:PATH to be "
		"connected to",
		text);
	return -EINVAL;
}

// A port's number, nothing: the default.
static bool read_port(const char *text, uint16_t *port)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	if (text[0] == '\0') {
		*port = CV_OF_PORT_DEFAULT;
		return true;
	}
	*port = (uint16_t)value;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value > 0 && value <= UINT16_MAX;
}

static bool set_address(struct cv_peer_target *target, const char *host)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&target->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target->address;

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(target->tcp_port);
		target->length = sizeof(*v4);
		return true;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(target->tcp_port);
		target->length = sizeof(*v6);
		return true;
	}
	return false;
}

// "HOST[:PORT]", a host of IPv6 in brackets. Cuts text.
static bool read_host_port(struct cv_peer_target *target, char *text)
{
	char *host = text, *rest = strchr(text, ':');

	if (text[0] == '[') {
		host = text + 1;
		rest = strchr(text, ']');
		if (rest == NULL)
			return false;
		*rest++ = '\0';
		if (*rest == '\0')
			rest = NULL;
		else if (*rest != ':')
			return false;
	}
	if (rest != NULL)
		*rest++ = '\0';
	return read_port(rest != NULL ? rest : "", &target->tcp_port) && set_address(target, host);
}

// "[PORT][:HOST]": without a host this machine alone connects.
static bool read_port_host(struct cv_peer_target *target, char *text)
{
	char *host = strchr(text, ':');
	size_t length;

	if (host != NULL)
		*host++ = '\0';
	if (!read_port(text, &target->tcp_port))
		return false;
	if (host == NULL || *host == '\0')
		return set_address(target, "127.0.0.1");
	length = strlen(host);
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		host++;
	}
	return set_address(target, host);
}

static bool set_path(struct cv_peer_target *target, const char *path)
{
	if (path[0] == '\0' || strlen(path) >= sizeof(target->address.local.sun_path))
		return false;
	target->address.local.sun_family = AF_UNIX;
	snprintf(
		target->address.local.sun_path, sizeof(target->address.local.sun_path), "%s", path);
	target->length = sizeof(target->address.local);
	return true;
}

int cv_peer_target_read(
	struct cv_peer_target *target, const char *text, bool listens, struct cv_error *error)
{
	char copy[CV_PEER_TARGET_TEXT];
	char *rest;

	*target = (struct cv_peer_target){.listens = listens};
	if (strlen(text) >= sizeof(copy))
		return refuse(text, error);
	strcpy(copy, text);
	strcpy(target->text, text);
	rest = strchr(copy, ':');
	if (rest == NULL)
		return refuse(text, error);
	*rest++ = '\0';
	if (strcmp(copy, listens ? "punix" : "unix") == 0)
		return set_path(target, rest) ? 0 : refuse(text, error);
	target->tls = strcmp(copy, listens ? "pssl" : "ssl") == 0;
	if (!target->tls && strcmp(copy, listens ? "ptcp" : "tcp") != 0)
		return refuse(text, error);
	return (listens ? read_port_host(target, rest) : read_host_port(target, rest))
		       ? 0
		       : refuse(text, error);
}

// Makes a path's socket, for this user alone unless its access says more.
static int bind_path(const struct cv_peer_target *target, int fd,
	const struct cv_socket_access *access, struct cv_error *error)
{
	const char *path = target->address.local.sun_path;
	int rc = cv_socket_claim(path, error);
	mode_t before;

	if (rc != 0)
		return rc;
	before = umask(0177);
	rc = bind(fd, &target->address.any, target->length) == 0 ? 0 : -errno;
	umask(before);
	if (rc == 0 && cv_socket_access_is_set(access))
		rc = cv_socket_access_give(
			access, path, access->has_mode ? access->mode : 0660, error);
	return rc;
}

static int listen_at(const struct cv_peer_target *target, int fd,
	const struct cv_socket_access *access, struct cv_error *error)
{
	const int on = 1;
	int rc;

	if (target->tcp_port == 0) {
		rc = bind_path(target, fd, access, error);
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		rc = bind(fd, &target->address.any, target->length) == 0 ? 0 : -errno;
	}
	if (rc == 0 && listen(fd, BACKLOG) != 0)
		rc = -errno;
	return rc;
}

static int make(const struct cv_peer_target *target)
{
	const int on = 1;
	const int fd = socket(
		target->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (target->tcp_port != 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int cv_peer_target_open(const struct cv_peer_target *target, const struct cv_socket_access *access,
	struct cv_error *error)
{
	const int fd = make(target);
	int rc = fd;

	if (fd >= 0 && target->listens && (rc = listen_at(target, fd, access, error)) != 0)
		close(fd);
	if (rc < 0) {
		cv_error_set(error, "openflow: %s: %s", target->text, strerror(-rc));
		return rc;
	}
	return fd;
}

int cv_peer_target_connect(const struct cv_peer_target *target, int fd)
{
	return connect(fd, &target->address.any, target->length) == 0 ? 0 : -errno;
}

int cv_peer_target_again(const struct cv_peer_target *target, int fd)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	// The sandbox makes no TCP sockets: this one is dissolved and connected again. A UNIX socket
	// cannot be, but may be made.
	if (target->tcp_port != 0)
		return connect(fd, &nobody, sizeof(nobody)) == 0 ? fd : -errno;
	close(fd);
	return make(target);
}
