// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind memif: a shared-memory interface to another process (a convoyd, VPP, Contiv ...).
// path: the socket; role: server (makes the socket) or client; id: of the interface at that
// socket, the same on both sides, 0 to 2^31 - 1; slots: of each ring, 1024 or a smaller power of two,
// 64 at least: the client's count. One queue each way. The peer may come later, go
// away and come back.
//
// trusted: must be true. DPDK's driver does not check what the peer writes into the shared memory.
#include <errno.h>
#include <stdio.h>

#include "lost_memory.h"
#include "plug_port.h"
#include "socket_path.h"
#include "values.h"

static const char *const roles[] = {"server", "client", NULL};

static int check_trusted(const json_t *config, struct cv_error *error)
{
	bool trusted = false;

	if (cv_config_bool(config, "trusted", "", &trusted, error) != 0)
		return -EINVAL;
	if (!trusted)
		cv_error_set(error,
			"trusted: false: a memif peer is not checked and can crash this node or "
			"read its packets; write trusted: true where the other end is yours");
	return trusted ? 0 : -EINVAL;
}

static int check(const json_t *config, struct cv_error *error)
{
	int role = cv_key_word(config, "role", roles, error);
	unsigned slots;
	int64_t id;

	if (role < 0 || cv_key_slots(config, &slots, error) != 0 ||
		cv_key_integer(config, "id", 0, INT32_MAX, 0, &id, error) != 0 ||
		cv_socket_path(config, role == 0, error) == NULL)
		return -EINVAL;
	return check_trusted(config, error);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;
	const int role = cv_key_word(args->config, "role", roles, error);
	const char *path = cv_socket_path(args->config, role == 0, error);
	unsigned slots;
	int64_t id;

	if (role < 0 || path == NULL || cv_key_slots(args->config, &slots, error) != 0 ||
		cv_key_integer(args->config, "id", 0, INT32_MAX, 0, &id, error) != 0)
		return -EINVAL;
	snprintf(plug->path, sizeof(plug->path), "%s", path);
	plug->mode = role == 0 ? CV_PLUG_STAYS : CV_PLUG_CONNECTS;
	plug->dev.driver = "net_memif";
	plug->dev.rx_queues = 1;
	snprintf(plug->dev.devargs, sizeof(plug->dev.devargs),
		"net_memif%u,role=%s,id=%u,socket=%s,socket-abstract=no,zero-copy=no,rsize=%u",
		args->index, roles[role], (unsigned)id, path, (unsigned)__builtin_ctz(slots));
	cv_lost_memory_guard(NULL);
	return cv_plug_port_open(plug, args, error);
}

const struct cv_port_kind cv_port_memif = {
	.name = "memif",
	.keys = (const char *const[]){"path", "role", "id", "slots", "trusted", "socket_mode",
		"socket_group", NULL},
	.mtu = 1500,
	.check = check,
	.open = open_port,
	.size = sizeof(struct cv_plug_port),
};
