// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_tun.h>
#include <linux/rtnetlink.h>

#include "packet/ipv6.h"

#define CHANGES_BYTES (8 << 20) // of the kernel's memory for what was not read yet

struct cv_kernel *cv_kernel_create(struct cv_network *network, struct cv_route_mirror *mirror,
	const char *netns, const struct cv_nf_env *env)
{
	struct cv_kernel *kernel = calloc(1, sizeof(*kernel));

	if (kernel == NULL)
		return NULL;
	*kernel = (struct cv_kernel){.network = network,
		.mirror = mirror,
		.changes.fd = -1,
		.dump.fd = -1,
		.wake.fd = -1,
		.sender = UINT32_MAX,
		.netns = strdup(netns),
		.name = strdup(env->name),
		.buffer = malloc(CV_KERNEL_READ_BYTES),
		.up = calloc(network->workers, sizeof(*kernel->up))};
	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		kernel->tap[i] = (struct cv_kernel_tap){
			.watch.fd = -1, .kernel = kernel, .port = (uint8_t)i};
	if (kernel->netns != NULL && kernel->name != NULL && kernel->buffer != NULL &&
		kernel->up != NULL)
		return kernel;
	kernel->mirror = NULL; // still the caller's
	cv_kernel_destroy(kernel);
	return NULL;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void cv_kernel_destroy(struct cv_kernel *kernel)
{
	if (kernel == NULL)
		return;
	if (kernel->attached) {
		cv_loop_run(cv_kernel_thread_end, kernel);
		cv_loop_release();
	}
	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		close_one(&kernel->tap[i].watch.fd); // the interface goes with it
	close_one(&kernel->changes.fd);
	close_one(&kernel->dump.fd);
	close_one(&kernel->wake.fd);
	for (unsigned i = 0; kernel->up != NULL && i < kernel->network->workers; i++)
		cv_frame_ring_free(&kernel->up[i]);
	cv_frame_ring_free(&kernel->down);
	cv_frame_ring_free(&kernel->waiting);
	cv_route_mirror_destroy(kernel->mirror);
	free(kernel->up);
	free(kernel->buffer);
	free(kernel->netns);
	free((char *)kernel->name);
	free(kernel);
}

static int failed(const struct cv_kernel *kernel, struct cv_error *error, const char *what)
{
	const int rc = -errno;

	cv_error_set(error, "%s: routes: kernel: %s: %s: %s%s", kernel->name, kernel->netns, what,
		strerror(-rc), rc == -EPERM ? "; run it as root" : "");
	return rc;
}

// Sends a request and waits for what the kernel says to it. 0 or -errno.
static int ask(int socket, struct cv_rtnetlink_request *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		uint8_t rest[512];
	} answer;
	ssize_t got;

	if (send(socket, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	got = recv(socket, &answer, sizeof(answer), 0);
	if (got < 0)
		return -errno;
	if ((size_t)got < sizeof(answer.header) + sizeof(answer.error) ||
		answer.header.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

static int open_socket(uint32_t groups, int bytes)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

// Gives an interface the port's addresses, its link-local one as well.
static int add_addresses(struct cv_kernel *kernel, const struct cv_kernel_tap *tap)
{
	const struct cv_network *network = kernel->network;
	struct cv_address link_local = {.v6 = true};
	struct cv_rtnetlink_request request;
	int rc = 0;

	for (size_t i = 0; i < network->owns && rc == 0; i++) {
		const struct cv_own_address *own = &network->own[i];

		if (own->port != tap->port)
			continue;
		cv_rtnetlink_add_address(&request, tap->interface, &own->address, own->length);
		rc = ask(kernel->dump.fd, &request);
	}
	memcpy(link_local.bytes, network->link_local[tap->port], 16);
	if (rc != 0 || link_local.bytes[0] == 0)
		return rc;
	cv_rtnetlink_add_address(&request, tap->interface, &link_local, 64);
	return ask(kernel->dump.fd, &request);
}

static int open_tap(struct cv_kernel *kernel, struct cv_kernel_tap *tap, const char *port,
	struct cv_error *error)
{
	struct ifreq name = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	struct cv_rtnetlink_request request;

	snprintf(name.ifr_name, sizeof(name.ifr_name), "%s", port);
	if (if_nametoindex(port) != 0) {
		cv_error_set(error,
			"%s: routes: kernel: %s has an interface %s already, and the router makes "
			"one for its port; rename either",
			kernel->name, kernel->netns, port);
		return -EEXIST;
	}
	tap->watch.fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->watch.fd < 0)
		return failed(kernel, error, "/dev/net/tun");
	if (ioctl(tap->watch.fd, TUNSETIFF, &name) != 0)
		return failed(kernel, error, port);
	tap->interface = (int)if_nametoindex(port);
	kernel->mirror->hops.interface[tap->port] = tap->interface;
	cv_rtnetlink_set_link(&request, tap->interface, kernel->network->port[tap->port].mac,
		kernel->network->port[tap->port].mtu);
	errno = -ask(kernel->dump.fd, &request);
	if (errno == 0)
		errno = -add_addresses(kernel, tap);
	return errno == 0 ? 0 : failed(kernel, error, port);
}

static bool has_address(const struct cv_network *network, unsigned port)
{
	for (size_t i = 0; i < network->owns; i++)
		if (network->own[i].port == port)
			return true;
	return false;
}

// In the namespace.
static int open_all(struct cv_kernel *kernel, const struct cv_nf_env *env, struct cv_error *error)
{
	const uint32_t groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
				RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
	int rc = 0;

	kernel->changes.fd = open_socket(groups, CHANGES_BYTES);
	kernel->dump.fd = open_socket(0, CHANGES_BYTES);
	kernel->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (kernel->changes.fd < 0 || kernel->dump.fd < 0 || kernel->wake.fd < 0)
		return failed(kernel, error, "rtnetlink");
	for (unsigned port = 0; port < env->ports_count && rc == 0; port++)
		if (has_address(kernel->network, port))
			rc = open_tap(kernel, &kernel->tap[port], env->ports[port], error);
	fcntl(kernel->changes.fd, F_SETFL, O_NONBLOCK);
	fcntl(kernel->dump.fd, F_SETFL, O_NONBLOCK);
	return rc;
}

// Goes into the namespace, does it all, and comes back.
static int open_there(struct cv_kernel *kernel, const struct cv_nf_env *env, struct cv_error *error)
{
	char path[PATH_MAX];
	int here, there, rc;

	snprintf(path, sizeof(path), "%s%s", strchr(kernel->netns, '/') ? "" : "/run/netns/",
		kernel->netns);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0)
		return failed(kernel, error, "no such namespace; ip netns add makes one");
	here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (here < 0 || setns(there, CLONE_NEWNET) != 0) {
		rc = failed(kernel, error, "cannot be entered");
	} else {
		rc = open_all(kernel, env, error);
		if (setns(here, CLONE_NEWNET) != 0)
			rc = failed(kernel, error, "cannot be left");
	}
	close(there);
	close_one(&here);
	return rc;
}

static int make_rings(struct cv_kernel *kernel)
{
	uint16_t mtu = 0;
	int rc;

	for (unsigned port = 0; port < kernel->network->ports_count; port++)
		mtu = RTE_MAX(mtu, kernel->network->port[port].mtu);
	rc = cv_frame_ring_init(&kernel->down, CV_KERNEL_FRAMES, mtu + CV_ETHER_LEN);
	if (rc == 0)
		rc = cv_frame_ring_init(&kernel->waiting, CV_KERNEL_WAITING, mtu + CV_ETHER_LEN);
	for (unsigned i = 0; i < kernel->network->workers && rc == 0; i++)
		rc = cv_frame_ring_init(&kernel->up[i], CV_KERNEL_FRAMES, mtu + CV_ETHER_LEN);
	return rc;
}

int cv_kernel_attach(struct cv_kernel *kernel, const struct cv_nf_env *env, struct cv_error *error)
{
	int rc = make_rings(kernel);

	if (rc == 0)
		rc = open_there(kernel, env, error);
	if (rc == 0)
		rc = cv_loop_hold(error);
	if (rc != 0)
		return rc;
	kernel->attached = true;
	cv_loop_run(cv_kernel_thread_begin, kernel);
	return 0;
}

static json_int_t load(const uint64_t *counter)
{
	return (json_int_t)__atomic_load_n(counter, __ATOMIC_RELAXED);
}

void cv_kernel_info(const struct cv_kernel *kernel, json_t *info)
{
	const struct cv_network *network = kernel->network;
	uint64_t up = 0, down = 0;

	for (unsigned i = 0; i < network->workers; i++) {
		up += (uint64_t)load(&network->worker[i].to_kernel);
		down += (uint64_t)load(&network->worker[i].from_kernel);
	}
	json_object_update_new(
		info, json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "kernel_routes",
			      (int)__atomic_load_n(&kernel->mirror->routes, __ATOMIC_RELAXED),
			      "kernel_changes", load(&kernel->mirror->changed), "kernel_refused",
			      load(&kernel->mirror->refused), "kernel_notices",
			      load(&kernel->notices), "kernel_dumps", load(&kernel->dumps_done),
			      "kernel_overruns", load(&kernel->overruns), "kernel_packets_up",
			      (json_int_t)up, "kernel_packets_down", (json_int_t)down,
			      "kernel_packets_lost", load(&kernel->not_sent)));
}
