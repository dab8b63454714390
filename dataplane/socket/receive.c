// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/receive.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void cv_socket_fds_close(struct cv_socket_fds *fds)
{
	for (unsigned i = 0; i < fds->count; i++) {
		if (fds->fds[i] >= 0)
			close(fds->fds[i]);
	}
	fds->count = 0;
}

// Takes what the kernel has already put into our table. 0, or -EMFILE: there is no place for all.
static int keep(struct msghdr *header, struct cv_socket_fds *fds)
{
	int rc = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
		part = CMSG_NXTHDR(header, part)) {
		const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (fds != NULL && fds->count < CV_SOCKET_FDS_MAX) {
				fds->fds[fds->count++] = fd;
			} else {
				close(fd);
				rc = -EMFILE;
			}
		}
	}
	return rc;
}

int cv_socket_receive(int fd, void *data, size_t size, struct cv_socket_fds *fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(CV_SOCKET_FDS_MAX * sizeof(int))];
	struct iovec part = {data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t got;
	int rc;

	// Without a place for descriptors the kernel closes those that come, and says so.
	if (fds != NULL) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
	}
	do {
		got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	rc = keep(&header, fds);
	if (rc == 0 && (header.msg_flags & MSG_CTRUNC))
		rc = -EMFILE;
	return rc != 0 ? rc : (int)got;
}

int cv_socket_send(int fd, const void *data, size_t size)
{
	return cv_socket_send_fds(fd, data, size, &(struct cv_socket_fds){0});
}

int cv_socket_send_with(int fd, const void *data, size_t size, int passed)
{
	return cv_socket_send_fds(
		fd, data, size, &(struct cv_socket_fds){.count = passed >= 0, .fds = {passed}});
}

int cv_socket_send_fds(int fd, const void *data, size_t size, const struct cv_socket_fds *fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(CV_SOCKET_FDS_MAX * sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	const size_t bytes = fds->count * sizeof(int);
	ssize_t sent;

	if (bytes > 0) {
		struct cmsghdr *rights = (struct cmsghdr *)control;

		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(rights), fds->fds, bytes);
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(bytes);
	}
	do {
		sent = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == size ? 0 : -EAGAIN;
}
