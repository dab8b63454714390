// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/stop_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "port/eal.h"

static bool requested;
static const char *waits_for;
static unsigned deadline_s;

bool cv_stop_signals_came(void)
{
	return __atomic_load_n(&requested, __ATOMIC_ACQUIRE);
}

void cv_stop_signals_waits_for(const char *what)
{
	// Pairs with the acquire load in end_at_once(): the text is whole.
	__atomic_store_n(&waits_for, what, __ATOMIC_RELEASE);
}

static void end_at_once(const char *why)
{
	const char *what = __atomic_load_n(&waits_for, __ATOMIC_ACQUIRE);

	fprintf(stderr, "convoyd: %s%s%s; ended at once, without counts\n", why,
		what != NULL ? ": stuck: " : "", what != NULL ? what : "");
	// Not exit(): other threads still use what that would take down.
	cv_eal_remove_files();
	_exit(EXIT_FAILURE);
}

// True if a signal comes until then (CLOCK_MONOTONIC).
static bool wait_until(const sigset_t *signals, const struct timespec *until)
{
	struct timespec now, left;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left.tv_sec = until->tv_sec - now.tv_sec;
		left.tv_nsec = until->tv_nsec - now.tv_nsec;
		if (left.tv_nsec < 0) {
			left.tv_sec--;
			left.tv_nsec += 1000000000L;
		}
		if (left.tv_sec < 0)
			return false;
		if (sigtimedwait(signals, NULL, &left) > 0)
			return true;
	}
}

static void *wait_for_signals(void *argument)
{
	const sigset_t *signals = argument;
	struct timespec until;
	char why[64];
	int number;

	while (sigwait(signals, &number) != 0)
		;
	// Pairs with the acquire load in cv_stop_signals_came().
	__atomic_store_n(&requested, true, __ATOMIC_RELEASE);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += deadline_s;
	if (wait_until(signals, &until))
		end_at_once("a second signal");
	snprintf(why, sizeof(why), "not ended %u s after a signal", deadline_s);
	end_at_once(why);
	return NULL;
}

static void do_nothing(int number)
{
}

int cv_stop_signals_start(unsigned deadline, struct cv_error *error)
{
	// A handler, for a shell's background jobs ignore SIGINT, and what is ignored is not waited for.
	const struct sigaction action = {.sa_handler = do_nothing};
	static sigset_t signals;
	pthread_t thread;
	int rc;

	deadline_s = deadline;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	rc = pthread_create(&thread, NULL, wait_for_signals, &signals);
	if (rc != 0) {
		cv_error_set(error, "no thread to wait for signals: %s", strerror(rc));
		return -rc;
	}
	pthread_setname_np(thread, "stop-signals");
	pthread_detach(thread);
	return 0;
}
