// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost_device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_vhost.h>

#include "vhost_thread.h"

#define BIT(n) (1ull << (n))

// vhost-user messages that are answered here.
#define GET_QUEUE_NUM 17

// As much of a vhost-user message as is looked at; rte_vhost hands out more.
struct message {
	uint32_t request;
	uint32_t flags;
	uint32_t bytes;
	uint64_t number;
} __attribute__((packed));

// Devices that are open, for callbacks that know a path or a number only.
static struct cv_vhost *devices[64];
static struct cv_vhost *by_vid[RTE_MAX_VHOST_DEVICE];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static struct cv_vhost *device_of(int vid)
{
	struct cv_vhost *device;

	pthread_mutex_lock(&devices_lock);
	device = vid >= 0 && vid < RTE_MAX_VHOST_DEVICE ? by_vid[vid] : NULL;
	pthread_mutex_unlock(&devices_lock);
	return device;
}

// Which pairs packets can be sent to.
static void list_active(struct cv_vhost *device)
{
	uint16_t count = 0;

	for (uint16_t pair = 0; pair < device->pairs; pair++) {
		if (device->queues[2 * pair].ready)
			__atomic_store_n(&device->active[count++], pair, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&device->active_count, count, __ATOMIC_RELEASE);
}

// No worker uses the queue when this returns; rte_vhost knows how far it came.
static void take_away(struct cv_vhost_queue *queue)
{
	struct cv_vring_base base;
	bool was_ready;

	rte_spinlock_lock(&queue->lock);
	was_ready = queue->ready;
	__atomic_store_n(&queue->ready, false, __ATOMIC_RELAXED);
	base = cv_vring_base(&queue->vring);
	rte_spinlock_unlock(&queue->lock);
	if (was_ready)
		rte_vhost_set_vring_base(queue->device->vid, queue->index, base.avail, base.used);
}

static void take_all_away(struct cv_vhost *device)
{
	for (uint16_t i = 0; i < 2 * device->pairs; i++)
		take_away(&device->queues[i]);
	list_active(device);
}

static void log_bytes(void *context, uint64_t guest, uint64_t bytes)
{
	const struct cv_vhost_queue *queue = context;

	rte_vhost_log_write(queue->device->vid, guest, bytes);
}

static void log_used(void *context, uint64_t offset, uint64_t bytes)
{
	const struct cv_vhost_queue *queue = context;

	rte_vhost_log_used_vring(queue->device->vid, queue->index, offset, bytes);
}

// Once for each connection: a guest can have it said as often as it sends a message.
static void say_refused(const struct cv_vhost_queue *queue)
{
	struct cv_vhost *device = queue->device;

	if (!device->said_refused)
		fprintf(stderr,
			"vhost-user: %s: queue %u is not used: its %u descriptors are no ring, or "
			"do "
			"not lie in the memory that the guest shares\n",
			device->path, queue->index, queue->vring.size);
	device->said_refused = true;
}

// Nothing that rte_vhost says of a ring is believed: it may have checked it for another size or
// layout, or found it wrong.
static void give(struct cv_vhost_queue *queue, uint64_t features)
{
	struct cv_vhost *device = queue->device;
	struct cv_vring *vring = &queue->vring;
	struct rte_vhost_vring there = {0};
	struct cv_vring_base base;
	bool good;

	if (rte_vhost_get_vhost_vring(device->vid, queue->index, &there) != 0 ||
		rte_vhost_get_vring_base(device->vid, queue->index, &base.avail, &base.used) != 0)
		return;
	rte_spinlock_lock(&queue->lock);
	vring->desc = there.desc;
	vring->avail = there.avail;
	vring->used = there.used;
	vring->size = there.size;
	vring->memory = &device->memory;
	vring->call_fd = there.callfd;
	// Whoever is told must not make a worker wait.
	if (vring->call_fd >= 0)
		fcntl(vring->call_fd, F_SETFL, fcntl(vring->call_fd, F_GETFL) | O_NONBLOCK);
	vring->log = RTE_VHOST_NEED_LOG(features) ? log_bytes : NULL;
	vring->log_used = RTE_VHOST_NEED_LOG(features) ? log_used : NULL;
	vring->log_context = queue;
	good = cv_vring_begin(vring, features, base) == 0;
	if (good) {
		cv_vring_quiet(vring);
		// What waits at the guest for a word from us.
		cv_vring_notify(vring);
		__atomic_store_n(&queue->ready, true, __ATOMIC_RELAXED);
	}
	rte_spinlock_unlock(&queue->lock);
	if (!good)
		say_refused(queue);
}

static int read_memory(struct cv_vhost *device)
{
	struct rte_vhost_memory *table = NULL;

	device->memory.count = 0;
	if (rte_vhost_get_mem_table(device->vid, &table) != 0 || table == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < table->nregions && i < CV_GUEST_REGIONS_MAX; i++)
		device->memory.regions[device->memory.count++] = (struct cv_guest_region){
			table->regions[i].guest_phys_addr, table->regions[i].size,
			(uint8_t *)(uintptr_t)table->regions[i].host_user_addr};
	free(table);
	return 0;
}

// Gives workers the queues that the peer has enabled and that they do not have yet.
static void give_all(struct cv_vhost *device)
{
	uint64_t features = 0;
	bool none = true;

	if (!device->running || __atomic_load_n(&device->lost, __ATOMIC_RELAXED) ||
		rte_vhost_get_negotiated_features(device->vid, &features) != 0)
		return;
	for (uint16_t i = 0; i < 2 * device->pairs; i++)
		none &= !device->queues[i].ready;
	// Where one is in use, the memory is as it was.
	if (none && read_memory(device) != 0)
		return;
	for (uint16_t i = 0; i < 2 * device->pairs; i++) {
		if (device->enabled[i] && !device->queues[i].ready)
			give(&device->queues[i], features);
	}
	list_active(device);
}

void cv_vhost_pause(struct cv_vhost *device)
{
	take_all_away(device);
}

void cv_vhost_resume(struct cv_vhost *device)
{
	give_all(device);
}

static bool shares(const struct cv_vhost *device, const void *address)
{
	for (unsigned i = 0; i < device->memory.count; i++) {
		const struct cv_guest_region *region = &device->memory.regions[i];

		if ((uintptr_t)address - (uintptr_t)region->host < region->size)
			return true;
	}
	return false;
}

void cv_vhost_lost(const void *address)
{
	// No lock: it is the thread that touched the page, which may hold any of them.
	for (size_t i = 0; i < RTE_DIM(devices); i++) {
		struct cv_vhost *device = __atomic_load_n(&devices[i], __ATOMIC_RELAXED);

		if (device == NULL || !shares(device, address))
			continue;
		__atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
		__atomic_store_n(&device->active_count, 0, __ATOMIC_RELAXED);
		for (uint16_t k = 0; k < 2 * device->pairs; k++)
			__atomic_store_n(&device->queues[k].ready, false, __ATOMIC_RELAXED);
	}
}

static enum rte_vhost_msg_result before_message(int vid, void *data)
{
	struct cv_vhost *device = device_of(vid);
	struct message *message = data;

	if (device == NULL)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	take_all_away(device);
	if (message->request == GET_QUEUE_NUM) {
		// rte_vhost would promise queues that nobody polls.
		message->number = device->pairs;
		message->bytes = sizeof(message->number);
		return RTE_VHOST_MSG_RESULT_REPLY;
	}
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after_message(int vid, void *data)
{
	struct cv_vhost *device = device_of(vid);

	if (device != NULL)
		give_all(device);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

// The thread on which rte_vhost serves its connections; 0: not known yet. Atomic.
static pid_t server;

static int queue_changed(int vid, uint16_t index, int enable)
{
	struct cv_vhost *device = device_of(vid);

	__atomic_store_n(&server, gettid(), __ATOMIC_RELAXED);
	if (device == NULL || index >= 2 * device->pairs)
		return 0;
	device->enabled[index] = enable;
	if (enable) {
		give_all(device);
	} else {
		take_away(&device->queues[index]);
		list_active(device);
	}
	return 0;
}

static int new_connection(int vid)
{
	static const struct rte_vhost_user_extern_ops around = {before_message, after_message};
	struct cv_vhost *device = NULL;
	char path[PATH_MAX];

	if (rte_vhost_get_ifname(vid, path, sizeof(path)) != 0)
		return -1;
	pthread_mutex_lock(&devices_lock);
	for (size_t i = 0; i < RTE_DIM(devices); i++) {
		// One peer at a time: a second one is turned away.
		if (devices[i] != NULL && devices[i]->vid < 0 &&
			strcmp(devices[i]->path, path) == 0)
			device = devices[i];
	}
	if (device != NULL) {
		device->vid = vid;
		by_vid[vid] = device;
	}
	pthread_mutex_unlock(&devices_lock);
	if (device == NULL)
		return -1;
	memset(device->enabled, 0, sizeof(device->enabled));
	device->said_refused = false;
	__atomic_store_n(&device->lost, false, __ATOMIC_RELAXED);
	return rte_vhost_extern_callback_register(vid, &around, NULL);
}

static int new_device(int vid)
{
	struct cv_vhost *device = device_of(vid);

	if (device == NULL)
		return -1;
	device->running = true;
	give_all(device);
	__atomic_fetch_add(&device->peers, 1, __ATOMIC_RELAXED);
	device->changed(device->context, true);
	return 0;
}

static void destroy_device(int vid)
{
	struct cv_vhost *device = device_of(vid);

	if (device == NULL)
		return;
	take_all_away(device);
	if (device->running)
		device->changed(device->context, false);
	device->running = false;
}

static void destroy_connection(int vid)
{
	struct cv_vhost *device = device_of(vid);

	if (device == NULL)
		return;
	destroy_device(vid);
	pthread_mutex_lock(&devices_lock);
	by_vid[vid] = NULL;
	device->vid = -1;
	pthread_mutex_unlock(&devices_lock);
}

static int add(struct cv_vhost *device)
{
	int rc = -ENOSPC;

	pthread_mutex_lock(&devices_lock);
	for (size_t i = 0; i < RTE_DIM(devices) && rc != 0; i++) {
		if (devices[i] == NULL) {
			devices[i] = device;
			rc = 0;
		}
	}
	pthread_mutex_unlock(&devices_lock);
	return rc;
}

static void remove_device(struct cv_vhost *device)
{
	pthread_mutex_lock(&devices_lock);
	for (size_t i = 0; i < RTE_DIM(devices); i++) {
		if (devices[i] == device)
			devices[i] = NULL;
	}
	for (size_t i = 0; i < RTE_DIM(by_vid); i++) {
		if (by_vid[i] == device)
			by_vid[i] = NULL;
	}
	pthread_mutex_unlock(&devices_lock);
}

int cv_vhost_make_queues(struct cv_vhost *device)
{
	const size_t bytes = 2 * device->pairs * sizeof(*device->queues);

	device->queues = aligned_alloc(64, bytes);
	if (device->queues == NULL)
		return -ENOMEM;
	memset(device->queues, 0, bytes);
	for (uint16_t i = 0; i < 2 * device->pairs; i++) {
		rte_spinlock_init(&device->queues[i].lock);
		device->queues[i].device = device;
		device->queues[i].index = i;
	}
	return 0;
}

int cv_vhost_open(struct cv_vhost *device, struct cv_error *error)
{
	static const struct rte_vhost_device_ops ops = {
		.new_device = new_device,
		.destroy_device = destroy_device,
		.vring_state_changed = queue_changed,
		.new_connection = new_connection,
		.destroy_connection = destroy_connection,
	};
	uint64_t protocol = 0;

	device->vid = -1;
	if (cv_vhost_make_queues(device) != 0 || add(device) != 0) {
		cv_error_set(error, "out of memory, or more than %zu vhost-user ports",
			RTE_DIM(devices));
		free(device->queues);
		return -ENOMEM;
	}
	if (rte_vhost_driver_register(device->path, device->client ? RTE_VHOST_USER_CLIENT : 0) !=
		0)
		goto no_socket;
	if (rte_vhost_driver_disable_features(device->path, CV_VHOST_NOT_OURS) != 0 ||
		rte_vhost_driver_get_protocol_features(device->path, &protocol) != 0 ||
		// Announcing a migrated guest by packets of our own making is not ours to do.
		rte_vhost_driver_set_protocol_features(
			device->path, protocol & ~BIT(VHOST_USER_PROTOCOL_F_RARP)) != 0 ||
		rte_vhost_driver_callback_register(device->path, &ops) != 0 ||
		rte_vhost_driver_start(device->path) != 0) {
		rte_vhost_driver_unregister(device->path);
		goto no_socket;
	}
	cv_vhost_thread_wake();
	return 0;

no_socket:
	cv_error_set(error, "path: %s: cannot be used as a socket; DPDK's lines above say more",
		device->path);
	remove_device(device);
	free(device->queues);
	return -EIO;
}

// Whether a thread of this process waits for something just now, or is no more.
static bool is_asleep(pid_t thread)
{
	char path[64], state = 'S';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = fopen(path, "r");
	if (file == NULL)
		return true;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'S';
	fclose(file);
	return state == 'S';
}

// When a client's peer goes, rte_vhost's thread tells us first and puts the socket on its list to
// connect again after that. Unregistering in between frees the socket that is then put there (DPDK
// 22.11), and the thread that connects uses it. So that thread is given the time to be done.
static void let_server_end(void)
{
	const uint64_t deadline = rte_rdtsc() + rte_get_tsc_hz();
	const pid_t thread = __atomic_load_n(&server, __ATOMIC_RELAXED);

	while (thread != 0 && !is_asleep(thread) && rte_rdtsc() < deadline)
		sched_yield();
}

void cv_vhost_close(struct cv_vhost *device)
{
	if (device->client)
		let_server_end();
	// Ends the connection, with its callbacks.
	rte_vhost_driver_unregister(device->path);
	remove_device(device);
	free(device->queues);
	device->queues = NULL;
}
