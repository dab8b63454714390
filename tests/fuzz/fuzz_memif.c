// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The malicious memif peer, of a server or of a client: any messages, with files of the right kind or
// not, and any bytes in the shared memory, changed as it goes. Nothing else is touched (guard pages lie
// around the memory), nothing hangs (a call does a bounded number of steps), what a ring says it took
// or put adds up, and no descriptor stays open.
//
//   role, number of steps, steps: kind, 3 bytes, and what the kind takes
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memif/session.h"
#include "vring/call.h"

#define FILE_BYTES 16384u
#define SLOTS 16
#define ROOM 700u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

struct input {
	const uint8_t *at, *end;
};

// The next bytes; zeros behind the end.
static void take(struct input *input, void *to, size_t bytes)
{
	const size_t left = (size_t)(input->end - input->at);
	const size_t some = bytes < left ? bytes : left;

	memset(to, 0, bytes);
	memcpy(to, input->at, some);
	input->at += some;
}

// The file of all inputs, which begins as zeros for each.
static int shared_file(void)
{
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		require(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "a file to share");
	}
	return fd;
}

static int event(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd;
}

static void receive(
	struct cv_memif_session *session, struct cv_memif_message *message, int size, int fd)
{
	struct cv_socket_fds fds = {0};
	struct cv_memif_reply reply;
	struct cv_error error = {""};
	const bool was_up = session->up;

	if (fd >= 0)
		fds.fds[fds.count++] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (cv_memif_session_receive(session, message, size, &fds, &reply, &error) != 0) {
		require(error.text[0] != '\0', "a refusal says why");
		require(session->up == was_up, "what is refused changes nothing");
		cv_memif_session_end(session);
		cv_memif_session_begin(session, &reply);
	}
	cv_socket_fds_close(&fds);
}

// A message as it comes.
static void any_message(struct cv_memif_session *session, struct input *input, const uint8_t *step)
{
	struct cv_memif_message message = {.type = step[1] % 12};
	const int fds[] = {-1, shared_file(), event()};

	take(input, message.bytes, 40);
	receive(session, &message, step[2] % 16 == 15 ? step[3] : CV_MEMIF_MESSAGE_BYTES,
		fds[step[2] % 3]);
}

// The messages that connect, with rings of any size anywhere.
static void connect_peer(struct cv_memif_session *session, const uint8_t *step)
{
	struct cv_memif_message message = {.type = CV_MEMIF_INIT};
	const uint32_t cookie = CV_MEMIF_COOKIE;

	if (session->client) {
		message.type = CV_MEMIF_HELLO;
		message.hello.min_version = message.hello.max_version = CV_MEMIF_VERSION;
		message.hello.max_log2_ring_size = step[1];
		receive(session, &message, sizeof(message), -1);
		for (unsigned i = 0; i < 5; i++) {
			message.type = i < 4 ? CV_MEMIF_ACK : CV_MEMIF_CONNECTED;
			receive(session, &message, sizeof(message), -1);
		}
		return;
	}
	message.init.version = CV_MEMIF_VERSION;
	receive(session, &message, sizeof(message), -1);
	message = (struct cv_memif_message){
		.type = CV_MEMIF_ADD_REGION, .add_region.size = FILE_BYTES};
	receive(session, &message, sizeof(message), shared_file());
	for (uint16_t i = 0; i < 2; i++) {
		const uint32_t offset = i * (step[2 + i] & 0x3f) * 256u;

		require(pwrite(shared_file(), &cookie, 4, offset) == 4, "the file takes bytes");
		message = (struct cv_memif_message){.type = CV_MEMIF_ADD_RING,
			.add_ring = {.flags = i,
				.offset = offset,
				.log2_ring_size = (uint8_t)(step[1] >> 4 * i & 15)}};
		receive(session, &message, sizeof(message), event());
	}
	message = (struct cv_memif_message){.type = CV_MEMIF_CONNECT};
	receive(session, &message, sizeof(message), -1);
}

static void dequeue(struct cv_memif_ring *ring, uint16_t n)
{
	uint8_t *to[64];
	uint16_t lens[64], got;

	for (unsigned i = 0; i < n; i++)
		to[i] = malloc(ROOM);
	got = cv_memif_dequeue(ring, to, ROOM, lens, n);
	require(got <= n, "no more packets than asked for");
	for (uint16_t i = 0; i < got; i++)
		require(lens[i] >= 14 && lens[i] <= ROOM, "packets that fit");
	for (unsigned i = 0; i < n; i++)
		free(to[i]);
}

static void coalesce(struct cv_memif_ring *ring, uint16_t n)
{
	struct cv_vring_buffer coalesced[3];
	struct cv_view views[64];
	uint16_t used = 3, got, view = 0;

	for (unsigned i = 0; i < 3; i++)
		coalesced[i] = (struct cv_vring_buffer){malloc(ROOM), ROOM, 500, 0, 0};
	got = cv_memif_coalesce(ring, views, n, coalesced, &used);
	require(got <= n && used <= 3, "no more than asked for");
	for (uint16_t i = 0; i < used; i++) {
		uint32_t at = 0;

		require(coalesced[i].packets == 1 || coalesced[i].len <= 500,
			"coalesced packets fit");
		for (uint16_t j = 0; j < coalesced[i].packets; j++, view++) {
			require(views[view].data == coalesced[i].data + at + 2, "where it lies");
			at += 2u + views[view].len;
		}
		require(at == coalesced[i].len && at <= ROOM && at > 0, "the buffer's length");
	}
	require(view == got, "every view lies in a buffer");
	for (unsigned i = 0; i < 3; i++)
		free(coalesced[i].data);
}

static void enqueue(struct cv_memif_ring *ring, uint16_t n, uint16_t len)
{
	struct cv_view views[64];
	uint8_t *packet = calloc(1, len + !len);

	for (uint16_t i = 0; i < n; i++)
		views[i] = (struct cv_view){.data = packet, .len = len};
	require(cv_memif_enqueue(ring, views, n) <= n, "no more packets than given");
	free(packet);
}

static void move(struct cv_memif_session *session, const uint8_t *step)
{
	struct cv_memif_ring *ring = &session->rings[step[1] >> 7];
	const bool takes = ring->client != ring->to_server;
	const uint16_t n = step[1] % 64 + 1, before = ring->next;
	const uint16_t len = (uint16_t)((step[2] | step[3] << 8) % 5000);
	const uint32_t most =
		takes ? CV_MEMIF_STEPS : CV_MEMIF_PUT_STEPS + n * CV_MEMIF_PUT_STEPS_OF(len);

	if (!session->up)
		return;
	if (takes && step[2] & 1)
		dequeue(ring, n);
	else if (takes)
		coalesce(ring, n);
	else
		enqueue(ring, n, len);
	require((uint16_t)(ring->next - before) <= most + CV_MEMIF_CHAIN_MAX,
		"a bounded number of steps");
	require(cv_memif_ready(ring) <= ring->size, "no more buffers than descriptors");
}

// The peer writes: into a descriptor, an index, or anywhere.
static void write_memory(struct cv_memif_session *session, struct input *input, const uint8_t *step)
{
	struct cv_memif_ring *ring = &session->rings[step[1] >> 7];
	uint16_t *index;
	uint8_t bytes[16];

	take(input, bytes, sizeof(bytes));
	if (!session->up)
		return;
	index = session->client ? &ring->shared->tail : &ring->shared->head;
	if (step[2] & 1)
		memcpy(&ring->shared->descriptors[step[3] % ring->size], bytes, sizeof(bytes));
	else if (step[2] & 2)
		*index = (uint16_t)(*index + step[3]);
	else
		memcpy(session->memory[0].data + (step[2] << 8 | step[3]) %
							 (session->memory[0].size - sizeof(bytes)),
			bytes, sizeof(bytes));
}

// A whole descriptor, of values at which a check may be wrong.
static void write_descriptor(
	struct cv_memif_session *session, struct input *input, const uint8_t *step)
{
	static const uint32_t values[] = {0, 1, 13, 14, 60, 700, 2048, 4096, FILE_BYTES - 60,
		FILE_BYTES - 59, FILE_BYTES, FILE_BYTES + 1, 65535, 65536, INT32_MAX,
		UINT32_MAX - 2048, UINT32_MAX - 60, UINT32_MAX - 13, UINT32_MAX};
	const unsigned count = sizeof(values) / sizeof(values[0]);
	struct cv_memif_ring *ring = &session->rings[step[1] >> 7];
	uint8_t which[2];

	take(input, which, sizeof(which));
	if (!session->up)
		return;
	ring->shared->descriptors[step[3] % ring->size] =
		(struct cv_memif_descriptor){.flags = step[2] & 1,
			.region = step[2] >> 4 == 15,
			.length = values[which[0] % count],
			.offset = values[which[1] % count]};
	if (step[2] & 2) {
		uint16_t *index = session->client ? &ring->shared->tail : &ring->shared->head;

		++*index;
	}
}

static unsigned count_fds(void)
{
	unsigned count = 0;

	for (int fd = 3; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	struct cv_memif_session session = {.slots = SLOTS, .name = "fuzz"};
	struct cv_memif_reply reply;
	uint8_t begin[2], step[4];
	unsigned before;

	cv_call_begin();
	require(fallocate(shared_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			FILE_BYTES) == 0,
		"an empty file");
	event();
	before = count_fds();
	take(&input, begin, sizeof(begin));
	session.client = begin[0] & 1;
	cv_memif_session_begin(&session, &reply);
	for (unsigned i = 0; i < begin[1]; i++) {
		take(&input, step, sizeof(step));
		switch (step[0] % 8) {
		case 0:
			any_message(&session, &input, step);
			break;
		case 1:
			connect_peer(&session, step);
			break;
		case 2:
			write_memory(&session, &input, step);
			break;
		case 3:
			write_descriptor(&session, &input, step);
			break;
		default:
			move(&session, step);
		}
	}
	cv_memif_session_end(&session);
	require(count_fds() == before, "no descriptor stays open");
	return 0;
}
