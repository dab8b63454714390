// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests: descriptors of this process, sent and counted.
#ifndef CV_TEST_FDS_H
#define CV_TEST_FDS_H

#include <dirent.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

// How many this process has open.
static inline unsigned test_count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

// Sends bytes, and with them the descriptors of an array.
static inline void test_send_with(
	int socket, const void *data, size_t size, const int *fds, unsigned count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *rights = (struct cmsghdr *)control;

		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &header, MSG_NOSIGNAL), size);
}

// Sends bytes, and with them the same descriptor some times.
static inline void test_send_fds(int socket, const void *data, size_t size, unsigned count)
{
	int fds[253];

	for (unsigned i = 0; i < count; i++)
		fds[i] = socket;
	test_send_with(socket, data, size, fds, count);
}

#endif
