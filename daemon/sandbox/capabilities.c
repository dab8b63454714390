// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	if (syscall(SYS_capget, &header, data) != 0)
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

uint64_t cv_capabilities_now(void)
{
	struct __user_cap_data_struct data[2] = {{0}};

	return get(data);
}

int cv_capabilities_bound(uint64_t keep)
{
	for (int i = 0; i < 64; i++) {
		if ((keep >> i & 1) != 0 || prctl(PR_CAPBSET_READ, i, 0, 0, 0) != 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
			return -errno;
	}
	return 0;
}

int cv_capabilities_keep(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	get(data);
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}
