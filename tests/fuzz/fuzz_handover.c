// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A running node that says anything to the one that takes over from it: messages of a handover, and what
// they tell of a vhost-user port, with files of the right kind or not. Nothing else is touched, a ring
// that is taken lies in the guest's memory, and no descriptor stays open.
//
//   steps: type, descriptors (2 bits each: none, a file, an eventfd, a socket), 2 bytes of length, the body
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/handover_message.h"
#include "vhost/handover.h"

#define FILE_BYTES 65536u
#define PAIRS 2
#define DESCRIPTORS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

static int open_descriptor(unsigned kind)
{
	static int of[4] = {-1, -1, -1, -1};
	int pair[2];

	if (of[1] < 0) {
		of[1] = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		of[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair of sockets");
		of[3] = pair[0];
		require(of[1] >= 0 && of[2] >= 0 && ftruncate(of[1], FILE_BYTES) == 0,
			"descriptors to pass");
	}
	return kind == 0 ? -1 : fcntl(of[kind], F_DUPFD_CLOEXEC, 0);
}

static void take(struct cv_vhost_device *device, struct cv_handover_message *message)
{
	static struct cv_record record;
	struct cv_error error = {""};
	int rc;

	record.bytes = message->header.bytes - (uint32_t)sizeof(message->port);
	memcpy(record.data, message->record, record.bytes);
	record.fds = message->fds;
	rc = cv_vhost_device_take(device, &record, &error);
	message->fds = record.fds;
	require(rc == 0 || error.text[0] != '\0', "a refusal says why");
	error.text[0] = '\0';
	if (device->taken.is_there)
		rc = cv_vhost_device_taken(device, &error);
	require(rc == 0 || error.text[0] != '\0' || !device->taken.is_there,
		"a device that is not whole says why");
}

static void begin(struct cv_vhost_device *device, struct cv_vhost_queue *queues)
{
	memset(device, 0, sizeof(*device));
	memset(queues, 0, 2 * PAIRS * sizeof(*queues));
	device->queues = queues;
	device->endpoint.type = SOCK_STREAM;
	device->endpoint.client = true;
	device->endpoint.peer = device->endpoint.listener.fd = -1;
	device->taken.listener = device->taken.peer = -1;
	device->session.pairs = PAIRS;
	device->session.ring_size_max = 1024;
	device->session.packed = true;
	cv_vhost_session_begin(&device->session);
}

static void end(struct cv_vhost_device *device)
{
	cv_vhost_session_end(&device->session);
	if (device->taken.listener >= 0)
		close(device->taken.listener);
	if (device->taken.peer >= 0)
		close(device->taken.peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cv_vhost_device device;
	static struct cv_vhost_queue queues[2 * PAIRS];
	static struct cv_handover_message message;
	const int before = open_descriptor(1);

	begin(&device, queues);
	while (size >= 4) {
		const size_t length = data[2] | (size_t)data[3] << 8;
		const size_t some = length < size - 4 ? length : size - 4;
		struct cv_error error = {""};
		int rc;

		memset(&message, 0, sizeof(message));
		message.header = (struct cv_handover_header){data[0], (uint32_t)length};
		for (unsigned i = 0; i < DESCRIPTORS && (data[1] >> 2 * i & 3) != 0; i++)
			message.fds.fds[message.fds.count++] =
				open_descriptor(data[1] >> 2 * i & 3);
		if (some > CV_HANDOVER_BYTES_MAX)
			break;
		memcpy((uint8_t *)&message + sizeof(message.header), data + 4, some);
		rc = cv_handover_check(&message, sizeof(message.header) + some, &error);
		require(rc == 0 || error.text[0] != '\0', "a refusal says why");
		if (rc == 0 && message.header.type == CV_HANDOVER_PORT)
			take(&device, &message);
		cv_socket_fds_close(&message.fds);
		data += 4 + some;
		size -= 4 + some;
	}
	cv_socket_fds_close(&message.fds);
	end(&device);
	// The lowest that is free is the same as before: nothing stayed open.
	close(before);
	require(fcntl(0, F_DUPFD_CLOEXEC, before) == before, "no descriptor stays open");
	close(before);
	return 0;
}
