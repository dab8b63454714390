// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memif/session.h"
#include "socket/test_fds.h"
#include "vring/call.h"

#define FILE_BYTES 65536

static struct cv_memif_session make(bool client, struct cv_memif_reply *first)
{
	struct cv_memif_session session = {.client = client, .id = 7, .slots = 256, .name = "test"};

	cv_memif_session_begin(&session, first);
	return session;
}

// Hands a message over as a socket does: with a descriptor of its own. Returns what receiving does.
static int hand(struct cv_memif_session *to, const struct cv_memif_reply *what,
	struct cv_memif_reply *reply, struct cv_error *error)
{
	struct cv_memif_message message = what->message;
	struct cv_socket_fds fds = {0};
	int rc;

	if (what->fd >= 0)
		fds.fds[fds.count++] = fcntl(what->fd, F_DUPFD_CLOEXEC, 0);
	rc = cv_memif_session_receive(to, &message, sizeof(message), &fds, reply, error);
	cv_socket_fds_close(&fds);
	return rc;
}

static void two_of_ours_connect_and_packets_pass_both_ways(void **state)
{
	static const uint8_t packet[60];
	const struct cv_view view = {.data = (uint8_t *)(uintptr_t)packet, .len = 60};
	const unsigned before = test_count_fds();
	struct cv_memif_reply to_client, to_server;
	struct cv_memif_session server = make(false, &to_client), client = make(true, &to_server);
	struct cv_error error = {""};

	(void)state;
	assert_int_equal(to_server.message.type, 0);
	while (!client.up) {
		assert_int_equal(hand(&client, &to_client, &to_server, &error), 0);
		if (to_server.message.type != 0)
			assert_int_equal(hand(&server, &to_server, &to_client, &error), 0);
	}
	assert_true(server.up);
	assert_string_equal(server.peer, "test");
	for (unsigned way = 0; way < CV_MEMIF_WAYS; way++) {
		struct cv_memif_session *from = way == CV_MEMIF_TO_SERVER ? &client : &server;
		struct cv_memif_session *to = way == CV_MEMIF_TO_SERVER ? &server : &client;
		uint8_t bytes[64], *at = bytes;
		uint16_t len;

		assert_int_equal(to->rings[way].size, 256);
		for (unsigned i = 0; i < 600; i++) {
			assert_int_equal(cv_memif_enqueue(&from->rings[way], &view, 1), 1);
			assert_int_equal(
				cv_memif_dequeue(&to->rings[way], &at, sizeof(bytes), &len, 1), 1);
			assert_int_equal(len, 60);
		}
	}
	cv_memif_session_end(&server);
	cv_memif_session_end(&client);
	assert_int_equal(test_count_fds(), before);
}

// Files that a peer sends: what they are, and what they are taken for.
enum file { NONE, MEMORY, SHORT, EVENT, PIPE, DISK };

static int open_file(enum file file)
{
	int ends[2], fd;

	switch (file) {
	case MEMORY:
	case SHORT:
		fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(fd, file == MEMORY ? FILE_BYTES : 4096), 0);
		return fd;
	case EVENT:
		return eventfd(0, EFD_CLOEXEC);
	case PIPE:
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		close(ends[0]);
		return ends[1];
	case DISK:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	default:
		return -1;
	}
}

// One message of a client; the rings are 64 descriptors long.
struct step {
	enum cv_memif_type type;
	enum file file;
	// INIT: version, id, mode. ADD_REGION: index, size. ADD_RING: flags, index, region, offset,
	// log2 of the size, header.
	uint64_t values[6];
	const char *refused; // NULL: it is taken
};

#define INIT                                             \
	{                                                \
		CV_MEMIF_INIT, NONE, {0x200, 7, 0}, NULL \
	}
#define REGION                                                     \
	{                                                          \
		CV_MEMIF_ADD_REGION, MEMORY, {0, FILE_BYTES}, NULL \
	}
#define TO_SERVER                                                  \
	{                                                          \
		CV_MEMIF_ADD_RING, EVENT, {1, 0, 0, 0, 6, 0}, NULL \
	}
#define TO_CLIENT                                                     \
	{                                                             \
		CV_MEMIF_ADD_RING, EVENT, {0, 0, 0, 4096, 6, 0}, NULL \
	}
#define CONNECT(refused)                             \
	{                                            \
		CV_MEMIF_CONNECT, NONE, {0}, refused \
	}
#define BAD(type, file, refused, ...)              \
	{                                          \
		type, file, {__VA_ARGS__}, refused \
	}
#define RING(file, refused, ...)                                                 \
	{                                                                        \
		INIT, REGION, BAD(CV_MEMIF_ADD_RING, file, refused, __VA_ARGS__) \
	}

static const struct step talks[][7] = {
	{INIT, REGION, TO_SERVER, TO_CLIENT, CONNECT(NULL)},
	// In another order, as far as one is needed.
	{INIT, REGION, TO_CLIENT, TO_SERVER, CONNECT(NULL)},
	{BAD(CV_MEMIF_INIT, NONE, "memif 2.0", 0x100, 7, 0)},
	{BAD(CV_MEMIF_INIT, NONE, "id 8", 0x200, 8, 0)},
	{BAD(CV_MEMIF_INIT, NONE, "Ethernet", 0x200, 7, 1)},
	{INIT, BAD(CV_MEMIF_INIT, NONE, "second time", 0x200, 7, 0)},
	{BAD(CV_MEMIF_ADD_REGION, MEMORY, "not due", 0, FILE_BYTES)},
	{BAD(CV_MEMIF_ADD_RING, EVENT, "not due", 0)},
	{CONNECT("not due")},
	{BAD(CV_MEMIF_ACK, NONE, "not due", 0)},
	{INIT, BAD(CV_MEMIF_ACK, NONE, "server's message", 0)},
	{INIT, BAD(CV_MEMIF_HELLO, NONE, "server's message", 0)},
	{INIT, BAD(CV_MEMIF_CONNECTED, NONE, "server's message", 0)},
	{INIT, BAD(CV_MEMIF_DISCONNECT, NONE, "has left", 0)},
	{INIT, BAD(99, NONE, "unknown type 99", 0)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, NONE, "0 descriptors", 0, FILE_BYTES)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, MEMORY, "the next", 1, FILE_BYTES)},
	{INIT, REGION, BAD(CV_MEMIF_ADD_REGION, MEMORY, "the next", 0, FILE_BYTES)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, MEMORY, "0 bytes", 0, 0)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, MEMORY, "ends at byte 65537", 0, FILE_BYTES + 1)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, SHORT, "ends at byte 65536", 0, FILE_BYTES)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, MEMORY, "64 GiB", 0, UINT64_MAX)},
	{INIT, REGION, BAD(CV_MEMIF_ADD_REGION, MEMORY, "64 GiB", 1, UINT64_MAX - FILE_BYTES + 1)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, PIPE, "no memfd", 0, FILE_BYTES)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, EVENT, "no memfd", 0, FILE_BYTES)},
	{INIT, BAD(CV_MEMIF_ADD_REGION, DISK, "no memfd", 0, 4096)},
	{INIT, BAD(CV_MEMIF_ADD_RING, EVENT, "not added", 1, 0, 0, 0, 6, 0)},
	RING(NONE, "0 descriptors", 1, 0, 0, 0, 6, 0),
	RING(MEMORY, "eventfd", 1, 0, 0, 0, 6, 0),
	RING(PIPE, "eventfd", 1, 0, 0, 0, 6, 0),
	RING(EVENT, "one is possible", 1, 1, 0, 0, 6, 0),
	RING(EVENT, "not added", 1, 0, 1, 0, 6, 0),
	RING(EVENT, "not added", 1, 0, 65535, 0, 6, 0),
	RING(EVENT, "2^14", 1, 0, 0, 0, 15, 0),
	RING(EVENT, "2^14", 1, 0, 0, 0, 255, 0),
	RING(EVENT, "private headers", 1, 0, 0, 0, 6, 1),
	RING(EVENT, "multiple of 16", 1, 0, 0, 8, 6, 0),
	RING(EVENT, "multiple of 16", 1, 0, 0, FILE_BYTES - 1024 - 112, 6, 0),
	RING(EVENT, "multiple of 16", 1, 0, 0, UINT32_MAX - 15, 6, 0),
	RING(EVENT, "multiple of 16", 1, 0, 0, 0, 14, 0),
	{INIT, REGION, TO_SERVER,
		BAD(CV_MEMIF_ADD_RING, EVENT, "one is possible", 1, 0, 0, 0, 6, 0)},
	{INIT, REGION, TO_SERVER, CONNECT("each way")},
	{INIT, REGION, TO_CLIENT, CONNECT("each way")},
	{INIT, CONNECT("each way")},
	// A ring without a cookie.
	{INIT, REGION, TO_SERVER, {CV_MEMIF_ADD_RING, EVENT, {0, 0, 0, 8192, 6, 0}, NULL},
		CONNECT("cookie")},
	{INIT, REGION, TO_SERVER, TO_CLIENT, CONNECT(NULL), CONNECT("not due")},
	{INIT, REGION, TO_SERVER, TO_CLIENT, CONNECT(NULL),
		BAD(CV_MEMIF_ADD_REGION, MEMORY, "not due", 1, FILE_BYTES)},
};

static void fill(struct cv_memif_message *message, const struct step *step)
{
	const uint64_t *values = step->values;

	message->type = step->type;
	if (step->type == CV_MEMIF_INIT) {
		message->init.version = (uint16_t)values[0];
		message->init.id = (uint32_t)values[1];
		message->init.mode = (uint8_t)values[2];
	} else if (step->type == CV_MEMIF_ADD_REGION) {
		message->add_region.index = (uint16_t)values[0];
		message->add_region.size = values[1];
	} else if (step->type == CV_MEMIF_ADD_RING) {
		message->add_ring.flags = (uint16_t)values[0];
		message->add_ring.index = (uint16_t)values[1];
		message->add_ring.region = (uint16_t)values[2];
		message->add_ring.offset = (uint32_t)values[3];
		message->add_ring.log2_ring_size = (uint8_t)values[4];
		message->add_ring.private_header_bytes = (uint16_t)values[5];
	}
}

static void talk(const struct step *steps)
{
	struct cv_memif_reply reply;
	struct cv_memif_session server = make(false, &reply);
	const uint32_t cookie = CV_MEMIF_COOKIE;

	for (unsigned i = 0; steps[i].type != 0; i++) {
		const struct step *step = &steps[i];
		struct cv_memif_reply what = {.fd = open_file(step->file)};
		struct cv_error error = {""};
		int rc;

		if (step->file == MEMORY) {
			assert_int_equal(pwrite(what.fd, &cookie, 4, 0), 4);
			assert_int_equal(pwrite(what.fd, &cookie, 4, 4096), 4);
		}
		fill(&what.message, step);
		rc = hand(&server, &what, &reply, &error);
		if (what.fd >= 0)
			close(what.fd);
		if (step->refused == NULL) {
			assert_int_equal(rc, 0);
			assert_int_equal(reply.message.type,
				step->type == CV_MEMIF_CONNECT ? CV_MEMIF_CONNECTED : CV_MEMIF_ACK);
		} else {
			assert_true(rc < 0);
			if (strstr(error.text, step->refused) == NULL)
				fail_msg("\"%s\" instead of \"%s\"", error.text, step->refused);
			assert_true(rc == -ECONNRESET || reply.message.type == CV_MEMIF_DISCONNECT);
		}
	}
	cv_memif_session_end(&server);
	assert_false(server.up);
}

static void a_server_checks_every_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(talks) / sizeof(talks[0]); i++) {
		const unsigned before = test_count_fds();

		talk(talks[i]);
		assert_int_equal(test_count_fds(), before);
	}
}

static void a_server_takes_so_many_regions_and_no_more(void **state)
{
	struct cv_memif_reply reply, what = {.fd = -1};
	struct cv_memif_session server = make(false, &reply);
	struct cv_error error = {""};

	(void)state;
	fill(&what.message, &(struct step)INIT);
	assert_int_equal(hand(&server, &what, &reply, &error), 0);
	what.fd = open_file(MEMORY);
	for (unsigned i = 0; i <= CV_MEMIF_REGIONS_MAX; i++) {
		fill(&what.message,
			&(struct step){CV_MEMIF_ADD_REGION, MEMORY, {i, FILE_BYTES}, NULL});
		assert_int_equal(hand(&server, &what, &reply, &error),
			i < CV_MEMIF_REGIONS_MAX ? 0 : -EPROTO);
	}
	close(what.fd);
	cv_memif_session_end(&server);
}

// What a server says to a client, message by message; the client answers as it should before.
static const struct {
	enum cv_memif_type types[8];
	uint16_t min_version, max_version;
	uint8_t log2;
	int rc; // of the last
	uint16_t slots; // of the rings that the client has made then
} servers[] = {
	{{CV_MEMIF_HELLO}, 0x200, 0x200, 14, 0, 256},
	{{CV_MEMIF_HELLO}, 0x100, 0x300, 5, 0, 32},
	{{CV_MEMIF_HELLO}, 0x200, 0x200, 0, 0, 1},
	{{CV_MEMIF_HELLO}, 0x200, 0x200, 255, 0, 256},
	{{CV_MEMIF_HELLO}, 0x201, 0x300, 14, -EPROTO, 0},
	{{CV_MEMIF_HELLO}, 0x100, 0x1ff, 14, -EPROTO, 0},
	{{CV_MEMIF_ACK}, 0, 0, 0, -EPROTO, 0},
	{{CV_MEMIF_CONNECTED}, 0, 0, 0, -EPROTO, 0},
	{{CV_MEMIF_INIT}, 0, 0, 0, -EPROTO, 0},
	{{CV_MEMIF_HELLO, CV_MEMIF_HELLO}, 0x200, 0x200, 14, -EPROTO, 256},
	{{CV_MEMIF_HELLO, CV_MEMIF_CONNECTED}, 0x200, 0x200, 14, -EPROTO, 256},
	{{CV_MEMIF_HELLO, CV_MEMIF_ACK, CV_MEMIF_CONNECTED}, 0x200, 0x200, 14, -EPROTO, 256},
	{{CV_MEMIF_HELLO, CV_MEMIF_ACK, CV_MEMIF_ACK, CV_MEMIF_ACK, CV_MEMIF_ACK, CV_MEMIF_ACK},
		0x200, 0x200, 14, -EPROTO, 256},
	{{CV_MEMIF_HELLO, CV_MEMIF_ACK, CV_MEMIF_ACK, CV_MEMIF_ACK, CV_MEMIF_ACK,
		 CV_MEMIF_CONNECTED, CV_MEMIF_CONNECTED},
		0x200, 0x200, 14, -EPROTO, 256},
	{{CV_MEMIF_HELLO, CV_MEMIF_ACK, CV_MEMIF_DISCONNECT}, 0x200, 0x200, 14, -ECONNRESET, 256},
};

static void a_client_checks_every_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		const unsigned before = test_count_fds();
		struct cv_memif_reply reply;
		struct cv_memif_session client = make(true, &reply);

		for (unsigned k = 0; k < 8 && servers[i].types[k] != 0; k++) {
			const bool last = k == 7 || servers[i].types[k + 1] == 0;
			struct cv_memif_reply what = {
				.message.type = servers[i].types[k], .fd = -1};
			struct cv_error error = {""};

			if (what.message.type == CV_MEMIF_HELLO) {
				what.message.hello.min_version = servers[i].min_version;
				what.message.hello.max_version = servers[i].max_version;
				what.message.hello.max_log2_ring_size = servers[i].log2;
			}
			assert_int_equal(
				hand(&client, &what, &reply, &error), last ? servers[i].rc : 0);
		}
		assert_int_equal(client.rings[0].size, servers[i].slots);
		cv_memif_session_end(&client);
		assert_int_equal(test_count_fds(), before);
	}
}

static void the_memory_of_a_client_cannot_be_taken_back(void **state)
{
	struct cv_memif_reply reply, what = {.message.type = CV_MEMIF_HELLO, .fd = -1};
	struct cv_memif_session client = make(true, &reply);
	struct cv_error error = {""};

	(void)state;
	what.message.hello.min_version = what.message.hello.max_version = 0x200;
	what.message.hello.max_log2_ring_size = 14;
	assert_int_equal(hand(&client, &what, &reply, &error), 0);
	assert_int_equal(ftruncate(client.file, 0), -1);
	assert_int_equal(errno, EPERM);
	cv_memif_session_end(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_of_ours_connect_and_packets_pass_both_ways),
		cmocka_unit_test(a_server_checks_every_message),
		cmocka_unit_test(a_server_takes_so_many_regions_and_no_more),
		cmocka_unit_test(a_client_checks_every_message),
		cmocka_unit_test(the_memory_of_a_client_cannot_be_taken_back),
	};

	cv_call_begin(); // its descriptors are nobody's of these
	return cmocka_run_group_tests(tests, NULL, NULL);
}
