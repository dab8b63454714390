// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "socket/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dpdk/compat.h"

struct call {
	void (*function)(void *argument);
	void *argument;
	struct call *next;
	bool done;
};

static struct {
	pthread_mutex_t lock; // of calls, done and quit; not held while a handler runs
	pthread_cond_t done;
	struct call *calls;
	bool quit;
	unsigned users; // under life
	rte_thread_t thread;
	int epoll;
	struct cv_loop_watch wake; // an eventfd: there are calls, or it is time to quit
	struct cv_loop_timer *timers; // the thread's own
} loop = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; // of the thread: it begins and ends whole
static _Thread_local bool is_loop; // in the thread itself

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cv_loop_timer_stop(struct cv_loop_timer *timer)
{
	struct cv_loop_timer **at = &loop.timers;

	while (*at != NULL && *at != timer)
		at = &(*at)->next;
	if (*at != NULL)
		*at = timer->next;
	timer->set = false;
}

void cv_loop_timer_set(struct cv_loop_timer *timer, unsigned ms)
{
	struct cv_loop_timer **at = &loop.timers;

	cv_loop_timer_stop(timer);
	timer->at_ns = now_ns() + ms * UINT64_C(1000000);
	while (*at != NULL && (*at)->at_ns <= timer->at_ns)
		at = &(*at)->next;
	timer->next = *at;
	timer->set = true;
	*at = timer;
}

// Calls what is due; returns the milliseconds until the next, -1: there is none.
static int run_timers(void)
{
	while (loop.timers != NULL) {
		struct cv_loop_timer *timer = loop.timers;
		const uint64_t now = now_ns();

		if (timer->at_ns > now) {
			const uint64_t ms = (timer->at_ns - now) / 1000000 + 1;

			return ms < 1000 ? (int)ms : 1000;
		}
		cv_loop_timer_stop(timer);
		timer->due(timer);
	}
	return -1;
}

int cv_loop_watch(struct cv_loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop.epoll, EPOLL_CTL_ADD, watch->fd, &event) == 0 ? 0 : -errno;
}

void cv_loop_unwatch(struct cv_loop_watch *watch)
{
	epoll_ctl(loop.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
}

static void run_calls(struct cv_loop_watch *wake, uint32_t events)
{
	uint64_t count;

	(void)events;
	if (read(wake->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	pthread_mutex_lock(&loop.lock);
	while (loop.calls != NULL) {
		struct call *call = loop.calls;

		loop.calls = call->next;
		pthread_mutex_unlock(&loop.lock);
		call->function(call->argument);
		pthread_mutex_lock(&loop.lock);
		call->done = true;
		pthread_cond_broadcast(&loop.done);
	}
	pthread_mutex_unlock(&loop.lock);
}

static bool is_to_quit(void)
{
	bool quit;

	pthread_mutex_lock(&loop.lock);
	quit = loop.quit;
	pthread_mutex_unlock(&loop.lock);
	return quit;
}

static uint32_t serve(void *unused)
{
	(void)unused;
	is_loop = true;
	while (!is_to_quit()) {
		struct epoll_event event;

		// One at a time: whatever a handler frees, no event of it is left here. The kernel
		// puts a descriptor that is still ready behind the others.
		if (epoll_wait(loop.epoll, &event, 1, run_timers()) == 1) {
			struct cv_loop_watch *watch = event.data.ptr;

			watch->ready(watch, event.events);
		}
	}
	return 0;
}

static void ring(void)
{
	const uint64_t one = 1;

	// It cannot be full: the thread empties it.
	while (write(loop.wake.fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void cv_loop_run(void (*function)(void *argument), void *argument)
{
	struct call call = {.function = function, .argument = argument};
	struct call **at = &loop.calls;

	if (is_loop) {
		function(argument);
		return;
	}
	pthread_mutex_lock(&loop.lock);
	while (*at != NULL)
		at = &(*at)->next;
	*at = &call;
	ring();
	while (!call.done)
		pthread_cond_wait(&loop.done, &loop.lock);
	pthread_mutex_unlock(&loop.lock);
}

static int begin(void)
{
	int rc;

	loop.quit = false;
	loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	loop.wake = (struct cv_loop_watch){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), run_calls};
	if (loop.epoll >= 0 && loop.wake.fd >= 0)
		rc = cv_loop_watch(&loop.wake, EPOLLIN);
	else
		rc = -errno;
	if (rc == 0)
		rc = rte_thread_create_control(&loop.thread, "convoy-sockets", serve, NULL);
	if (rc == 0)
		return 0;
	if (loop.wake.fd >= 0)
		close(loop.wake.fd);
	if (loop.epoll >= 0)
		close(loop.epoll);
	return rc;
}

int cv_loop_hold(struct cv_error *error)
{
	int rc = 0;

	pthread_mutex_lock(&life);
	if (loop.users == 0)
		rc = begin();
	if (rc == 0)
		loop.users++;
	pthread_mutex_unlock(&life);
	if (rc != 0)
		cv_error_set(error, "no thread for sockets: %s", strerror(-rc));
	return rc;
}

static void end(void)
{
	pthread_mutex_lock(&loop.lock);
	loop.quit = true;
	ring();
	pthread_mutex_unlock(&loop.lock);
	rte_thread_join(loop.thread, NULL);
	close(loop.wake.fd);
	close(loop.epoll);
}

void cv_loop_release(void)
{
	pthread_mutex_lock(&life);
	if (--loop.users == 0)
		end();
	pthread_mutex_unlock(&life);
}
