// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/interface.h"

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/kind.h"

static int read_interface(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char **name = member;

	if (cv_read_plain(at, key, value, name) != 0)
		return -EINVAL;
	if (strlen(*name) >= IF_NAMESIZE)
		return cv_where_wrong(at, key, value, "has %zu bytes; at most %d are possible",
			strlen(*name), IF_NAMESIZE - 1);
	if (if_nametoindex(*name) == 0)
		return cv_where_error(at,
			"%s: %s: there is none of that name here; ip link lists them", key, *name);
	return 0;
}

const struct cv_param cv_interface_params[] = {
	{"interface", CV_CUSTOM, .required = true, .read = read_interface},
	{0},
};

static const char *capability_name(int capability)
{
	switch (capability) {
	case CAP_NET_RAW:
		return "cap_net_raw";
	case CAP_NET_ADMIN:
		return "cap_net_admin";
	case CAP_BPF:
		return "cap_bpf";
	default:
		return "cap_sys_admin";
	}
}

int cv_interface_rights(const int *capabilities, struct cv_error *error)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	char missing[128] = "";
	size_t used = 0;

	if (syscall(SYS_capget, &header, data) != 0)
		return 0; // the attempt will tell
	for (; *capabilities >= 0; capabilities++) {
		if ((data[*capabilities / 32].effective >> (*capabilities % 32) & 1) != 0)
			continue;
		used += (size_t)snprintf(missing + used, sizeof(missing) - used, "%s%s",
			used > 0 ? "," : "", capability_name(*capabilities));
	}
	if (used == 0)
		return 0;
	cv_error_set(error,
		"interface: no permission; run as root, or: sudo setcap %s+ep /path/to/convoyd",
		missing);
	return -EPERM;
}

int cv_interface_is_up(const char *name, struct cv_error *error)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {0};
	int rc = 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 &&
		(request.ifr_flags & IFF_UP) == 0) {
		cv_error_set(error, "interface: %s: is down; ip link set %s up", name, name);
		rc = -ENETDOWN;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}
