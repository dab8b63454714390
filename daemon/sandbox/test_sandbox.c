// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A child gives up its rights as a node does, and tries what it must not, and must, be able to do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/sandbox/every_thread.h"
#include "daemon/sandbox/landlock.h"
#include "daemon/sandbox/sandbox.h"
#include "packet/compiler.h"

static char folder[] = "/tmp/convoy-test-sandbox-XXXXXX";
static char elsewhere[] = "/tmp/convoy-test-outside-XXXXXX";

static const char *in(const char *where, const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", where, name);
	return path;
}

// In the child: its only other thread, and whether that has said its id.
static struct {
	sem_t known;
	pid_t id;
} other;

static void *sleep_for_ever(void *argument)
{
	other.id = (pid_t)syscall(SYS_gettid);
	sem_post(&other.known);
	for (;;)
		pause();
	return argument;
}

static uint16_t tcp_port; // that may be connected to; 0: none

// In the child: 0 when it is in the sandbox, with a thread of before.
static int enter(void)
{
	static struct cv_sandbox sandbox = {.descriptors = 256};
	struct cv_sandbox_state state;
	struct cv_error error = {""};
	pthread_t thread;

	if (tcp_port != 0)
		sandbox.tcp_ports[sandbox.tcp_ports_count++] = tcp_port;
	cv_sandbox_allow(&sandbox, folder, CV_SANDBOX_SOCKETS);
	cv_sandbox_allow(&sandbox, "/proc/self", CV_SANDBOX_READS);
	if (sem_init(&other.known, 0, 0) != 0 ||
		pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
		return -1;
	while (sem_wait(&other.known) != 0) // interrupted
		;
	if (cv_sandbox_enter(&sandbox, &state, &error) != 0)
		fprintf(stderr, "%s\n", error.text);
	return state.on ? 0 : -1;
}

// Runs a test in a child in the sandbox. Returns its status as waitpid() has it.
static int status_of(int (*test)(const void *), const void *argument)
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(enter() != 0 ? 100 : test(argument));
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void assert_passes(const char *name, int (*test)(const void *), const void *argument)
{
	const int status = status_of(test, argument);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("%s: status %#x", name, (unsigned)status);
}

struct call {
	const char *name;
	long number;
	long arguments[4];
};

#define CALL(name, ...)     \
#name, SYS_##name,  \
	{                   \
		__VA_ARGS__ \
	}

static int make(const void *argument)
{
	const struct call *call = argument;

	errno = 0;
	return syscall(call->number, call->arguments[0], call->arguments[1], call->arguments[2],
		       call->arguments[3]) < 0
		       ? errno
		       : 0;
}

static void what_an_intruder_does_ends_the_process(void **state)
{
	const struct call calls[] = {
		{CALL(ptrace, 0)},
		{CALL(execve, (long)"/bin/true")},
		{CALL(execveat, AT_FDCWD, (long)"/bin/true")},
		{CALL(userfaultfd, 0)},
		{CALL(process_vm_readv, 1)},
		{CALL(process_vm_writev, 1)},
		{CALL(init_module, 0)},
		{CALL(finit_module, 0)},
		{CALL(delete_module, 0)},
		{CALL(mount, 0)},
		{CALL(umount2, 0)},
		{CALL(pivot_root, 0)},
		{CALL(bpf, 0)},
		{CALL(io_uring_setup, 1)},
		{CALL(perf_event_open, 0)},
		{CALL(unshare, 0)},
		{CALL(setns, 0)},
		{CALL(setuid, 0)},
		{CALL(capset, 0)},
	};

	if (CV_SANITIZED)
		skip();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const int status = status_of(make, &calls[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("%s: status %#x", calls[i].name, (unsigned)status);
	}
}

static void what_nothing_needs_fails(void **state)
{
	const struct call calls[] = {
		{CALL(socket, AF_INET, SOCK_STREAM)}, {CALL(socket, AF_INET6, SOCK_DGRAM)},
		{CALL(socket, AF_NETLINK, SOCK_RAW)}, {CALL(socket, AF_PACKET, SOCK_RAW)},
		{CALL(symlink, (long)"a", (long)"b")}, {CALL(mkdir, (long)"a", 0700)},
		{CALL(rename, (long)"a", (long)"b")}, {CALL(chmod, (long)"/tmp", 0)},
		{CALL(sethostname, (long)"a", 1)}, {CALL(pidfd_open, 1)}, {CALL(kill, 1, 0)},
		{CALL(tgkill, 1, 1, 0)}, {CALL(prctl, 22 /* PR_SET_SECCOMP */)},
		{CALL(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS)},
		{CALL(mprotect, 0, 0, PROT_EXEC)},
		{CALL(prlimit64, 0, RLIMIT_NOFILE, (long)&(struct rlimit){256, 256})},
		{CALL(clone, SIGCHLD)}, // a process
	};

	if (CV_SANITIZED)
		skip();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const int status = status_of(make, &calls[i]);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != EPERM)
			fail_msg("%s: status %#x", calls[i].name, (unsigned)status);
	}
}

static int bind_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return errno;
	return listen(fd, 1) == 0 ? 0 : errno;
}

static void *nothing(void *argument)
{
	return argument;
}

static int do_what_a_node_does(const void *argument)
{
	const int memory = memfd_create("test", 0);
	pthread_t thread;
	void *end = &thread;

	if (memory < 0 || ftruncate(memory, 4096) != 0)
		return 1;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) == MAP_FAILED)
		return 2;
	if (eventfd(0, EFD_NONBLOCK) < 0)
		return 3;
	if (bind_at(in(folder, "socket")) != 0 || unlink(in(folder, "socket")) != 0)
		return 4;
	if (pthread_create(&thread, NULL, nothing, NULL) != 0)
		return 5;
	if (pthread_join(thread, &end) != 0 || end != NULL)
		return 6;
	if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
		return 7;
	if (pthread_cancel(thread) != 0 || pthread_join(thread, &end) != 0)
		return 8;
	return end == PTHREAD_CANCELED ? 0 : 9;
}

static void what_a_node_does_works(void **state)
{
	assert_passes("a node", do_what_a_node_does, NULL);
}

static int touch_other_files(const void *argument)
{
	if (bind_at(in(elsewhere, "socket")) != EACCES)
		return 1;
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
		return 2;
	if (open(in(folder, "file"), O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
		return 3;
	if (unlink(in(elsewhere, "file")) == 0 || errno != EACCES)
		return 4;
	return open("/proc/self/maps", O_RDONLY) >= 0 ? 0 : 5;
}

static void other_files_are_out_of_reach(void **state)
{
	if (CV_SANITIZED || cv_landlock_version() == 0)
		skip();
	assert_passes("files", touch_other_files, NULL);
}

// TCP sockets of before: one at a port that may be connected to, one elsewhere.
static struct {
	int fd;
	struct sockaddr_in at;
} allowed, forbidden;

static int connect_to(int fd, const struct sockaddr_in *to)
{
	return connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 ? 0 : errno;
}

static int connect_again(const void *argument)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 || errno != EPERM)
		return 1;
	if (connect_to(allowed.fd, &allowed.at) != 0)
		return 2;
	if (connect(allowed.fd, &nobody, sizeof(nobody)) != 0)
		return 3;
	if (connect_to(allowed.fd, &allowed.at) != 0)
		return 4;
	if (connect(allowed.fd, &nobody, sizeof(nobody)) != 0)
		return 5;
	return connect_to(allowed.fd, &forbidden.at) == EACCES ? 0 : 6;
}

static int listen_somewhere(struct sockaddr_in *at)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*at);

	*at = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)at, length), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &length), 0);
	return fd;
}

static void only_controllers_are_connected_to(void **state)
{
	const int listeners[] = {listen_somewhere(&allowed.at), listen_somewhere(&forbidden.at)};

	if (CV_SANITIZED || cv_landlock_version() < 4)
		skip();
	allowed.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	tcp_port = ntohs(allowed.at.sin_port);
	assert_passes("controllers", connect_again, NULL);
	tcp_port = 0;
	close(allowed.fd);
	close(listeners[0]);
	close(listeners[1]);
}

// Of every thread: has its status this line?
static int has_line(const void *argument)
{
	const pid_t threads[] = {getpid(), other.id};
	char path[64], text[4096];

	for (size_t i = 0; i < 2; i++) {
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/task/%d/status", threads[i]);
		fd = open(path, O_RDONLY);
		n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
		if (n < 0)
			return 50;
		text[n] = '\0';
		if (strstr(text, argument) == NULL)
			return 1 + (int)i;
	}
	return 0;
}

static void every_thread_is_in_it(void **state)
{
	static const char *const lines[] = {"NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
		"CapInh:\t0000000000000000\n"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_passes(lines[i], has_line, lines[i]);
	if (geteuid() == 0)
		assert_passes("CapBnd", has_line, "CapBnd:\t0000000000000000\n");
}

static int become_nobody(const void *argument)
{
	static struct cv_sandbox sandbox = {.descriptors = 256, .run_as = "nobody:nogroup"};
	struct cv_sandbox_state state;
	struct cv_error error = {""};

	cv_sandbox_allow(&sandbox, "/proc/self", CV_SANDBOX_READS);
	if (cv_sandbox_check(&sandbox, &error) != 0 ||
		cv_sandbox_enter(&sandbox, &state, &error) != 0)
		return 1;
	if (getuid() != 65534 || geteuid() != 65534 || getgid() != 65534 || getgroups(0, NULL) != 1)
		return 2;
	return open("/proc/self/maps", O_RDONLY) >= 0 ? 0 : 3;
}

static int succeed(void)
{
	return 0;
}

// A thread that ends before it sees its signal, as one does that is about to when it is sent.
static void *ends_deaf(void *argument)
{
	const struct timespec a_while = {.tv_nsec = 50000000};
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	sem_post(argument);
	nanosleep(&a_while, NULL);
	return NULL;
}

static void a_thread_that_ends_is_not_waited_for(void **state)
{
	pthread_t thread;
	sem_t begun;

	(void)state;
	sem_init(&begun, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, ends_deaf, &begun), 0);
	sem_wait(&begun);
	assert_int_equal(cv_every_thread(succeed), 0);
	pthread_join(thread, NULL);
}

static void root_becomes_another_user(void **state)
{
	const pid_t child = geteuid() == 0 ? fork() : -1;
	int status;

	if (child < 0)
		skip();
	if (child == 0)
		_exit(become_nobody(NULL));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void users_that_cannot_be_are_refused(void **state)
{
	static const struct {
		const char *run_as;
		uint64_t keeps;
		const char *error;
	} rows[] = {
		{"no such user", 0, "there is no such user"},
		{"nobody:no such group", 0, "there is no such group"},
		{"", 0, "there is no such user"},
		{"nobody", 1, "needs capabilities to its end"},
	};

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct cv_sandbox sandbox;
		struct cv_error error = {""};

		sandbox.run_as = rows[i].run_as;
		sandbox.keeps = rows[i].keeps;
		assert_int_equal(cv_sandbox_check(&sandbox, &error), -EINVAL);
		assert_non_null(strstr(error.text, rows[i].error));
	}
}

static int make_folders(void **state)
{
	const bool made = mkdtemp(folder) != NULL && mkdtemp(elsewhere) != NULL;
	const int fd = made ? open(in(elsewhere, "file"), O_WRONLY | O_CREAT, 0600) : -1;

	return fd >= 0 ? close(fd) : -1;
}

static int remove_folders(void **state)
{
	unlink(in(elsewhere, "file"));
	return rmdir(elsewhere) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_intruder_does_ends_the_process),
		cmocka_unit_test(what_nothing_needs_fails),
		cmocka_unit_test(what_a_node_does_works),
		cmocka_unit_test(other_files_are_out_of_reach),
		cmocka_unit_test(only_controllers_are_connected_to),
		cmocka_unit_test(every_thread_is_in_it),
		cmocka_unit_test(a_thread_that_ends_is_not_waited_for),
		cmocka_unit_test(root_becomes_another_user),
		cmocka_unit_test(users_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
