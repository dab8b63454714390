// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious front end: any messages, whole or in pieces, with any descriptors, in any order, over a
// real socket; and a guest that writes into its memory while the rings are used. Whatever is said, rings
// that can be used lie in the memory that is shared, and no descriptor is left in the end.
//
//   steps: kind, request, descriptors (how many, which), where it is cut; then, by the request's
//   typical length, what follows the header
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vhost/message.h"
#include "vhost/session.h"
#include "vhost/stream.h"
#include "vring/call.h"

#define PAIRS 2
#define LARGE 0x10000
#define ROOM 2048u
#define KINDS 6 // of descriptors
#define STEPS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t left;
};

struct front_end {
	int ours, theirs;
	int fds[KINDS];
	uint8_t *memory; // of the first, as the guest has it
	struct cv_vhost_session session;
	struct cv_vhost_stream stream;
	struct cv_vring vrings[2 * PAIRS];
	bool usable[2 * PAIRS];
};

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

// The next bytes; zeros behind the end.
static void take(struct input *input, void *to, size_t bytes)
{
	const size_t there = bytes < input->left ? bytes : input->left;

	memset(to, 0, bytes);
	memcpy(to, input->data, there);
	input->data += there;
	input->left -= there;
}

// What the next descriptor will be called: one that is left open moves it on.
static int next_fd(void)
{
	const int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static int make_memory(off_t bytes)
{
	const int fd = memfd_create("guest", MFD_CLOEXEC);

	require(fd >= 0 && ftruncate(fd, bytes) == 0, "memory");
	return fd;
}

// Once for all runs: they are told apart by what is said.
static void open_front_end(struct front_end *front)
{
	int ends[2];

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
		"sockets");
	front->ours = ends[0];
	front->theirs = ends[1];
	front->fds[0] = make_memory(LARGE);
	front->fds[1] = make_memory(4096);
	front->fds[2] = eventfd(0, EFD_CLOEXEC);
	front->fds[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
	front->fds[4] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	front->fds[5] = dup(ends[1]);
	front->memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, front->fds[0], 0);
	require(front->memory != MAP_FAILED, "memory is mapped");
	require(cv_call_begin() == 0, "notifications");
}

static bool inside(const struct cv_vhost_session *session, const void *area, size_t bytes)
{
	const uint8_t *at = area;

	for (unsigned i = 0; i < session->memory.guest.count; i++) {
		const struct cv_guest_region *region = &session->memory.guest.regions[i];

		if (at >= region->host && at + bytes <= region->host + region->size)
			return true;
	}
	return false;
}

static void check_ring(const struct cv_vhost_session *session, const struct cv_vring *vring)
{
	const size_t size = vring->size;

	require(size > 0 && size <= session->ring_size_max, "a ring's size");
	require(vring->is_packed == (session->features >> VIRTIO_F_RING_PACKED & 1), "its layout");
	require(inside(session, vring->desc, 16 * size), "its descriptors");
	require(inside(session, vring->avail, vring->is_packed ? 4 : 6 + 2 * size), "its avail");
	require(inside(session, vring->used, vring->is_packed ? 4 : 6 + 8 * size), "its used");
	require(vring->memory == &session->memory.guest, "its memory");
}

static void find_rings(struct front_end *front)
{
	for (uint16_t i = 0; i < 2 * PAIRS; i++) {
		struct cv_error error = {""};
		const int rc = cv_vhost_session_ring(&front->session, i, &front->vrings[i], &error);

		front->usable[i] = rc == 0;
		require((rc == -EINVAL) == (error.text[0] != '\0'), "why a ring is not used");
		if (rc == 0)
			check_ring(&front->session, &front->vrings[i]);
	}
}

static void revoke_rings(struct front_end *front)
{
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		if (front->usable[i])
			front->session.rings[i].base = cv_vring_base(&front->vrings[i]);
		front->usable[i] = false;
	}
}

static void disconnect(struct front_end *front)
{
	uint8_t rest[4096];

	revoke_rings(front);
	cv_vhost_stream_next(&front->stream);
	cv_vhost_session_end(&front->session);
	while (cv_socket_receive(front->ours, rest, sizeof(rest), NULL) != -EAGAIN)
		;
	while (recv(front->theirs, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
}

static void check_reply(const struct front_end *front, const struct cv_vhost_message *reply)
{
	require(reply->request == front->stream.message.request, "what a reply answers");
	require(reply->flags == (CV_VHOST_VERSION | CV_VHOST_REPLY), "a reply's flags");
	require(reply->bytes == 8, "a reply's length");
}

// As device.c does it, with what has come by now.
static void serve(struct front_end *front)
{
	struct cv_vhost_message reply;
	struct cv_error error = {""};
	int rc;

	do {
		rc = cv_vhost_stream_receive(
			&front->stream, front->ours, front->session.protocol_features, &error);
		if (rc != 1)
			break;
		revoke_rings(front);
		rc = cv_vhost_session_handle(&front->session, &front->stream.message,
			front->stream.fds.fds, &reply, &error);
		if (rc == 1)
			check_reply(front, &reply);
		cv_vhost_stream_next(&front->stream);
		find_rings(front);
	} while (rc >= 0);
	if (rc < 0) {
		require(error.text[0] != '\0', "why a peer is refused");
		disconnect(front);
		cv_vhost_session_begin(&front->session);
	}
}

static void send_piece(const struct front_end *front, const void *data, size_t bytes,
	unsigned count, unsigned which)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)data, bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *rights = (struct cmsghdr *)control;

		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		for (unsigned i = 0; i < count; i++)
			memcpy(CMSG_DATA(rights) + i * sizeof(int), &front->fds[which % KINDS],
				sizeof(int));
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	if (bytes > 0)
		require(sendmsg(front->theirs, &header, MSG_NOSIGNAL) == (ssize_t)bytes, "sent");
}

// How many bytes typically follow the header of a request.
static uint32_t typical_bytes(uint8_t request, uint8_t regions)
{
	static const uint8_t bytes[] = {[CV_VHOST_SET_FEATURES] = 8,
		[CV_VHOST_SET_LOG_BASE] = 16,
		[CV_VHOST_SET_VRING_NUM] = 8,
		[CV_VHOST_SET_VRING_ADDR] = 40,
		[CV_VHOST_SET_VRING_BASE] = 8,
		[CV_VHOST_GET_VRING_BASE] = 8,
		[CV_VHOST_SET_VRING_KICK] = 8,
		[CV_VHOST_SET_VRING_CALL] = 8,
		[CV_VHOST_SET_VRING_ERR] = 8,
		[CV_VHOST_SET_PROTOCOL_FEATURES] = 8,
		[CV_VHOST_SET_VRING_ENABLE] = 8,
		[CV_VHOST_NET_SET_MTU] = 8,
		[CV_VHOST_SET_STATUS] = 8,
		[CV_VHOST_GET_STATUS] = 0};

	if (request == CV_VHOST_SET_MEM_TABLE)
		return 8 + regions % 10 * sizeof(struct cv_vhost_region);
	return request < sizeof(bytes) ? bytes[request] : 0;
}

// head: request, descriptors (how many below, which above), where it is cut (0: nowhere).
static void send_message(
	struct front_end *front, struct input *input, const uint8_t *head, bool odd)
{
	struct {
		struct cv_vhost_message message;
		uint8_t behind[64];
	} sent = {.message = {.request = head[0], .flags = CV_VHOST_VERSION}};
	const unsigned count = head[1] & 15;
	uint32_t bytes = typical_bytes(head[0], head[1] & 15);
	size_t whole, cut;

	if (odd) {
		uint8_t strange[2];

		take(input, strange, sizeof(strange));
		sent.message.flags = strange[0];
		bytes = strange[1];
	}
	sent.message.bytes = bytes;
	take(input, &sent.message.u64, bytes);
	whole = CV_VHOST_HEADER_BYTES + bytes;
	cut = head[2] < whole ? head[2] : 0;
	send_piece(front, &sent.message, cut, cut > 0 ? count : 0, head[1] >> 4);
	if (cut > 0)
		serve(front);
	send_piece(front, (const uint8_t *)&sent.message + cut, whole - cut, cut > 0 ? 0 : count,
		head[1] >> 4);
	serve(front);
}

static void use_ring(struct front_end *front, uint8_t which)
{
	static uint8_t room[8][ROOM];
	const unsigned index = which % (2 * PAIRS);
	struct cv_vring *vring = &front->vrings[index];
	struct cv_view views[8];
	uint8_t *to[8];
	uint16_t lens[8];

	if (!front->usable[index])
		return;
	for (unsigned i = 0; i < 8; i++) {
		to[i] = room[i];
		views[i] = (struct cv_view){.data = room[i], .len = (uint16_t)(60 + which)};
	}
	if (index % 2 == 1)
		require(cv_vring_dequeue(vring, to, ROOM, lens, 8) <= 8, "packets");
	else
		require(cv_vring_enqueue(vring, views, 8) <= 8, "packets");
	cv_vring_notify(vring);
}

static void play(struct front_end *front, struct input *input)
{
	uint8_t step[4];
	uint16_t at;

	take(input, step, sizeof(step));
	switch (step[0] % 8) {
	case 0:
	case 1:
	case 2:
		send_message(front, input, step + 1, false);
		break;
	case 3: // flags and length as they come, too
		send_message(front, input, step + 1, true);
		break;
	case 4:
	case 5:
		use_ring(front, step[1]);
		break;
	case 6: // the guest writes
		memcpy(&at, step + 1, sizeof(at));
		front->memory[at] = step[3];
		break;
	default: // bytes that are no message
		send_piece(front, step, sizeof(step), step[1] & 15, step[2]);
		serve(front);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct front_end front;
	struct input input = {data, size};
	int before;

	if (front.memory == NULL)
		open_front_end(&front);
	before = next_fd();
	memset(front.memory, 0, LARGE);
	memset(front.vrings, 0, sizeof(front.vrings));
	front.session =
		(struct cv_vhost_session){.pairs = PAIRS, .ring_size_max = 1024, .packed = true};
	cv_vhost_session_begin(&front.session);
	for (unsigned i = 0; i < STEPS_MAX && input.left > 0; i++)
		play(&front, &input);
	disconnect(&front);
	require(next_fd() == before, "no descriptor is left");
	return 0;
}
