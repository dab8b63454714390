// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket/receive.h"
#include "socket/test_fds.h"

static int ends[2]; // ours, the peer's

static int make_ends(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int close_ends(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void bytes_come_as_they_are_sent(void **state)
{
	struct cv_socket_fds fds = {0};
	char got[8] = "";

	assert_int_equal(cv_socket_receive(ends[0], got, sizeof(got), &fds), -EAGAIN);
	test_send_fds(ends[1], "abc", 3, 0);
	assert_int_equal(cv_socket_receive(ends[0], got, 2, &fds), 2);
	assert_int_equal(cv_socket_receive(ends[0], got + 2, 6, &fds), 1);
	assert_string_equal(got, "abc");
	shutdown(ends[1], SHUT_WR);
	assert_int_equal(cv_socket_receive(ends[0], got, 1, &fds), 0);
	assert_int_equal(fds.count, 0);
}

static void descriptors_are_counted_and_closed(void **state)
{
	static const struct {
		unsigned sent[3]; // with a byte each
		int last; // what receiving the last of these bytes returns
		unsigned kept;
	} rows[] = {
		{{0, 0, 0}, 1, 0},
		{{1, 0, 0}, 1, 1},
		{{8, 0, 0}, 1, 8},
		{{4, 4, 0}, 1, 8},
		{{9, 0, 0}, -EMFILE, 8},
		{{253, 0, 0}, -EMFILE, 8},
		{{4, 4, 1}, -EMFILE, 8},
	};
	const unsigned before = test_count_fds();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_socket_fds fds = {0};
		int rc = 1;
		char byte;

		for (unsigned j = 0; j < 3; j++)
			test_send_fds(ends[1], "x", 1, rows[i].sent[j]);
		for (unsigned j = 0; j < 3 && rc == 1; j++)
			rc = cv_socket_receive(ends[0], &byte, 1, &fds);
		assert_int_equal(rc, rows[i].last);
		assert_int_equal(fds.count, rows[i].kept);
		assert_int_equal(test_count_fds(), before + rows[i].kept);
		cv_socket_fds_close(&fds);
		assert_int_equal(test_count_fds(), before);
		while (cv_socket_receive(ends[0], &byte, 1, NULL) > 0)
			;
	}
}

static void where_none_may_come_none_stays(void **state)
{
	const unsigned before = test_count_fds();
	char byte;

	for (int i = 0; i < 1000; i++) {
		test_send_fds(ends[1], "x", 1, 20);
		assert_int_equal(cv_socket_receive(ends[0], &byte, 1, NULL), -EMFILE);
	}
	assert_int_equal(test_count_fds(), before);
}

static void a_peer_that_does_not_read_is_told_nothing(void **state)
{
	char text[4096] = "";
	int rc = 0;

	for (int i = 0; i < 10000 && rc == 0; i++)
		rc = cv_socket_send(ends[0], text, sizeof(text));
	assert_int_equal(rc, -EAGAIN);
	close(ends[1]);
	assert_int_equal(cv_socket_send(ends[0], text, 1), -EPIPE);
	ends[1] = dup(ends[0]);
}

static void a_descriptor_can_go_along(void **state)
{
	struct cv_socket_fds fds = {0};
	char byte;

	(void)state;
	assert_int_equal(cv_socket_send_with(ends[1], "x", 1, ends[1]), 0);
	assert_int_equal(cv_socket_send_with(ends[1], "y", 1, -1), 0);
	assert_int_equal(cv_socket_receive(ends[0], &byte, 1, &fds), 1);
	assert_int_equal(fds.count, 1);
	assert_int_equal(write(fds.fds[0], "z", 1), 1);
	cv_socket_fds_close(&fds);
	assert_int_equal(cv_socket_receive(ends[0], &byte, 1, &fds), 1);
	assert_int_equal(fds.count, 0);
	assert_int_equal(byte, 'y');
	assert_int_equal(cv_socket_receive(ends[0], &byte, 1, &fds), 1);
	assert_int_equal(byte, 'z');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_come_as_they_are_sent, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			descriptors_are_counted_and_closed, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			where_none_may_come_none_stays, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			a_peer_that_does_not_read_is_told_nothing, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(a_descriptor_can_go_along, make_ends, close_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
