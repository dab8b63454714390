// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/guest_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_vhost.h>

int cv_guest_make_queues(struct cv_guest_device *device)
{
	const size_t bytes = 2 * device->pairs * sizeof(*device->queues);

	device->queues = aligned_alloc(64, bytes);
	if (device->queues == NULL)
		return -ENOMEM;
	memset(device->queues, 0, bytes);
	for (uint16_t i = 0; i < 2 * device->pairs; i++) {
		rte_spinlock_init(&device->queues[i].access.lock);
		device->queues[i].device = device;
		device->queues[i].index = i;
	}
	return 0;
}

static void revoke(struct cv_guest_queue *queue)
{
	struct cv_vring_base base;
	bool was_ready;

	rte_spinlock_lock(&queue->access.lock);
	was_ready = queue->access.ready;
	__atomic_store_n(&queue->access.ready, false, __ATOMIC_RELAXED);
	base = cv_vring_base(&queue->vring);
	rte_spinlock_unlock(&queue->access.lock);
	if (was_ready)
		rte_vhost_set_vring_base(queue->device->vid, queue->index, base.avail, base.used);
}

void cv_guest_revoke(struct cv_guest_device *device)
{
	for (uint16_t i = 0; i < 2 * device->pairs; i++)
		revoke(&device->queues[i]);
}

static void log_bytes(void *context, uint64_t guest, uint64_t bytes)
{
	const struct cv_guest_queue *queue = context;

	rte_vhost_log_write(queue->device->vid, guest, bytes);
}

static void log_used(void *context, uint64_t offset, uint64_t bytes)
{
	const struct cv_guest_queue *queue = context;

	rte_vhost_log_used_vring(queue->device->vid, queue->index, offset, bytes);
}

// rte_vhost is not believed about a ring: it may have checked it for another size or layout, or found
// it wrong. cv_vring_begin() checks all of it, for what is in force now.
static void grant(struct cv_guest_queue *queue, uint64_t features)
{
	struct cv_guest_device *device = queue->device;
	struct cv_vring *vring = &queue->vring;
	struct rte_vhost_vring there = {0};
	struct cv_vring_base base;
	bool good;

	if (rte_vhost_get_vhost_vring(device->vid, queue->index, &there) != 0 ||
		rte_vhost_get_vring_base(device->vid, queue->index, &base.avail, &base.used) != 0)
		return;
	rte_spinlock_lock(&queue->access.lock);
	vring->desc = there.desc;
	vring->avail = there.avail;
	vring->used = there.used;
	vring->size = there.size;
	vring->memory = &device->memory;
	vring->call_fd = there.callfd;
	vring->log = RTE_VHOST_NEED_LOG(features) ? log_bytes : NULL;
	vring->log_used = RTE_VHOST_NEED_LOG(features) ? log_used : NULL;
	vring->log_context = queue;
	good = cv_vring_begin(vring, features, base) == 0;
	if (good) {
		cv_vring_quiet(vring);
		// What waits at the guest for a word from us.
		cv_vring_notify(vring);
		__atomic_store_n(&queue->access.ready, true, __ATOMIC_RELAXED);
	}
	rte_spinlock_unlock(&queue->access.lock);
	device->refused += !good;
}

static int read_memory(struct cv_guest_device *device)
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

void cv_guest_grant(struct cv_guest_device *device)
{
	uint64_t features = 0;

	if (!device->running || rte_vhost_get_negotiated_features(device->vid, &features) != 0 ||
		read_memory(device) != 0)
		return;
	for (uint16_t i = 0; i < 2 * device->pairs; i++) {
		if (device->enabled[i])
			grant(&device->queues[i], features);
	}
}
