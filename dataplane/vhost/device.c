// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/device.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vhost/message.h"
#include "vring/call.h"

#define DEVICES_MAX 256
#define MESSAGE_MS 5000 // in which a message that has begun must be whole
#define RETRY_MS 1000 // a client between two attempts

#define OF(member_pointer, member)                                     \
	((struct cv_vhost_device *)((char *)(member_pointer)-offsetof( \
		struct cv_vhost_device, member)))

// Devices that are open, for cv_vhost_device_lost(). Changed under the lock, read without.
static struct cv_vhost_device *devices[DEVICES_MAX];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned ring_count(const struct cv_vhost_device *device)
{
	return 2u * device->session.pairs;
}

// No worker uses the queue when this returns. The ring knows how far it came.
static void revoke_queue(struct cv_vhost_device *device, unsigned index)
{
	struct cv_vhost_queue *queue = &device->queues[index];
	// False first, so that who comes now does not take the lock again and again.
	const bool was_ready = __atomic_exchange_n(&queue->access.ready, false, __ATOMIC_SEQ_CST);

	rte_spinlock_lock(&queue->access.lock);
	if (was_ready)
		device->session.rings[index].base = cv_vring_base(&queue->vring);
	rte_spinlock_unlock(&queue->access.lock);
}

static void revoke_all(struct cv_vhost_device *device)
{
	__atomic_store_n(&device->active_count, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < ring_count(device); i++)
		revoke_queue(device, i);
}

static void grant(struct cv_vhost_device *device, unsigned index)
{
	struct cv_vhost_queue *queue = &device->queues[index];
	struct cv_error error = {""};
	int rc;

	rte_spinlock_lock(&queue->access.lock);
	rc = cv_vhost_session_ring(&device->session, (uint16_t)index, &queue->vring, &error);
	if (rc == 0) {
		cv_vring_quiet(&queue->vring);
		// What waits at the guest for a word from us.
		cv_vring_notify(&queue->vring);
		// Pairs with cv_vhost_device_lost(), which may come at any time: see grant_all().
		__atomic_store_n(&queue->access.ready, true, __ATOMIC_SEQ_CST);
	}
	rte_spinlock_unlock(&queue->access.lock);
	if (rc == -EINVAL)
		device->refused(device->context, error.text);
}

// Says it when a first pair can be used both ways, or none any more.
static void notify_changed(struct cv_vhost_device *device)
{
	bool up = false;

	for (unsigned pair = 0; pair < device->session.pairs; pair++)
		up |= device->queues[2 * pair].access.ready &&
		      device->queues[2 * pair + 1].access.ready;
	if (up == device->up)
		return;
	device->up = up;
	if (up)
		__atomic_fetch_add(&device->peers, 1, __ATOMIC_RELAXED);
	device->changed(device->context, up);
}

static void grant_all(struct cv_vhost_device *device)
{
	uint16_t count = 0;

	for (unsigned i = 0; i < ring_count(device); i++)
		grant(device, i);
	// Lost while that went on: either it was seen to be ready there, or is seen to be lost here.
	if (__atomic_load_n(&device->lost, __ATOMIC_SEQ_CST))
		revoke_all(device);
	// Which pairs packets can be sent to.
	for (uint16_t pair = 0; pair < device->session.pairs; pair++) {
		if (device->queues[2 * pair].access.ready)
			__atomic_store_n(&device->active[count++], pair, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&device->active_count, count, __ATOMIC_RELEASE);
}

static bool shares(const struct cv_vhost_session *session, const void *address)
{
	const uintptr_t at = (uintptr_t)address;

	for (unsigned i = 0; i < CV_GUEST_REGIONS_MAX; i++) {
		const struct cv_shared_memory *mapped = &session->memory.mapped[i];

		if (at - (uintptr_t)mapped->reserved < mapped->reserved_bytes)
			return true;
	}
	return at - (uintptr_t)session->log.reserved < session->log.reserved_bytes;
}

void cv_vhost_device_lost(const void *address)
{
	// No lock: it is the thread that touched the page, which may hold any of them. It is inside
	// a queue of the device, or is the loop's: the memory is not being changed meanwhile.
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		struct cv_vhost_device *device = __atomic_load_n(&devices[i], __ATOMIC_ACQUIRE);

		if (device == NULL || !shares(&device->session, address))
			continue;
		// Pairs with grant_all().
		__atomic_store_n(&device->lost, true, __ATOMIC_SEQ_CST);
		__atomic_store_n(&device->active_count, 0, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < ring_count(device); k++)
			__atomic_store_n(&device->queues[k].access.ready, false, __ATOMIC_SEQ_CST);
	}
}

static void disconnect(struct cv_vhost_device *device, const char *why)
{
	__atomic_fetch_add(&device->refused_messages, 1, __ATOMIC_RELAXED);
	device->refused(device->context, why);
	cv_endpoint_drop(&device->endpoint);
}

static void too_late(struct cv_loop_timer *timer)
{
	disconnect(OF(timer, deadline), "half a message, and no more for 5 s");
}

// A whole, checked message. 0, or -errno with error set: the peer is to go.
static int handle(struct cv_vhost_device *device, struct cv_error *error)
{
	const struct cv_vhost_message *message = &device->stream.message;
	const bool is_query = cv_vhost_request_is_query(message->request);
	struct cv_vhost_message reply;
	int rc;

	if (!is_query)
		revoke_all(device);
	rc = cv_vhost_session_handle(
		&device->session, message, device->stream.fds.fds, &reply, error);
	if (rc < 0)
		return rc;
	// Before the reply: who has it may begin at once.
	if (!is_query) {
		grant_all(device);
		notify_changed(device);
	}
	if (rc == 0)
		return 0;
	rc = cv_socket_send(device->watch.fd, &reply, CV_VHOST_HEADER_BYTES + reply.bytes);
	if (rc != 0)
		cv_error_set(error, "%s: the peer does not read its reply",
			cv_vhost_request_name(message->request));
	return rc;
}

static void on_message(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_vhost_device *device = OF(watch, watch);
	struct cv_error error = {""};
	int rc = cv_vhost_stream_receive(
		&device->stream, watch->fd, device->session.protocol_features, &error);

	(void)events;
	if (rc == 1) {
		rc = handle(device, &error);
		cv_loop_timer_stop(&device->deadline);
		cv_vhost_stream_next(&device->stream);
	} else if (device->stream.have > 0 && !device->deadline.set) {
		cv_loop_timer_set(&device->deadline, MESSAGE_MS);
	}
	if (rc != 0 && error.text[0] != '\0')
		disconnect(device, error.text);
	else if (rc != 0)
		cv_endpoint_drop(&device->endpoint);
}

static int connected(struct cv_endpoint *endpoint, int fd)
{
	struct cv_vhost_device *device = OF(endpoint, endpoint);

	cv_vhost_session_begin(&device->session);
	__atomic_store_n(&device->lost, false, __ATOMIC_RELAXED);
	device->watch = (struct cv_loop_watch){fd, on_message};
	return cv_loop_watch(&device->watch, CV_VHOST_DEVICE_EVENTS);
}

void cv_vhost_device_revoke(struct cv_vhost_device *device)
{
	revoke_all(device);
}

void cv_vhost_device_grant(struct cv_vhost_device *device)
{
	grant_all(device);
}

void cv_vhost_device_serve(struct cv_vhost_device *device)
{
	notify_changed(device);
	device->watch = (struct cv_loop_watch){device->endpoint.peer, on_message};
	if (cv_loop_watch(&device->watch, CV_VHOST_DEVICE_EVENTS) != 0)
		disconnect(device, "no memory to listen to it");
}

static void gone(struct cv_endpoint *endpoint)
{
	struct cv_vhost_device *device = OF(endpoint, endpoint);

	cv_loop_unwatch(&device->watch);
	cv_loop_timer_stop(&device->deadline);
	cv_vhost_stream_next(&device->stream);
	revoke_all(device);
	cv_vhost_session_end(&device->session);
	notify_changed(device);
}

static int add(struct cv_vhost_device *device)
{
	int rc = -ENOSPC;

	pthread_mutex_lock(&devices_lock);
	for (size_t i = 0; i < DEVICES_MAX && rc != 0; i++) {
		if (devices[i] == NULL) {
			__atomic_store_n(&devices[i], device, __ATOMIC_RELEASE);
			rc = 0;
		}
	}
	pthread_mutex_unlock(&devices_lock);
	return rc;
}

static void remove_device(const struct cv_vhost_device *device)
{
	pthread_mutex_lock(&devices_lock);
	for (size_t i = 0; i < DEVICES_MAX; i++) {
		if (devices[i] == device)
			__atomic_store_n(&devices[i], NULL, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&devices_lock);
}

static int make_queues(struct cv_vhost_device *device)
{
	const size_t bytes = ring_count(device) * sizeof(*device->queues);

	device->queues = aligned_alloc(64, bytes);
	if (device->queues == NULL)
		return -ENOMEM;
	memset(device->queues, 0, bytes);
	for (unsigned i = 0; i < ring_count(device); i++)
		rte_spinlock_init(&device->queues[i].access.lock);
	return 0;
}

// The queues are there.
static int begin(struct cv_vhost_device *device, struct cv_error *error)
{
	int rc = cv_loop_hold(error);

	if (rc != 0)
		return rc;
	cv_vhost_session_begin(&device->session);
	device->taken = (struct cv_vhost_taken){.listener = -1, .peer = -1};
	device->deadline.due = too_late;
	device->endpoint.type = SOCK_STREAM;
	device->endpoint.retry_ms = RETRY_MS;
	device->endpoint.connected = connected;
	device->endpoint.gone = gone;
	rc = cv_endpoint_open(&device->endpoint, error);
	if (rc != 0)
		cv_loop_release();
	return rc;
}

int cv_vhost_device_open(struct cv_vhost_device *device, struct cv_error *error)
{
	int rc = cv_call_begin();

	if (rc != 0) {
		cv_error_set(error, "guests cannot be notified: io_setup: %s; raise fs.aio-max-nr",
			strerror(-rc));
		return rc;
	}
	rc = make_queues(device);
	if (rc == 0)
		rc = add(device);
	if (rc != 0)
		cv_error_set(error, "out of memory, or more than %d vhost-user ports", DEVICES_MAX);
	if (rc == 0)
		rc = begin(device, error);
	if (rc == 0)
		return 0;
	remove_device(device);
	free(device->queues);
	device->queues = NULL;
	return rc;
}

void cv_vhost_device_close(struct cv_vhost_device *device)
{
	cv_endpoint_close(&device->endpoint);
	cv_loop_release();
	if (device->taken.listener >= 0)
		close(device->taken.listener);
	if (device->taken.peer >= 0)
		close(device->taken.peer);
	cv_vhost_session_end(&device->session); // what was taken and never used
	remove_device(device);
	free(device->queues);
	device->queues = NULL;
}
