// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "memif/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HANDSHAKE_MS 5000 // a peer that is not connected by then makes room for another
#define RETRY_MS 50
#define DEVICES_MAX 64

#define OF(pointer, member) \
	((struct cv_memif *)(void *)((char *)(pointer)-offsetof(struct cv_memif, member)))

// Interfaces that are open, for whoever knows an address only. Atomic; NULL: a free place.
static struct cv_memif *devices[DEVICES_MAX];

static int add(struct cv_memif *device)
{
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		struct cv_memif *none = NULL;

		if (__atomic_compare_exchange_n(
			    &devices[i], &none, device, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return 0;
	}
	return -ENOSPC;
}

static void remove_device(struct cv_memif *device)
{
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		if (devices[i] == device)
			__atomic_store_n(&devices[i], NULL, __ATOMIC_RELEASE);
	}
}

static bool shares(const struct cv_memif *device, const void *address)
{
	for (unsigned i = 0; i < device->session.regions.count; i++) {
		const struct cv_memif_region *region = &device->session.regions.regions[i];

		if ((uintptr_t)address - (uintptr_t)region->data < region->size)
			return true;
	}
	return false;
}

void cv_memif_lost(const void *address)
{
	// No lock: it is the thread that touched the page, which may hold any of them.
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		struct cv_memif *device = __atomic_load_n(&devices[i], __ATOMIC_ACQUIRE);

		if (device == NULL || !shares(device, address))
			continue;
		__atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < CV_MEMIF_QUEUES; k++)
			__atomic_store_n(&device->queues[k].access.ready, false, __ATOMIC_RELAXED);
	}
}

// Workers may use the queue of a ring that was agreed on.
static void grant(struct cv_memif *device, unsigned which)
{
	// A server receives what goes to the server.
	const enum cv_memif_way way = (which == CV_MEMIF_RX) == device->session.client
					      ? CV_MEMIF_TO_CLIENT
					      : CV_MEMIF_TO_SERVER;
	struct cv_memif_queue *queue = &device->queues[which];
	const struct cv_memif_counters counters = queue->ring.counters;

	rte_spinlock_lock(&queue->access.lock);
	queue->ring = device->session.rings[way];
	queue->ring.counters = counters;
	queue->call = device->session.calls[way];
	__atomic_store_n(&queue->access.ready, true, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&queue->access.lock);
}

// No worker uses the queue when this returns.
static void revoke(struct cv_memif_queue *queue)
{
	rte_spinlock_lock(&queue->access.lock);
	__atomic_store_n(&queue->access.ready, false, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&queue->access.lock);
}

static int send_reply(struct cv_memif *device, const struct cv_memif_reply *reply)
{
	if (reply->message.type == 0)
		return 0;
	return cv_socket_send_with(
		device->watch.fd, &reply->message, sizeof(reply->message), reply->fd);
}

static void refuse(struct cv_memif *device, const char *why)
{
	// A client that is refused comes again and again.
	if (strncmp(device->last_refusal, why, sizeof(device->last_refusal) - 1) != 0)
		device->refused(device->context, why);
	snprintf(device->last_refusal, sizeof(device->last_refusal), "%s", why);
}

static void peer_is_up(struct cv_memif *device)
{
	cv_loop_timer_stop(&device->timeout);
	device->last_refusal[0] = '\0';
	for (unsigned i = 0; i < CV_MEMIF_QUEUES; i++)
		grant(device, i);
	__atomic_fetch_add(&device->peers, 1, __ATOMIC_RELAXED);
	device->changed(device->context, true);
}

static void message_came(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_memif *device = OF(watch, watch);
	const bool was_up = device->session.up;
	struct cv_socket_fds fds = {0};
	struct cv_error error = {""};
	struct cv_memif_reply reply;
	union {
		struct cv_memif_message message;
		uint8_t bytes[CV_MEMIF_MESSAGE_BYTES + 1]; // one too many would be seen
	} got = {0};
	int rc;

	(void)events;
	rc = cv_socket_receive(watch->fd, &got, sizeof(got), &fds);
	if (rc == -EAGAIN)
		return;
	if (rc > 0) {
		rc = cv_memif_session_receive(
			&device->session, &got.message, rc, &fds, &reply, &error);
		if (send_reply(device, &reply) != 0 && rc == 0)
			rc = -EPIPE;
	} else if (rc == 0) {
		rc = -ECONNRESET;
	}
	cv_socket_fds_close(&fds);
	if (rc != 0) {
		if (error.text[0] != '\0')
			refuse(device, error.text);
		cv_endpoint_drop(&device->endpoint);
	} else if (device->session.up && !was_up) {
		peer_is_up(device);
	}
}

static void too_late(struct cv_loop_timer *timer)
{
	struct cv_memif *device = OF(timer, timeout);

	refuse(device, "it did not finish connecting in 5 seconds");
	cv_endpoint_drop(&device->endpoint);
}

static int connected(struct cv_endpoint *endpoint, int fd)
{
	struct cv_memif *device = OF(endpoint, endpoint);
	struct cv_memif_reply reply;
	int rc;

	__atomic_store_n(&device->lost, false, __ATOMIC_RELAXED);
	device->watch = (struct cv_loop_watch){fd, message_came};
	cv_memif_session_begin(&device->session, &reply);
	rc = send_reply(device, &reply);
	if (rc == 0)
		rc = cv_loop_watch(&device->watch, EPOLLIN);
	if (rc == 0)
		cv_loop_timer_set(&device->timeout, HANDSHAKE_MS);
	return rc;
}

static void gone(struct cv_endpoint *endpoint)
{
	struct cv_memif *device = OF(endpoint, endpoint);

	cv_loop_unwatch(&device->watch);
	cv_loop_timer_stop(&device->timeout);
	for (unsigned i = 0; i < CV_MEMIF_QUEUES; i++)
		revoke(&device->queues[i]);
	if (device->session.up)
		device->changed(device->context, false);
	cv_memif_session_end(&device->session);
}

static int make_queues(struct cv_memif *device)
{
	const size_t bytes = CV_MEMIF_QUEUES * sizeof(*device->queues);

	device->queues = aligned_alloc(64, bytes);
	if (device->queues == NULL)
		return -ENOMEM;
	memset(device->queues, 0, bytes);
	for (unsigned i = 0; i < CV_MEMIF_QUEUES; i++)
		rte_spinlock_init(&device->queues[i].access.lock);
	return 0;
}

int cv_memif_open(struct cv_memif *device, struct cv_error *error)
{
	// Now, for when a peer comes the process may have no right to open files any more.
	int rc = cv_call_begin();

	if (rc != 0)
		cv_error_set(error, "peers cannot be notified: io_setup: %s; raise fs.aio-max-nr",
			strerror(-rc));
	if (rc != 0 || (rc = cv_loop_hold(error)) != 0)
		return rc;
	device->endpoint.type = SOCK_SEQPACKET;
	device->endpoint.retry_ms = RETRY_MS;
	device->endpoint.connected = connected;
	device->endpoint.gone = gone;
	device->session.client = device->endpoint.client;
	device->timeout.due = too_late;
	rc = make_queues(device);
	if (rc == 0)
		rc = add(device);
	if (rc != 0)
		cv_error_set(error, "out of memory, or more than %d memif ports", DEVICES_MAX);
	else
		rc = cv_endpoint_open(&device->endpoint, error);
	if (rc == 0)
		return 0;
	remove_device(device);
	free(device->queues);
	device->queues = NULL;
	cv_loop_release();
	return rc;
}

void cv_memif_close(struct cv_memif *device)
{
	cv_endpoint_close(&device->endpoint);
	remove_device(device);
	free(device->queues);
	device->queues = NULL;
	cv_loop_release();
}
