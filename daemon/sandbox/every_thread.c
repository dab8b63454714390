// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/sandbox/every_thread.h"

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL (SIGRTMIN + 5)
#define THREADS_MAX 4096
#define PATIENCE_S 10
#define LOOK_MS 10 // between two looks whether a thread is still there

static int (*to_call)(void);
static int result; // atomic
static sem_t called;

static void on_signal(int number)
{
	const int saved = errno;
	const int rc = to_call();
	int fine = 0;

	(void)number;
	if (rc != 0)
		__atomic_compare_exchange_n(
			&result, &fine, rc, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	sem_post(&called);
	errno = saved;
}

// 0 when it has called, or is gone: one that ends takes a signal that it has not seen along.
static int call_in(pid_t thread)
{
	struct timespec until;

	if (syscall(SYS_tgkill, getpid(), thread, SIGNAL) != 0)
		return errno == ESRCH ? 0 : -errno;
	for (unsigned looks = 0; looks < PATIENCE_S * 1000 / LOOK_MS; looks++) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		if (sem_clockwait(&called, CLOCK_MONOTONIC, &until) == 0)
			return 0;
		if (errno != ETIMEDOUT && errno != EINTR)
			return -errno;
		if (syscall(SYS_tgkill, getpid(), thread, 0) != 0) {
			sem_trywait(&called); // where it called and then ended
			return 0;
		}
	}
	return -ETIMEDOUT;
}

static bool is_among(const pid_t *threads, unsigned count, pid_t thread)
{
	for (unsigned i = 0; i < count; i++)
		if (threads[i] == thread)
			return true;
	return false;
}

// Adds the threads that are not among the first *count, and calls in each. 0 or a negative errno.
static int call_in_new(pid_t *threads, unsigned *count)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	int rc = folder != NULL ? 0 : -errno;

	while (rc == 0 && (entry = readdir(folder)) != NULL) {
		const pid_t thread = (pid_t)atoi(entry->d_name);

		if (thread == 0 || is_among(threads, *count, thread))
			continue;
		if (*count == THREADS_MAX) {
			rc = -E2BIG;
			break;
		}
		threads[(*count)++] = thread;
		rc = call_in(thread);
	}
	if (folder != NULL)
		closedir(folder);
	return rc;
}

int cv_every_thread(int (*call)(void))
{
	// Restarting: threads of other libraries wait in system calls.
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	static pid_t threads[THREADS_MAX];
	unsigned count = 1, before;
	int rc;

	threads[0] = (pid_t)syscall(SYS_gettid);
	to_call = call;
	result = 0;
	sem_init(&called, 0, 0);
	sigaction(SIGNAL, &action, NULL);
	do { // until no thread is new: one that had not called yet may have made others
		before = count;
		rc = call_in_new(threads, &count);
	} while (rc == 0 && count > before);
	signal(SIGNAL, SIG_IGN);
	if (rc == 0)
		rc = __atomic_load_n(&result, __ATOMIC_RELAXED);
	return rc != 0 ? rc : call();
}
