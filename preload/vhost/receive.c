// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/receive.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "dpdk/compat.h"
#include "vhost/protocol.h"

#define EXPORT __attribute__((visibility("default")))

// The rest of a message whose beginning is there: front ends send it in one piece.
#define REST_US 100000

// Of replies that a front end has not read. rte_vhost waits where there is no room for another.
#define UNREAD_BYTES_MAX 65536

bool cv_receive_any_files; // atomic

static ssize_t (*real)(int socket, struct msghdr *header, int flags);

__attribute__((constructor)) static void find(void)
{
	real = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
}

bool cv_receive_is_server(void)
{
	static _Thread_local enum { UNKNOWN, YES, NO } known;

	if (known == UNKNOWN) {
		char name[16] = "";

		pthread_getname_np(pthread_self(), name, sizeof(name));
		known = strcmp(name, CV_DPDK_VHOST_THREAD) == 0 ? YES : NO;
	}
	return known == YES;
}

static bool carries_files(uint32_t request)
{
	switch (request) {
	case CV_VHOST_SET_MEM_TABLE:
	case CV_VHOST_SET_LOG_BASE:
	case CV_VHOST_SET_LOG_FD:
	case CV_VHOST_SET_VRING_KICK:
	case CV_VHOST_SET_VRING_CALL:
	case CV_VHOST_SET_VRING_ERR:
		return true;
	default:
		return __atomic_load_n(&cv_receive_any_files, __ATOMIC_RELAXED);
	}
}

// Closes the files that came. Returns how many.
static unsigned close_files(struct msghdr *header)
{
	unsigned closed = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
		part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= part->cmsg_len; i++) {
			int file;

			memcpy(&file, CMSG_DATA(part) + i * sizeof(int), sizeof(file));
			close(file);
			closed++;
		}
	}
	header->msg_controllen = 0;
	return closed;
}

// Of a vhost-user message: its header, and the files that come with it.
static ssize_t receive(int socket, struct msghdr *header, int flags)
{
	const struct timeval rest = {.tv_usec = REST_US};
	int unread = 0;
	ssize_t got;
	uint32_t request;

	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &rest, sizeof(rest));
	if (ioctl(socket, SIOCOUTQ, &unread) == 0 && unread > UNREAD_BYTES_MAX) {
		errno = ENOBUFS;
		return -1;
	}
	got = real(socket, header, flags);
	if (got < (ssize_t)sizeof(request))
		return got;
	memcpy(&request, header->msg_iov->iov_base, sizeof(request));
	if (!carries_files(request) && close_files(header) > 0) {
		errno = EPROTO;
		return -1;
	}
	return got;
}

EXPORT ssize_t recvmsg(int socket, struct msghdr *header, int flags)
{
	if (real == NULL) // another library's constructor
		return syscall(SYS_recvmsg, socket, header, flags);
	if (cv_receive_is_server() && header->msg_iovlen == 1 &&
		header->msg_iov->iov_len == CV_VHOST_HEADER_BYTES)
		return receive(socket, header, flags);
	return real(socket, header, flags);
}
