// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A device at its socket, and front ends that do what they must not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "socket/test_fds.h"
#include "tests/support/test_eal.h"
#include "vhost/device.h"
#include "vring/call.h"

#define DEADLINE_MS 30000
#define BYTES 0x10000u
#define HEADER CV_VHOST_HEADER_BYTES
#define NO_FD CV_VHOST_VRING_NO_FD

static struct cv_vhost_device device;
static unsigned refusals, changes; // atomic
static char why[512]; // the last; read when the front end has seen its end
static unsigned fds_before;
static int memory;

static void refused(void *context, const char *text)
{
	snprintf(why, sizeof(why), "%s", text);
	__atomic_fetch_add(&refusals, 1, __ATOMIC_RELEASE);
}

static void changed(void *context, bool up)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
}

static int open_device(void **state)
{
	struct cv_error error = {""};

	cv_call_begin(); // keeps two descriptors
	fds_before = test_count_fds();
	device = (struct cv_vhost_device){.session = {.pairs = 1, .ring_size_max = 1024},
		.changed = changed,
		.refused = refused};
	snprintf(device.endpoint.path, sizeof(device.endpoint.path), "%s", test_path("device"));
	refusals = changes = 0;
	memory = memfd_create("guest", MFD_CLOEXEC);
	assert_int_equal(ftruncate(memory, BYTES), 0);
	assert_int_equal(cv_vhost_device_open(&device, &error), 0);
	return 0;
}

static int close_device(void **state)
{
	cv_vhost_device_close(&device);
	close(memory);
	assert_int_equal(test_count_fds(), fds_before);
	return 0;
}

static int connect_front(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int front = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", device.endpoint.path);
	assert_int_equal(connect(front, (struct sockaddr *)&address, sizeof(address)), 0);
	return front;
}

static struct cv_vhost_message u64(uint32_t request, uint64_t value)
{
	return (struct cv_vhost_message){request, CV_VHOST_VERSION, 8, {value}};
}

static struct cv_vhost_message state(uint32_t request, uint32_t index, uint32_t number)
{
	return (struct cv_vhost_message){.request = request,
		.flags = CV_VHOST_VERSION,
		.bytes = 8,
		.state = {index, number}};
}

static void send_message(
	int front, const struct cv_vhost_message message, const int *fds, unsigned count)
{
	test_send_with(front, &message, HEADER + message.bytes, fds, count);
}

static void share(int front, uint64_t bytes)
{
	send_message(front,
		(struct cv_vhost_message){.request = CV_VHOST_SET_MEM_TABLE,
			.flags = CV_VHOST_VERSION,
			.bytes = 40,
			.memory = {.count = 1, .regions = {{0, bytes, 0, 0}}}},
		&memory, 1);
}

// All before it was handled when this returns.
static uint64_t query(int front, uint32_t request)
{
	const struct cv_vhost_message question = {request, CV_VHOST_VERSION, 0, {0}};
	struct cv_vhost_message answer;

	test_send_with(front, &question, HEADER, NULL, 0);
	assert_int_equal(recv(front, &answer, HEADER + 8, MSG_WAITALL), HEADER + 8);
	assert_int_equal(answer.request, request);
	assert_int_equal(answer.flags, CV_VHOST_VERSION | CV_VHOST_REPLY);
	return answer.u64;
}

static void start_rings(int front)
{
	share(front, BYTES);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t at = i * 0x4000;

		send_message(front, state(CV_VHOST_SET_VRING_NUM, i, 256), NULL, 0);
		send_message(front,
			(struct cv_vhost_message){.request = CV_VHOST_SET_VRING_ADDR,
				.flags = CV_VHOST_VERSION,
				.bytes = 40,
				.address = {.index = i,
					.desc_user_addr = at,
					.avail_user_addr = at + 0x1000,
					.used_user_addr = at + 0x2000}},
			NULL, 0);
		send_message(front, u64(CV_VHOST_SET_VRING_KICK, i | NO_FD), NULL, 0);
	}
	query(front, CV_VHOST_GET_FEATURES);
}

static void assert_ended(int front)
{
	struct pollfd ended = {.fd = front, .events = POLLIN};
	char rest[256];
	ssize_t got;

	do {
		assert_int_equal(poll(&ended, 1, DEADLINE_MS), 1);
		got = recv(front, rest, sizeof(rest), 0);
	} while (got > 0);
	assert_true(got == 0 || errno == ECONNRESET);
	close(front);
}

static void assert_serves(void)
{
	const int front = connect_front();

	assert_true(query(front, CV_VHOST_GET_FEATURES) != 0);
	close(front);
}

static void a_front_end_comes_and_goes(void **unused)
{
	for (unsigned i = 0; i < 10; i++) {
		const int front = connect_front();

		start_rings(front);
		assert_true(cv_vhost_device_is_up(&device));
		assert_int_equal(__atomic_load_n(&changes, __ATOMIC_ACQUIRE), 2 * i + 1);
		assert_true(cv_revocable_enter(&device.queues[1].access));
		cv_revocable_leave(&device.queues[1].access);
		close(front);
		while (__atomic_load_n(&changes, __ATOMIC_ACQUIRE) != 2 * i + 2)
			sched_yield();
		assert_false(cv_vhost_device_is_up(&device));
		assert_false(cv_revocable_enter(&device.queues[1].access));
	}
	assert_int_equal(device.peers, 10);
	assert_int_equal(device.refused_messages, 0);
}

// Byte by byte, and the next message with the end of one.
static void a_message_may_come_in_pieces(void **unused)
{
	const struct cv_vhost_message owner = u64(CV_VHOST_SET_FEATURES, 0);
	const int front = connect_front();

	for (int i = 0; i < 20; i++) {
		for (size_t k = 0; k < HEADER + 8; k++)
			test_send_with(front, (const char *)&owner + k, 1, NULL, 0);
		send_message(front, u64(CV_VHOST_SET_FEATURES, 0), NULL, 0);
	}
	query(front, CV_VHOST_GET_FEATURES);
	assert_int_equal(device.refused_messages, 0);
	close(front);
}

static void what_must_not_be_said_ends_the_connection(void **unused)
{
	const int event = eventfd(0, 0);
	int many[16], ends[2];

	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < 16; i++)
		many[i] = event;
	const struct {
		const char *what;
		struct cv_vhost_message message;
		const int *fds;
		unsigned count;
	} rows[] = {
		{"post-copy's userfaultfd", {28, CV_VHOST_VERSION, 0, {0}}, NULL, 0},
		{"an unknown message", {41, CV_VHOST_VERSION, 0, {0}}, NULL, 0},
		{"a reply", {CV_VHOST_SET_OWNER, 5, 0, {0}}, NULL, 0},
		{"another version", {CV_VHOST_SET_OWNER, 2, 0, {0}}, NULL, 0},
		{"a length that is too long", {CV_VHOST_SET_OWNER, 1, 8, {0}}, NULL, 0},
		{"a feature not offered", u64(CV_VHOST_SET_FEATURES, 1), NULL, 0},
		{"an in-flight buffer", {31, CV_VHOST_VERSION, 16, {0}}, NULL, 0},
		{"descriptors with a message without", {CV_VHOST_SET_OWNER, 1, 0, {0}}, many, 8},
		{"more descriptors than any message has", {CV_VHOST_SET_OWNER, 1, 0, {0}}, many,
			16},
		{"a kick without its descriptor", u64(CV_VHOST_SET_VRING_KICK, 0), NULL, 0},
		{"a pipe to be called", u64(CV_VHOST_SET_VRING_CALL, 0), ends, 1},
		{"a ring that the port has not", state(CV_VHOST_SET_VRING_NUM, 2, 256), NULL, 0},
		{"a ring that is too large", state(CV_VHOST_SET_VRING_NUM, 0, 65535), NULL, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int running = 0; running < 2; running++) {
			const int front = connect_front();

			if (running)
				start_rings(front);
			send_message(front, rows[i].message, rows[i].fds, rows[i].count);
			assert_ended(front);
		}
		print_message("  %s: %s\n", rows[i].what, why);
		assert_int_equal(refusals, 2 * (i + 1));
		assert_serves();
	}
	close(event);
	close(ends[0]);
	close(ends[1]);
}

// The audit's item 4.
static void a_table_that_fails_and_the_next_message(void **unused)
{
	for (int i = 0; i < 20; i++) {
		const int front = connect_front();

		start_rings(front);
		share(front, BYTES + 4096);
		// It may be disconnected before this is sent.
		(void)!send(front, "", 1, MSG_NOSIGNAL);
		assert_ended(front);
	}
	assert_serves();
}

static void a_size_alone_afterwards_stops_the_ring(void **unused)
{
	const int front = connect_front();

	start_rings(front);
	send_message(front,
		(struct cv_vhost_message){.request = CV_VHOST_SET_VRING_ADDR,
			.flags = CV_VHOST_VERSION,
			.bytes = 40,
			.address = {.index = 1, .desc_user_addr = BYTES - 256 * 16}},
		NULL, 0);
	query(front, CV_VHOST_GET_FEATURES);
	assert_true(device.queues[1].access.ready);
	send_message(front, state(CV_VHOST_SET_VRING_NUM, 1, 1024), NULL, 0);
	query(front, CV_VHOST_GET_FEATURES);
	assert_false(device.queues[1].access.ready);
	close(front);
}

// The audit's item 8: none of them stays.
static void twenty_thousand_descriptors(void **unused)
{
	int many[8];

	for (int i = 0; i < 8; i++)
		many[i] = memory;
	for (int i = 0; i < 2500; i++) {
		const int front = connect_front();

		send_message(front,
			(struct cv_vhost_message){CV_VHOST_SET_OWNER, CV_VHOST_VERSION, 0, {0}},
			many, 8);
		assert_ended(front);
	}
	for (int i = 0; i < 2500; i++) {
		const int front = connect_front();

		// Half a message, with some.
		test_send_with(front, "\x05", 1, many, 8);
		close(front);
	}
	const int front = connect_front();
	const int event = eventfd(0, 0);
	for (int i = 0; i < 2500; i++) {
		share(front, BYTES);
		send_message(front, u64(CV_VHOST_SET_VRING_CALL, 0), &event, 1);
		send_message(front, u64(CV_VHOST_SET_VRING_KICK, 0), &event, 1);
		send_message(front, u64(CV_VHOST_SET_VRING_ERR, 0), &event, 1);
	}
	query(front, CV_VHOST_GET_FEATURES);
	// Ours and what is in use: the thread's two, the listener, the connection, the call.
	assert_true(test_count_fds() <= fds_before + 12);
	close(event);
	close(front);
}

static void half_a_message_blocks_nobody(void **unused)
{
	struct cv_vhost_device other = device;
	struct cv_error error = {""};
	const int front = connect_front();
	struct timespec begin, now;

	snprintf(other.endpoint.path, sizeof(other.endpoint.path), "%s", test_path("other"));
	assert_int_equal(cv_vhost_device_open(&other, &error), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	test_send_with(front, "\x05\0\0\0\x01\0", 6, NULL, 0);
	// Others are served, and close, meanwhile.
	cv_vhost_device_close(&other);
	assert_ended(front); // after a while
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_true(now.tv_sec - begin.tv_sec >= 4);
	assert_string_equal(why, "half a message, and no more for 5 s");
	assert_serves();
}

static void unread_replies_block_nobody(void **unused)
{
	const struct cv_vhost_message question = {CV_VHOST_GET_FEATURES, CV_VHOST_VERSION, 0, {0}};
	const int front = connect_front();

	for (int i = 0; i < 1000000; i++) {
		if (send(front, &question, HEADER, MSG_NOSIGNAL) < 0)
			break;
	}
	assert_ended(front);
	assert_int_equal(refusals, 1);
	assert_serves();
}

// The port closes at once, whatever its peer is in the middle of.
static void closes_in_the_middle(void **unused)
{
	const int front = connect_front();

	start_rings(front);
	test_send_with(front, "\x05", 1, &memory, 1);
	cv_vhost_device_close(&device);
	assert_ended(front);
	assert_int_not_equal(access(device.endpoint.path, F_OK), 0);
	struct cv_error error = {""};
	assert_int_equal(cv_vhost_device_open(&device, &error), 0);
	assert_serves();
}

static void lost_memory_stops_the_queues(void **unused)
{
	const int front = connect_front();

	start_rings(front);
	cv_vhost_device_lost(&device); // somebody else's
	assert_true(cv_vhost_device_is_up(&device));
	cv_vhost_device_lost(device.session.memory.guest.regions[0].host + 100);
	assert_false(cv_vhost_device_is_up(&device));
	assert_false(cv_revocable_enter(&(&device.queues[0])->access));
	start_rings(front); // not even then
	assert_false(cv_vhost_device_is_up(&device));
	close(front);
	const int next = connect_front();
	start_rings(next);
	assert_true(cv_vhost_device_is_up(&device));
	close(next);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_front_end_comes_and_goes),
		TEST(a_message_may_come_in_pieces),
		TEST(what_must_not_be_said_ends_the_connection),
		TEST(a_table_that_fails_and_the_next_message),
		TEST(a_size_alone_afterwards_stops_the_ring),
		TEST(twenty_thousand_descriptors),
		TEST(half_a_message_blocks_nobody),
		TEST(unread_replies_block_nobody),
		TEST(closes_in_the_middle),
		TEST(lost_memory_stops_the_queues),
	};
	int failed;

	test_eal_begin(argv[0]);
	if (argc == 2)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
