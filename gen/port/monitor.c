// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

static int watched = -1;

static void *watch(void *unused)
{
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(watched, &event, 1, -1) != 1)
			continue;
		struct gen_port *port = event.data.ptr;
		snprintf(port->gone_reason, sizeof(port->gone_reason),
			"the peer closed the connection");
		// Pairs with the acquire load in the trial's loop.
		atomic_store_explicit(&port->gone, true, memory_order_release);
	}
	return NULL;
}

int gen_monitor_start(void)
{
	sigset_t all, before;
	pthread_t thread;

	watched = epoll_create1(EPOLL_CLOEXEC);
	if (watched < 0)
		return -errno;
	// Signals are the main thread's.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0)
		pthread_detach(thread);
	return -error;
}

int gen_monitor_watch(struct gen_port *port, int socket)
{
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = port};

	return epoll_ctl(watched, EPOLL_CTL_ADD, socket, &event) < 0 ? -errno : 0;
}
