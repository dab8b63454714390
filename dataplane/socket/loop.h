// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The node's one thread for sockets: everything that peers say to ports (vhost-user, memif) is
// handled there, one event after the other. A handler never blocks and does a bounded piece of work
// (one message): what is left makes its descriptor ready again, and the others are served
// before.
//
// How to use it: cv_loop_hold() while a port is open; everything else happens in the thread, which
// cv_loop_run() enters from outside. State that only handlers touch needs no lock. A handler may
// unwatch and free anything, itself included: events are fetched one at a time.
#ifndef CV_SOCKET_LOOP_H
#define CV_SOCKET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/error.h"

// Part of a larger struct, which the handler knows.
struct cv_loop_watch {
	int fd;
	// events: EPOLLIN, EPOLLHUP ... Called as long as it is ready (level-triggered).
	void (*ready)(struct cv_loop_watch *watch, uint32_t events);
};

// Part of a larger struct. Zeroed: not set.
struct cv_loop_timer {
	void (*due)(struct cv_loop_timer *timer);
	uint64_t at_ns; // CLOCK_MONOTONIC
	struct cv_loop_timer *next;
	bool set;
};

// Starts the thread, if nobody has yet. To be called after rte_eal_init(): the thread keeps off the
// workers' cores, as DPDK's control threads do. 0, or -errno with error set.
int cv_loop_hold(struct cv_error *error);

// The last one ends the thread: nothing is watched any more by then. Not called by a handler.
void cv_loop_release(void);

// Calls `call` in the thread and returns when it has. In the thread itself: at once.
void cv_loop_run(void (*call)(void *argument), void *argument);

// The following in the thread only.

// 0 or -errno. watch must stay until cv_loop_unwatch(), which comes before its descriptor is closed.
int cv_loop_watch(struct cv_loop_watch *watch, uint32_t events);
void cv_loop_unwatch(struct cv_loop_watch *watch);

// Has timer->due called once, ms from now; set again, only the later call counts.
void cv_loop_timer_set(struct cv_loop_timer *timer, unsigned ms);
void cv_loop_timer_stop(struct cv_loop_timer *timer);

#endif
