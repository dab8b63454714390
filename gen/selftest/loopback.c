// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/selftest/loopback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/selftest/veth.h"
#include "gen/trial/attach.h"

#define PATIENCE_S 20

static const struct gen_loopback_kind kinds[] = {
	{"vhost-user", {"vhost-user:"}, true, false},
	{"virtio-user", {"virtio-user:", "dev:net_virtio_user", "dev:net_vhost"}, false, true},
	{"memif", {"memif:", "dev:net_memif"}, false, true},
	{"af_packet", {"af_packet:", "dev:net_af_packet"}, false, true},
	{"ring", {"dev:net_ring"}, false, true},
};

static const struct gen_vhost_options rings = {
	.queues = 1, .ring = 1024, .buffer = 1514, .memory = 64 << 20};

const struct gen_loopback_kind *gen_loopback_find(const char *name, const char **names)
{
	*names = "vhost-user virtio-user memif af_packet ring";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

const struct gen_loopback_kind *gen_loopback_of(const struct gen_port_option *option)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (const char *const *like = kinds[i].like; *like != NULL; like++)
			if (strncmp(option->text, *like, strlen(*like)) == 0)
				return &kinds[i];
	return NULL;
}

// Our own rings, with a thread that plays the device.
static int open_reflected(struct gen_loopback *loopback, uint32_t core, struct cv_error *error)
{
	struct gen_reflector *reflector = calloc(1, sizeof(*reflector));

	for (uint32_t i = 0; i < 2; i++) {
		struct gen_port *port = calloc(1, sizeof(*port));
		const int result = port == NULL || reflector == NULL
					   ? -ENOMEM
					   : gen_vhost_open_inside(port, &rings);

		if (result < 0) {
			cv_error_set(error, "self-test: %s", strerror(-result));
			free(port);
			free(reflector);
			return result;
		}
		snprintf(port->name, sizeof(port->name), "inside%u", i);
		loopback->ports[loopback->port_count++] = port;
	}
	reflector->core = core;
	reflector->direction_count = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct gen_vring *unused;

		gen_vhost_rings(loopback->ports[i], 0, &unused, &reflector->directions[i].from);
		gen_vhost_rings(loopback->ports[1 - i], 0, &reflector->directions[i].to, &unused);
	}
	const int started = gen_reflector_start(reflector);
	if (started < 0) {
		cv_error_set(error, "self-test: cannot start a thread: %s", strerror(-started));
		free(reflector);
		return started;
	}
	loopback->reflector = reflector;
	return 0;
}

static int open_port(struct gen_loopback *loopback, const char *text, struct cv_error *error)
{
	struct gen_port *port = calloc(1, sizeof(*port));
	struct gen_port_option option = {0};
	int rc = port != NULL ? gen_port_parse(&option, text, error) : -ENOMEM;

	if (port == NULL)
		cv_error_set(error, "out of memory");
	if (rc == 0)
		rc = gen_port_open(port, &option, error);
	gen_port_option_free(&option);
	if (rc == 0)
		loopback->ports[loopback->port_count++] = port;
	else
		free(port);
	return rc;
}

static int open_socket_pair(struct gen_loopback *loopback, const char *listens,
	const char *connects, struct cv_error *error)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char text[160];
	int rc;

	// A socket's path has 107 bytes at most.
	if (runtime == NULL || strlen(runtime) > 32)
		runtime = "/tmp";
	snprintf(loopback->directory, sizeof(loopback->directory), "%s/convoy-gen-XXXXXX", runtime);
	if (mkdtemp(loopback->directory) == NULL) {
		cv_error_set(error, "self-test: %s: %s", runtime, strerror(errno));
		loopback->directory[0] = '\0';
		return -EIO;
	}
	snprintf(text, sizeof(text), listens, loopback->directory);
	rc = open_port(loopback, text, error);
	if (rc < 0)
		return rc;
	snprintf(text, sizeof(text), connects, loopback->directory);
	return open_port(loopback, text, error);
}

static int open_veth(struct gen_loopback *loopback, struct cv_error *error)
{
	struct cv_error reason = {0};
	const int before = gen_veth_enter("convoy0", "convoy1", &reason);
	int rc;

	if (before < 0) {
		cv_error_set(error, "--self-test=af_packet: %.400s", reason.text);
		return before;
	}
	rc = open_port(loopback, "af_packet:convoy0", error);
	if (rc == 0)
		rc = open_port(loopback, "af_packet:convoy1", error);
	if (gen_veth_leave(before) < 0 && rc == 0) {
		cv_error_set(error, "self-test: cannot leave its network namespace");
		rc = -EIO;
	}
	return rc;
}

static int open_ports(
	struct gen_loopback *loopback, uint32_t reflector_core, struct cv_error *error)
{
	const char *name = loopback->kind->name;

	if (loopback->kind->needs_reflector)
		return open_reflected(loopback, reflector_core, error);
	if (strcmp(name, "memif") == 0)
		return open_socket_pair(loopback, "memif:%s/s,server", "memif:%s/s", error);
	if (strcmp(name, "virtio-user") == 0)
		return open_socket_pair(
			loopback, "dev:net_vhost99,iface=%s/s", "virtio-user:%s/s", error);
	if (strcmp(name, "af_packet") == 0)
		return open_veth(loopback, error);
	return open_port(loopback, "dev:net_ring99", error);
}

int gen_loopback_open(struct gen_loopback *loopback, const struct gen_loopback_kind *kind,
	uint32_t reflector_core, struct cv_error *error)
{
	struct gen_tester pair = {0};
	int rc;

	*loopback = (struct gen_loopback){.kind = kind};
	rc = open_ports(loopback, reflector_core, error);
	if (rc < 0)
		return rc;
	for (; pair.port_count < loopback->port_count; pair.port_count++)
		pair.ports[pair.port_count] = loopback->ports[pair.port_count];
	return gen_attach(&pair, PATIENCE_S, error) ? 0 : -ETIMEDOUT;
}

void gen_loopback_close(struct gen_loopback *loopback)
{
	char path[sizeof(loopback->directory) + 2];

	if (loopback->reflector != NULL)
		gen_reflector_stop(loopback->reflector);
	free(loopback->reflector);
	// Who connected goes before who listens.
	while (loopback->port_count > 0) {
		struct gen_port *port = loopback->ports[--loopback->port_count];

		port->close(port);
		free(port);
	}
	if (loopback->directory[0] == '\0')
		return;
	snprintf(path, sizeof(path), "%s/s", loopback->directory);
	unlink(path);
	rmdir(loopback->directory);
}
