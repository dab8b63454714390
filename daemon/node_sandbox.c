// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/node_sandbox.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/sandbox/user.h"
#include "port/eal.h"
#include "port/port.h"

// Descriptors of the process: its own, and of each port and pair of queues (sockets, events, memory).
#define DESCRIPTORS 1024
#define DESCRIPTORS_PORT 64
#define DESCRIPTORS_QUEUE 16

static void allow_parent(struct cv_sandbox *sandbox, const char *path, unsigned use)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	cv_sandbox_allow(sandbox, dirname(copy), use);
}

// What DPDK left is removed at the end, up to the folder that is ours.
static void allow_runtime_folder(struct cv_sandbox *sandbox)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", cv_eal_folder());
	cv_sandbox_allow(sandbox, path, CV_SANDBOX_REMOVES | CV_SANDBOX_READS);
	for (unsigned i = 0; i < (cv_eal_folder_is_private() ? 3 : 1); i++) {
		allow_parent(sandbox, path, CV_SANDBOX_REMOVES_FOLDERS);
		snprintf(path, sizeof(path), "%s",
			sandbox->folders[sandbox->folders_count - 1].path);
	}
}

static void add_port(struct cv_sandbox *sandbox, const struct cv_port_config *port)
{
	sandbox->keeps |= port->needs.capabilities;
	sandbox->interfaces |= port->needs.interface;
	sandbox->bpf |= port->needs.bpf;
	sandbox->descriptors += DESCRIPTORS_PORT + DESCRIPTORS_QUEUE * port->queues;
	if (port->socket_path != NULL)
		allow_parent(sandbox, port->socket_path, CV_SANDBOX_SOCKETS);
}

// TCP sockets are there before, and are connected again; those of paths are removed at the end.
static void add_controllers(struct cv_sandbox *sandbox, const struct cv_of_config *openflow)
{
	for (unsigned i = 0; i < openflow->controllers_count; i++)
		if (openflow->controllers[i].tcp_port != 0)
			sandbox->tcp_ports[sandbox->tcp_ports_count++] =
				openflow->controllers[i].tcp_port;
	for (unsigned i = 0; i < openflow->listen_count; i++)
		if (openflow->listen[i].tcp_port == 0)
			allow_parent(sandbox, openflow->listen[i].address.local.sun_path,
				CV_SANDBOX_SOCKETS);
}

static struct cv_sandbox *make(const struct cv_plan *plan)
{
	static struct cv_sandbox sandbox;

	sandbox = (struct cv_sandbox){.run_as = plan->run_as, .descriptors = DESCRIPTORS};
	for (unsigned i = 0; i < plan->ports_count; i++)
		add_port(&sandbox, plan->ports[i]);
	add_controllers(&sandbox, &plan->openflow);
	if (plan->standby.to.tcp_port != 0)
		sandbox.tcp_ports[sandbox.tcp_ports_count++] = plan->standby.to.tcp_port;
	return &sandbox;
}

int cv_node_sandbox_check(const struct cv_plan *plan, bool runs, struct cv_error *error)
{
	if (runs && plan->run_as != NULL && geteuid() != 0) {
		cv_error_set(error,
			"run_as: \"%s\": only root can become another user; start it as root, or "
			"remove run_as",
			plan->run_as);
		return -EINVAL;
	}
	return cv_sandbox_check(make(plan), error);
}

int cv_node_sandbox_enter(const struct cv_plan *plan, bool core_dumps,
	struct cv_sandbox_state *state, struct cv_error *error)
{
	struct cv_sandbox *sandbox = make(plan);
	struct cv_user user;
	int rc = 0;

	sandbox->core_dumps = core_dumps;
	allow_runtime_folder(sandbox);
	// Drivers look at processors, memory and themselves.
	cv_sandbox_allow(sandbox, "/sys", CV_SANDBOX_READS);
	cv_sandbox_allow(sandbox, "/proc/self", CV_SANDBOX_READS);
	if (sandbox->bpf)
		cv_sandbox_allow(sandbox, "/run/xdp", CV_SANDBOX_READS); // libxdp's locks
	if (plan->run_as != NULL && (rc = cv_user_find(plan->run_as, &user, error)) == 0)
		rc = cv_eal_give_folder(user.uid, user.gid, error);
	return rc != 0 ? rc : cv_sandbox_enter(sandbox, state, error);
}
