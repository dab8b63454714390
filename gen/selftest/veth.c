// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/selftest/veth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[256];
};

// Appends an attribute; nested ones are closed by close_nest.
static struct rtattr *add(struct message *message, unsigned short type, const void *data, size_t n)
{
	struct rtattr *at =
		(struct rtattr *)((char *)message + NLMSG_ALIGN(message->header.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (unsigned short)RTA_LENGTH(n);
	if (n > 0)
		memcpy(RTA_DATA(at), data, n);
	message->header.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(message->header.nlmsg_len) + RTA_ALIGN(at->rta_len));
	return at;
}

static void close_nest(const struct message *message, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)((const char *)message + message->header.nlmsg_len -
					 (const char *)nest);
}

// rtnetlink(7): one request makes both ends.
static int make_pair(const char *a, const char *b)
{
	struct message message = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = RTM_NEWLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK},
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer = {0};
	int rc = -EIO;

	add(&message, IFLA_IFNAME, a, strlen(a) + 1);
	struct rtattr *info = add(&message, IFLA_LINKINFO, NULL, 0);
	add(&message, IFLA_INFO_KIND, "veth", 5);
	struct rtattr *data = add(&message, IFLA_INFO_DATA, NULL, 0);
	struct rtattr *peer = add(&message, VETH_INFO_PEER, &message.link, sizeof(message.link));
	add(&message, IFLA_IFNAME, b, strlen(b) + 1);
	close_nest(&message, peer);
	close_nest(&message, data);
	close_nest(&message, info);

	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (send(fd, &message, message.header.nlmsg_len, 0) < 0 ||
		recv(fd, &answer, sizeof(answer), 0) < 0)
		rc = -errno;
	else if (answer.header.nlmsg_type == NLMSG_ERROR)
		rc = answer.error.error;
	close(fd);
	return rc;
}

// netdevice(7).
static int set_up(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
	const int rc = ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

// Without IPv6 the kernel itself sends nothing on new interfaces. Best effort: what it sends is
// told from our frames anyway.
static void keep_quiet(void)
{
	const int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		errno = 0;
	close(fd);
}

int gen_veth_enter(const char *a, const char *b, struct cv_error *error)
{
	const int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int rc = before < 0 || unshare(CLONE_NEWNET) < 0 ? -errno : 0;

	if (rc == 0) {
		keep_quiet();
		rc = make_pair(a, b);
		if (rc == 0)
			rc = set_up(a);
		if (rc == 0)
			rc = set_up(b);
		if (rc != 0)
			setns(before, CLONE_NEWNET);
	}
	if (rc == 0)
		return before;
	cv_error_set(error,
		"cannot make a network namespace with a veth pair: %s; run as root, or: "
		"unshare -Urn convoy-gen …",
		strerror(-rc));
	if (before >= 0)
		close(before);
	return rc;
}

int gen_veth_leave(int before)
{
	const int rc = setns(before, CLONE_NEWNET) < 0 ? -errno : 0;

	close(before);
	return rc;
}
