// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/vhost_user.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vhost/protocol.h"

#define ANSWER_MS 5000

static bool has(uint64_t features, int bit)
{
	return features >> bit & 1;
}

static int fill_address(struct sockaddr_un *address, const char *path)
{
	if (strlen(path) > VHOST_USER_SOCKET_MAX)
		return -ENAMETOOLONG;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, path, strlen(path));
	return 0;
}

int vhost_user_connect(const char *path)
{
	struct sockaddr_un address;
	int error = fill_address(&address, path);

	if (error < 0)
		return error;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

int vhost_user_listen(const char *path)
{
	struct sockaddr_un address;
	struct stat status;
	int error = fill_address(&address, path);

	if (error < 0)
		return error;
	if (lstat(path, &status) == 0) {
		if (!S_ISSOCK(status.st_mode))
			return -EEXIST;
		const int probe = vhost_user_connect(path);
		if (probe >= 0) {
			close(probe);
			return -EADDRINUSE;
		}
		if (probe == -ECONNREFUSED)
			unlink(path);
	}
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static int send_message(int socket, const struct cv_vhost_message *message, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(void *)message, CV_VHOST_HEADER_BYTES + message->bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	const ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return sent == (ssize_t)part.iov_len ? 0 : -EPROTO;
}

static int receive(int socket, void *into, size_t bytes)
{
	struct pollfd ready = {.fd = socket, .events = POLLIN};

	for (size_t have = 0; have < bytes;) {
		const int ready_count = poll(&ready, 1, ANSWER_MS);
		if (ready_count < 0)
			return -errno;
		if (ready_count == 0)
			return -ETIMEDOUT;
		const ssize_t got = recv(socket, (char *)into + have, bytes - have, 0);
		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return -EPIPE;
		if (got < 0)
			return -errno;
		have += (size_t)got;
	}
	return 0;
}

// An answer of exactly `bytes` to `request`.
static int receive_answer(
	int socket, uint32_t request, struct cv_vhost_message *answer, uint32_t bytes)
{
	int error = receive(socket, answer, CV_VHOST_HEADER_BYTES);

	if (error < 0)
		return error;
	if (answer->request != request || !(answer->flags & CV_VHOST_REPLY) ||
		answer->bytes != bytes)
		return -EPROTO;
	return receive(socket, &answer->u64, bytes);
}

static int query(int socket, uint32_t request, uint64_t *value)
{
	struct cv_vhost_message message = {.request = request, .flags = CV_VHOST_VERSION};
	int error = send_message(socket, &message, -1);

	if (error == 0)
		error = receive_answer(socket, request, &message, sizeof(uint64_t));
	if (error == 0)
		*value = message.u64;
	return error;
}

// Sends, and waits for the acknowledgement where the back end gives them.
static int send_request(struct vhost_user *user, struct cv_vhost_message *message, int fd)
{
	const bool acknowledged = has(user->protocol_features, CV_VHOST_PROTOCOL_F_REPLY_ACK);
	struct cv_vhost_message answer;

	message->flags = CV_VHOST_VERSION | (acknowledged ? CV_VHOST_NEED_REPLY : 0);
	int error = send_message(user->socket, message, fd);
	if (error < 0 || !acknowledged)
		return error;
	error = receive_answer(user->socket, message->request, &answer, sizeof(uint64_t));
	if (error == 0 && answer.u64 != 0)
		error = -EPROTO;
	return error;
}

static int send_request_u64(struct vhost_user *user, uint32_t request, uint64_t value, int fd)
{
	struct cv_vhost_message message = {
		.request = request, .bytes = sizeof(value), .u64 = value};

	return send_request(user, &message, fd);
}

static int send_request_state(
	struct vhost_user *user, uint32_t request, uint32_t index, uint32_t number)
{
	struct cv_vhost_message message = {
		.request = request, .bytes = sizeof(message.state), .state = {index, number}};

	return send_request(user, &message, -1);
}

int vhost_user_negotiate(struct vhost_user *user, int socket, uint64_t wanted)
{
	const uint64_t protocol_wanted = 1ull << CV_VHOST_PROTOCOL_F_MQ |
					 1ull << CV_VHOST_PROTOCOL_F_REPLY_ACK |
					 1ull << CV_VHOST_PROTOCOL_F_STATUS;
	struct cv_vhost_message owner = {.request = CV_VHOST_SET_OWNER};
	uint64_t offered = 0, queues = 1;
	int error;

	*user = (struct vhost_user){.socket = socket, .queue_pairs_max = 1};
	error = send_request(user, &owner, -1);
	if (error == 0)
		error = query(socket, CV_VHOST_GET_FEATURES, &offered);
	if (error < 0)
		return error;
	user->features = offered & (wanted | 1ull << CV_VHOST_F_PROTOCOL_FEATURES);
	if (has(offered, CV_VHOST_F_PROTOCOL_FEATURES)) {
		uint64_t protocol = 0;

		error = query(socket, CV_VHOST_GET_PROTOCOL_FEATURES, &protocol);
		if (error < 0)
			return error;
		error = send_request_u64(
			user, CV_VHOST_SET_PROTOCOL_FEATURES, protocol & protocol_wanted, -1);
		if (error < 0)
			return error;
		user->protocol_features = protocol & protocol_wanted;
		if (has(user->protocol_features, CV_VHOST_PROTOCOL_F_MQ)) {
			error = query(socket, CV_VHOST_GET_QUEUE_NUM, &queues);
			if (error < 0)
				return error;
		}
	}
	user->queue_pairs_max = queues > 0 && queues <= UINT16_MAX ? (uint32_t)queues : 1;
	return send_request_u64(user, CV_VHOST_SET_FEATURES, user->features, -1);
}

int vhost_user_share(struct vhost_user *user, const void *memory, size_t bytes, int fd)
{
	struct cv_vhost_message message = {
		.request = CV_VHOST_SET_MEM_TABLE,
		.bytes = offsetof(struct cv_vhost_memory_table, regions[1]),
		.memory = {.count = 1,
			.regions = {{(uintptr_t)memory, bytes, (uintptr_t)memory, 0}}},
	};

	return send_request(user, &message, fd);
}

int vhost_user_vring_setup(struct vhost_user *user, const struct vhost_user_vring *vring)
{
	struct cv_vhost_message address = {
		.request = CV_VHOST_SET_VRING_ADDR,
		.bytes = sizeof(address.address),
		.address = {.index = vring->index,
			.desc_user_addr = (uintptr_t)vring->desc,
			.used_user_addr = (uintptr_t)vring->used,
			.avail_user_addr = (uintptr_t)vring->avail},
	};
	int error = send_request_state(user, CV_VHOST_SET_VRING_NUM, vring->index, vring->size);

	if (error == 0)
		error = send_request_state(user, CV_VHOST_SET_VRING_BASE, vring->index, 0);
	if (error == 0)
		error = send_request(user, &address, -1);
	if (error == 0)
		error = send_request_u64(user, CV_VHOST_SET_VRING_CALL, vring->index, vring->call);
	if (error == 0)
		error = send_request_u64(user, CV_VHOST_SET_VRING_KICK, vring->index, vring->kick);
	return error;
}

int vhost_user_vring_enable(struct vhost_user *user, uint32_t index, bool enable)
{
	if (!has(user->features, CV_VHOST_F_PROTOCOL_FEATURES))
		return 0;
	return send_request_state(user, CV_VHOST_SET_VRING_ENABLE, index, enable);
}

int vhost_user_vring_start(const struct vhost_user_vring *vring)
{
	const uint64_t one = 1;

	// EAGAIN: nobody has read as many as an eventfd holds, so that it is kicked.
	if (write(vring->kick, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

int vhost_user_ready(struct vhost_user *user)
{
	if (!has(user->protocol_features, CV_VHOST_PROTOCOL_F_STATUS))
		return 0;
	return send_request_u64(user, CV_VHOST_SET_STATUS,
		VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK |
			VIRTIO_CONFIG_S_DRIVER_OK,
		-1);
}

int64_t vhost_user_vring_stop(struct vhost_user *user, uint32_t index)
{
	struct cv_vhost_message message = {.request = CV_VHOST_GET_VRING_BASE,
		.flags = CV_VHOST_VERSION,
		.bytes = sizeof(message.state),
		.state = {index, 0}};
	int error = send_message(user->socket, &message, -1);

	if (error == 0)
		error = receive_answer(
			user->socket, CV_VHOST_GET_VRING_BASE, &message, sizeof(message.state));
	return error < 0 ? error : (int64_t)message.state.num;
}
