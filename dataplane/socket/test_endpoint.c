// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "socket/endpoint.h"
#include "socket/receive.h"
#include "socket/test_fds.h"
#include "tests/support/test_eal.h"

#define DEADLINE_S 30

// Echoes a byte for each that comes.
struct echo {
	struct cv_endpoint endpoint;
	struct cv_loop_watch watch;
	sem_t came, went;
};

static void answer(struct cv_loop_watch *watch, uint32_t events)
{
	struct echo *echo = (struct echo *)((char *)watch - offsetof(struct echo, watch));
	uint8_t byte;

	(void)events;
	if (cv_socket_receive(watch->fd, &byte, 1, NULL) != 1 ||
		cv_socket_send(watch->fd, &byte, 1) != 0)
		cv_endpoint_drop(&echo->endpoint);
}

static int connected(struct cv_endpoint *endpoint, int fd)
{
	struct echo *echo = (struct echo *)endpoint;

	echo->watch = (struct cv_loop_watch){fd, answer};
	sem_post(&echo->came);
	return cv_loop_watch(&echo->watch, EPOLLIN);
}

static void gone(struct cv_endpoint *endpoint)
{
	struct echo *echo = (struct echo *)endpoint;

	cv_loop_unwatch(&echo->watch);
	sem_post(&echo->went);
}

static void open_echo(struct echo *echo, const char *path, bool client)
{
	struct cv_error error = {""};

	*echo = (struct echo){.endpoint = {.client = client,
				      .type = SOCK_STREAM,
				      .retry_ms = 20,
				      .connected = connected,
				      .gone = gone}};
	snprintf(echo->endpoint.path, sizeof(echo->endpoint.path), "%s", path);
	sem_init(&echo->came, 0, 0);
	sem_init(&echo->went, 0, 0);
	assert_int_equal(cv_loop_hold(&error), 0);
	assert_int_equal(cv_endpoint_open(&echo->endpoint, &error), 0);
}

static void close_echo(struct echo *echo)
{
	cv_endpoint_close(&echo->endpoint);
	cv_loop_release();
}

static void wait_for(sem_t *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	assert_int_equal(sem_timedwait(what, &until), 0);
}

static int new_socket(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address;
	const int fd = new_socket(path, &address);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int listen_at(const char *path)
{
	struct sockaddr_un address;
	const int fd = new_socket(path, &address);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void assert_echoes(int fd)
{
	uint8_t byte = 7;

	assert_int_equal(write(fd, &byte, 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 7);
}

static void assert_ended(int fd)
{
	uint8_t byte;

	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
}

static void one_peer_at_a_time(void **state)
{
	const char *path = test_path("echo.sock");
	const unsigned before = test_count_fds();
	struct echo echo;
	int first;

	open_echo(&echo, path, false);
	first = connect_to(path);
	assert_echoes(first);
	for (int i = 0; i < 100; i++)
		assert_ended(connect_to(path));
	assert_echoes(first);
	// One that died with things unread is no hindrance to the next.
	for (int i = 0; i < 100; i++) {
		assert_int_equal(write(first, "0123456789", 10), 10);
		close(first);
		first = connect_to(path);
		assert_echoes(first);
	}
	close_echo(&echo);
	assert_ended(first);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(test_count_fds(), before);
}

static void a_client_connects_again(void **state)
{
	const char *path = test_path("server.sock");
	struct echo echo;
	int listener, peer;

	open_echo(&echo, path, true); // nobody is there yet
	listener = listen_at(path);
	for (int i = 0; i < 2; i++) {
		peer = accept(listener, NULL, NULL);
		assert_true(peer >= 0);
		assert_echoes(peer);
		close(peer);
		wait_for(&echo.went);
	}
	close_echo(&echo);
	close(listener);
	unlink(path);
}

// Nobody accepts, and the backlog is full: others are served, and the port closes at once.
static void a_server_that_does_not_accept_stops_nobody(void **state)
{
	const char *path = test_path("full.sock");
	const int listener = listen_at(path);
	int waiting[8];
	struct echo stuck, other;
	int peer;

	for (int i = 0; i < 8; i++) {
		struct sockaddr_un address;

		waiting[i] = new_socket(path, &address);
		fcntl(waiting[i], F_SETFL, O_NONBLOCK);
		(void)!connect(waiting[i], (struct sockaddr *)&address, sizeof(address));
	}
	open_echo(&stuck, path, true);
	open_echo(&other, test_path("echo.sock"), false);
	peer = connect_to(other.endpoint.path);
	assert_echoes(peer);
	close(peer);
	close_echo(&stuck);
	close_echo(&other);
	for (int i = 0; i < 8; i++)
		close(waiting[i]);
	close(listener);
	unlink(path);
}

// A process that has no descriptor left does not spin, and takes the peer when it has one again.
static void without_descriptors_a_peer_waits(void **state)
{
	const char *path = test_path("echo.sock");
	struct sockaddr_un address;
	struct rlimit limit, none;
	struct echo echo;
	int peer;

	open_echo(&echo, path, false);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	peer = new_socket(path, &address);
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_echoes(peer);
	close(peer);
	close_echo(&echo);
}

static void count_calls(void *argument)
{
	++*(unsigned *)argument;
}

static void the_thread_comes_and_goes(void **state)
{
	const unsigned before = test_count_fds();
	unsigned calls = 0;

	for (unsigned i = 1; i <= 20; i++) {
		assert_int_equal(cv_loop_hold(NULL), 0);
		assert_int_equal(cv_loop_hold(NULL), 0);
		cv_loop_run(count_calls, &calls);
		assert_int_equal(calls, 2 * i - 1);
		cv_loop_release();
		cv_loop_run(count_calls, &calls);
		assert_int_equal(calls, 2 * i);
		cv_loop_release();
	}
	assert_int_equal(test_count_fds(), before);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_peer_at_a_time),
		cmocka_unit_test(a_client_connects_again),
		cmocka_unit_test(a_server_that_does_not_accept_stops_nobody),
		cmocka_unit_test(without_descriptors_a_peer_waits),
		cmocka_unit_test(the_thread_comes_and_goes),
	};
	int failed;

	(void)argc;
	test_eal_begin(argv[0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return failed;
}
