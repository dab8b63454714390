// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind memif: a shared-memory interface to another process (a convoyd, VPP, Contiv ...).
// path: the socket; role: server (makes the socket) or client; id: of the interface at that
// socket, the same on both sides, 0 to 2^31 - 1; slots: of each ring, 1024 or a smaller power of two,
// 64 at least: the client's count; datapath: memif (our own; the default) or dpdk (DPDK's
// net_memif, to compare with), which needs trusted: true, for it does not check what the peer
// writes. One queue each way. The peer may come later, go away and come back.
#include <errno.h>
#include <stdio.h>

#include "port/memif_port.h"
#include "port/reconnecting_port.h"
#include "port/port_log.h"
#include "port/socket_path.h"
#include "socket/lost_memory.h"

static const char *const roles[] = {"server", "client", NULL};
static const char *const datapaths[] = {"memif", "dpdk", NULL};

enum { SERVER, CLIENT };
enum { OWN, DPDK };

union memif_port {
	struct cv_memif_port own;
	struct cv_reconnecting_port dpdk;
};

struct keys {
	struct cv_socket_config socket;
	unsigned role, datapath, slots, id;
	bool trusted;
};

static const struct cv_param params[] = {
	{NULL, CV_PARAMS, CV_AT(struct keys, socket), .params = cv_socket_params},
	{"role", CV_WORD, CV_AT(struct keys, role), .words = roles},
	{"id", CV_INTEGER, CV_AT(struct keys, id), .high = INT32_MAX},
	CV_PORT_SLOTS(struct keys),
	{"datapath", CV_WORD, CV_AT(struct keys, datapath), .words = datapaths},
	{"trusted", CV_BOOL, CV_AT(struct keys, trusted)},
	{0},
};

static int check(struct cv_port_config *config, struct cv_error *error)
{
	const struct keys *keys = config->own;

	config->needs.drivers = keys->datapath != OWN;
	if (cv_socket_check(&keys->socket, keys->role == SERVER, error) != 0)
		return -EINVAL;
	if (keys->datapath == OWN || keys->trusted)
		return 0;
	cv_error_set(error,
		"datapath: dpdk: a peer of DPDK's driver must be one that you trust; write "
		"trusted: true beside it, or leave datapath out");
	return -EINVAL;
}

static int open_dpdk(struct cv_reconnecting_port *reconnecting, const struct keys *keys,
	const struct cv_port_args *args, struct cv_error *error)
{
	snprintf(reconnecting->path, sizeof(reconnecting->path), "%s", keys->socket.path);
	reconnecting->mode = keys->role == SERVER ? CV_RECONNECT_STAYS : CV_RECONNECT_CONNECTS;
	reconnecting->dev.driver = "net_memif";
	reconnecting->dev.rx_queues = 1;
	snprintf(reconnecting->dev.devargs, sizeof(reconnecting->dev.devargs),
		"net_memif%u,role=%s,id=%u,socket=%s,socket-abstract=no,zero-copy=no,rsize=%u",
		args->index, roles[keys->role], (unsigned)keys->id, keys->socket.path,
		(unsigned)__builtin_ctz(keys->slots));
	cv_lost_memory_guard(NULL);
	return cv_reconnecting_port_open(reconnecting, args, error);
}

static int open_own(struct cv_memif_port *memif, const struct keys *keys,
	const struct cv_port_args *args, struct cv_error *error)
{
	int rc = keys->role == SERVER ? cv_socket_claim(keys->socket.path, error) : 0;

	if (rc != 0)
		return rc;
	snprintf(memif->device.endpoint.path, sizeof(memif->device.endpoint.path), "%s",
		keys->socket.path);
	memif->device.endpoint.client = keys->role == CLIENT;
	memif->device.session.id = (uint32_t)keys->id;
	memif->device.session.slots = (uint16_t)keys->slots;
	rc = cv_memif_port_open(memif, args, error);
	if (rc == 0 && !cv_memif_is_up(&memif->device))
		cv_port_log(&memif->port, "%s %s",
			keys->role == SERVER ? "waits for a peer at" : "connects to",
			keys->socket.path);
	return rc;
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	union memif_port *either = (union memif_port *)port;
	const struct keys *keys = args->config->own;

	return keys->datapath == OWN ? open_own(&either->own, keys, args, error)
				     : open_dpdk(&either->dpdk, keys, args, error);
}

const struct cv_port_kind cv_port_memif = {
	.name = "memif",
	.params = params,
	.config_size = sizeof(struct keys),
	.socket = true,
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(union memif_port),
};
