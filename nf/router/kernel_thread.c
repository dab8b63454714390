// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Everything here runs in the node's thread for sockets, a bounded piece at a time.
//
// The kernel tells of each change, and of all routes when it is asked (a dump). A dump is asked for at
// the beginning, when changes were lost (ENOBUFS), when there is room again for routes that were left
// out, and when one is not plain: the kernel is silent about IPv4 routes that go with an interface,
// for example. Changes wait meanwhile: told after the dump, the last one is right again.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/rtnetlink.h>

#include "nf/router/kernel.h"

#define READS 16u // of a socket, or an interface, at a time
#define DRAIN_READS 10000 // more than its buffer holds
#define DUMP_AFTER_MS 20u // so that one dump answers several reasons
#define TICK_MS 1u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

#define KERNEL_OF(watch, member) \
	((struct cv_kernel *)((char *)(watch)-offsetof(struct cv_kernel, member)))

static void say_refused(struct cv_kernel *kernel)
{
	if (kernel->mirror->refused == 0 || kernel->refused_said != 0)
		return;
	kernel->refused_said = kernel->mirror->refused;
	fprintf(stderr,
		"%s: routes of the kernel do not fit and are left out; raise route_entries, %u\n",
		kernel->name, kernel->mirror->entries);
}

static void has_changed(struct cv_kernel *kernel)
{
	if (!kernel->change_timer.set)
		cv_loop_timer_set(&kernel->change_timer, 0);
}

// Has all routes read again, soon. Dumps take at most a third of the time.
static void want_dump(struct cv_kernel *kernel)
{
	const uint64_t now = now_ns();
	const uint64_t wait_ms =
		kernel->next_dump_ns > now ? (kernel->next_dump_ns - now) / 1000000 : 0;

	if (kernel->dumps || kernel->dump_timer.set) {
		kernel->wants_dump |= kernel->dumps;
		return;
	}
	cv_loop_timer_set(&kernel->dump_timer, (unsigned)RTE_MAX(wait_ms, DUMP_AFTER_MS));
}

static void change_tables(struct cv_loop_timer *timer)
{
	struct cv_kernel *kernel = KERNEL_OF(timer, change_timer);

	if (cv_route_mirror_step(kernel->mirror))
		cv_loop_timer_set(timer, TICK_MS);
	if (cv_route_mirror_has_room(kernel->mirror))
		want_dump(kernel);
	say_refused(kernel);
}

// Empties the socket of changes: the dump that follows knows better. A socket that has overflowed says
// so once, and then loses all that comes until it was empty. False: there was no end of them.
static bool drain(struct cv_kernel *kernel)
{
	for (unsigned reads = 0; reads < DRAIN_READS; reads++)
		if (recv(kernel->changes.fd, kernel->buffer, CV_KERNEL_READ_BYTES, MSG_DONTWAIT) <
				0 &&
			errno != ENOBUFS && errno != EINTR)
			return true;
	return false;
}

static void begin_dump(struct cv_loop_timer *timer)
{
	struct cv_kernel *kernel = KERNEL_OF(timer, dump_timer);
	const bool drained = drain(kernel);
	struct cv_rtnetlink_request request;

	cv_rtnetlink_dump_routes(&request, ++kernel->sequence);
	if (send(kernel->dump.fd, &request, request.header.nlmsg_len, 0) < 0) {
		cv_loop_timer_set(timer, 1000);
		return;
	}
	kernel->dumps = true;
	kernel->wants_dump = !drained; // somebody floods the socket: go on, and come back
	kernel->interrupted = false;
	kernel->dump_began_ns = now_ns();
	cv_loop_unwatch(&kernel->changes);
	cv_route_mirror_begin(kernel->mirror);
}

static void end_dump(struct cv_kernel *kernel, bool whole)
{
	const uint64_t now = now_ns();

	kernel->dumps = false;
	kernel->next_dump_ns = now + 2 * (now - kernel->dump_began_ns);
	if (whole)
		cv_route_mirror_end(kernel->mirror);
	else
		cv_route_mirror_abandon(kernel->mirror);
	count(&kernel->dumps_done, 1);
	cv_loop_watch(&kernel->changes, EPOLLIN);
	has_changed(kernel);
	if (!whole || kernel->interrupted || kernel->wants_dump)
		want_dump(kernel);
}

// Reads messages. Returns their bytes; 0: there are none now; -1: some are lost.
static ssize_t receive(struct cv_kernel *kernel, int fd)
{
	struct sockaddr_nl from = {.nl_pid = 0};
	socklen_t from_len = sizeof(from);
	const ssize_t got = recvfrom(fd, kernel->buffer, CV_KERNEL_READ_BYTES, MSG_TRUNC,
		(struct sockaddr *)&from, &from_len);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	// Another process's, which may say anything: as if nothing was there; the rest comes next time.
	if (from.nl_pid != 0)
		return 0;
	return got <= (ssize_t)CV_KERNEL_READ_BYTES ? got : -1;
}

// The message behind one in a buffer of which *left bytes are left with it: none behind the end.
static const struct nlmsghdr *behind(const struct nlmsghdr *message, unsigned *left)
{
	const unsigned bytes = RTE_MIN(*left, NLMSG_ALIGN(message->nlmsg_len));

	*left -= bytes;
	return (const void *)((const char *)message + bytes);
}

static void hear_change(struct cv_kernel *kernel, const struct nlmsghdr *message)
{
	struct cv_kernel_route route;
	bool certain = true;

	count(&kernel->notices, 1);
	if (message->nlmsg_type == RTM_NEWROUTE || message->nlmsg_type == RTM_DELROUTE) {
		if (!cv_rtnetlink_route(message, &route))
			return;
		certain = message->nlmsg_type == RTM_NEWROUTE
				  ? cv_route_mirror_put(kernel->mirror, &route)
				  : cv_route_mirror_remove(kernel->mirror, &route);
	} else {
		certain = false; // an interface, or an address: routes may have gone with it
	}
	if (!certain)
		want_dump(kernel);
}

static void changes_ready(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_kernel *kernel = KERNEL_OF(watch, changes);
	ssize_t got = 1;

	(void)events;
	for (unsigned reads = 0; reads < READS && got > 0; reads++) {
		const struct nlmsghdr *message = (const void *)kernel->buffer;
		unsigned left;

		got = receive(kernel, watch->fd);
		if (got < 0) {
			count(&kernel->overruns, 1);
			want_dump(kernel);
			break;
		}
		for (left = (unsigned)got; NLMSG_OK(message, left);
			message = behind(message, &left))
			hear_change(kernel, message);
	}
	has_changed(kernel);
}

// One message of the dump. True: it was the last.
static bool hear_dump(struct cv_kernel *kernel, const struct nlmsghdr *message)
{
	struct cv_kernel_route route;

	if (message->nlmsg_seq != kernel->sequence)
		return false; // of one that was given up
	kernel->interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
	if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
		end_dump(kernel, message->nlmsg_type == NLMSG_DONE);
		return true;
	}
	if (message->nlmsg_type == RTM_NEWROUTE && cv_rtnetlink_route(message, &route))
		cv_route_mirror_put(kernel->mirror, &route);
	return false;
}

static void dump_ready(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_kernel *kernel = KERNEL_OF(watch, dump);
	ssize_t got = 1;

	(void)events;
	for (unsigned reads = 0; reads < READS && got > 0; reads++) {
		const struct nlmsghdr *message = (const void *)kernel->buffer;
		unsigned left;

		got = receive(kernel, watch->fd);
		if (got < 0 && kernel->dumps) {
			count(&kernel->overruns, 1);
			end_dump(kernel, false);
		}
		for (left = got > 0 ? (unsigned)got : 0; NLMSG_OK(message, left);
			message = behind(message, &left))
			if (kernel->dumps && hear_dump(kernel, message))
				return;
	}
	has_changed(kernel);
}

// Whether workers can send such a frame: IP, whole.
static bool is_ip(const uint8_t *frame, size_t len)
{
	return len >= CV_ETHER_LEN + 20 &&
	       (cv_load_be16(frame + 12) == CV_PROTO_IPV4 ||
		       (cv_load_be16(frame + 12) == CV_PROTO_IPV6 && len >= CV_ETHER_LEN + 40));
}

static void tap_ready(struct cv_loop_watch *watch, uint32_t events)
{
	const struct cv_kernel_tap *tap = (const struct cv_kernel_tap *)watch;
	struct cv_kernel *kernel = tap->kernel;

	(void)events;
	for (unsigned reads = 0; reads < READS; reads++) {
		struct cv_frame *frame = cv_frame_ring_next(&kernel->down);
		uint8_t *bytes = frame != NULL ? frame->bytes : kernel->buffer;
		const ssize_t got = read(watch->fd, bytes, kernel->down.frame_bytes);

		if (got < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				fprintf(stderr, "%s: the interface of a port is gone from %s\n",
					kernel->name, kernel->netns);
				cv_loop_unwatch(watch);
			}
			return;
		}
		if (frame == NULL || !is_ip(bytes, (size_t)got)) {
			count(&kernel->not_sent, frame == NULL);
			continue;
		}
		frame->len = (uint16_t)got;
		frame->port = tap->port;
		cv_frame_ring_push(&kernel->down);
	}
}

// Gives the kernel what a worker has handed over. Returns how many frames.
static uint32_t deliver(struct cv_kernel *kernel, struct cv_frame_ring *ring)
{
	const uint32_t end = cv_frame_ring_end(ring), n = end - ring->tail;

	for (uint32_t at = ring->tail; at != end; at++) {
		struct cv_frame *frame = cv_frame_ring_at(ring, at);

		// One that does not take it, being down, loses it as a wire does.
		if (write(kernel->tap[frame->port].watch.fd, frame->bytes, frame->len) < 0)
			count(&kernel->not_sent, 1);
		frame->taken = true;
	}
	cv_frame_ring_pop(ring, end);
	return n;
}

static void woken(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_kernel *kernel = KERNEL_OF(watch, wake);
	uint64_t times = 1;
	uint32_t n = 0;

	(void)events;
	for (unsigned i = 0; i < kernel->network->workers; i++)
		n += deliver(kernel, &kernel->up[i]);
	if (n > 0)
		return; // the eventfd is still set: again, after the others
	if (read(watch->fd, &times, sizeof(times)) < 0)
		return;
	// Pairs with the exchange in kernel_worker.c: either it sees that we sleep, or we see what it
	// has handed over.
	__atomic_store_n(&kernel->asleep, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < kernel->network->workers; i++)
		n += deliver(kernel, &kernel->up[i]);
}

void cv_kernel_thread_begin(void *argument)
{
	struct cv_kernel *kernel = argument;

	kernel->changes.ready = changes_ready;
	kernel->dump.ready = dump_ready;
	kernel->wake.ready = woken;
	kernel->change_timer.due = change_tables;
	kernel->dump_timer.due = begin_dump;
	kernel->asleep = 1;
	for (unsigned i = 0; i < CV_PORTS_MAX; i++) {
		kernel->tap[i].watch.ready = tap_ready;
		if (kernel->tap[i].watch.fd >= 0)
			cv_loop_watch(&kernel->tap[i].watch, EPOLLIN);
	}
	cv_loop_watch(&kernel->changes, EPOLLIN);
	cv_loop_watch(&kernel->dump, EPOLLIN);
	cv_loop_watch(&kernel->wake, EPOLLIN);
	begin_dump(&kernel->dump_timer);
}

void cv_kernel_thread_end(void *argument)
{
	struct cv_kernel *kernel = argument;

	cv_loop_timer_stop(&kernel->change_timer);
	cv_loop_timer_stop(&kernel->dump_timer);
	if (!kernel->dumps)
		cv_loop_unwatch(&kernel->changes);
	cv_loop_unwatch(&kernel->dump);
	cv_loop_unwatch(&kernel->wake);
	for (unsigned i = 0; i < CV_PORTS_MAX; i++)
		if (kernel->tap[i].watch.fd >= 0)
			cv_loop_unwatch(&kernel->tap[i].watch);
}
