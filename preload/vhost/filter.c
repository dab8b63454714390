// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/vhost/filter.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "vhost/message.h"
#include "vring/vring.h"

#define BIT(n) (1ull << (n))

// rte_vhost offers these to no guest unless the program asked for them.
#define PROTOCOL_F_PAGEFAULT 8
#define PROTOCOL_F_CONFIG 9
#define PROTOCOL_F_INFLIGHT_SHMFD 12

struct validation {
	struct cv_filter *filter;
	const struct cv_vhost_message *message;
	const uint64_t *file_bytes;
	struct cv_error *error;
};

static bool has(uint64_t features, int bit)
{
	return features >> bit & 1;
}

void cv_filter_begin(struct cv_filter *filter, uint64_t offered, uint64_t protocol_offered)
{
	*filter = (struct cv_filter){.offered = offered, .protocol_offered = protocol_offered};
	for (unsigned i = 0; i < CV_FILTER_RINGS; i++)
		filter->rings[i].has_base = true; // 0
}

bool cv_filter_leaves(uint64_t offered, uint64_t protocol_offered)
{
	return has(offered, VIRTIO_F_IOMMU_PLATFORM) ||
	       (protocol_offered & (BIT(PROTOCOL_F_PAGEFAULT) | BIT(PROTOCOL_F_CONFIG) |
					   BIT(PROTOCOL_F_INFLIGHT_SHMFD))) != 0;
}

// rte_vhost offers more by itself: what it does with it is looked at nowhere, and no network guest
// needs it.
uint64_t cv_filter_protocol(const struct cv_filter *filter)
{
	return filter->protocol_offered & CV_VHOST_PROTOCOL_FEATURES;
}

#define refuse(it, ...) cv_vhost_refuse((it)->message, (it)->error, __VA_ARGS__)

static struct cv_filter_ring *ring_of(const struct validation *it)
{
	const struct cv_vhost_message *message = it->message;
	uint64_t index = message->state.index; // an address has it there, too

	if (message->request == CV_VHOST_SET_VRING_KICK)
		index = message->u64 & CV_VHOST_VRING_INDEX;
	if (index < CV_FILTER_RINGS)
		return &it->filter->rings[index];
	refuse(it, "there is no ring %llu", (unsigned long long)index);
	return NULL;
}

static bool runs(const struct cv_filter *filter)
{
	bool any = false;

	for (unsigned i = 0; i < CV_FILTER_RINGS; i++)
		any |= filter->rings[i].started;
	return any;
}

static int stop(struct cv_filter_ring *ring)
{
	// rte_vhost gives back what it had for it: all must be said again.
	*ring = (struct cv_filter_ring){0};
	return 0;
}

// Without MQ there are two rings: rte_vhost gives back what it had for others.
static int without_queues(const struct validation *it)
{
	for (unsigned i = 2; i < CV_FILTER_RINGS; i++) {
		if (it->filter->rings[i].started)
			return refuse(it, "ring %u runs, which there is not without MQ", i);
		stop(&it->filter->rings[i]);
	}
	return 0;
}

static int set_features(const struct validation *it)
{
	struct cv_filter *filter = it->filter;
	const uint64_t features = it->message->u64, changed = features ^ filter->features;

	if ((features & ~filter->offered) != 0)
		return refuse(it, "0x%llx was not offered",
			(unsigned long long)(features & ~filter->offered));
	if ((changed & ~BIT(CV_VHOST_F_LOG_ALL)) != 0 && runs(filter))
		return refuse(it, "a ring runs");
	// What rte_vhost keeps for a ring is another for each layout.
	for (unsigned i = 0; has(changed, VIRTIO_F_RING_PACKED) && i < CV_FILTER_RINGS; i++) {
		if (filter->rings[i].size > 0)
			return refuse(it, "ring %u was described with another layout", i);
	}
	filter->features = features;
	return has(features, VIRTIO_NET_F_MQ) ? 0 : without_queues(it);
}

static int set_protocol(const struct validation *it)
{
	const uint64_t unknown = it->message->u64 & ~cv_filter_protocol(it->filter);

	if (unknown != 0)
		return refuse(it, "0x%llx was not offered", (unsigned long long)unknown);
	it->filter->protocol = it->message->u64;
	return 0;
}

static int check_file(
	const struct validation *it, unsigned i, uint64_t offset, uint64_t bytes, uint64_t user)
{
	const uint64_t file = it->file_bytes[i];

	if (file == CV_FILTER_NO_MEMORY)
		return refuse(it, "file %u is no memfd, nor a file in tmpfs or hugetlbfs", i);
	if (bytes == 0 || offset > file || bytes > file - offset || user + bytes < bytes)
		return refuse(it, "%llu bytes at %llu of a file of %llu bytes",
			(unsigned long long)bytes, (unsigned long long)offset,
			(unsigned long long)file);
	return 0;
}

static int set_memory(const struct validation *it)
{
	const struct cv_vhost_memory_table *table = &it->message->memory;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct cv_vhost_region *region = &table->regions[i];

		if (region->guest + region->bytes < region->bytes)
			return refuse(it, "region %u: its guest addresses wrap", i);
		if (check_file(it, i, region->offset, region->bytes, region->user) != 0)
			return -EPROTO;
	}
	it->filter->has_memory = true;
	return 0;
}

static int set_log(const struct validation *it)
{
	// rte_vhost counts an offset twice.
	if (it->message->log.offset != 0)
		return refuse(it, "its offset must be 0");
	return check_file(it, 0, 0, it->message->log.bytes, 0);
}

static bool is_size(const struct cv_filter *filter, uint32_t size)
{
	return size > 0 && size <= CV_VRING_SIZE_MAX &&
	       (has(filter->features, VIRTIO_F_RING_PACKED) || (size & (size - 1)) == 0);
}

static int set_size(const struct validation *it, struct cv_filter_ring *ring)
{
	const uint32_t size = it->message->state.num;

	if (!is_size(it->filter, size))
		return refuse(it, "%u descriptors are no ring", size);
	if (ring->started && size != ring->size)
		return refuse(it, "the ring runs, with %u descriptors", ring->size);
	ring->size = (uint16_t)size;
	return 0;
}

// Whether a packed ring can go on there. (Anything is a place in a split ring.)
static bool is_place(const struct cv_filter *filter, const struct cv_filter_ring *ring)
{
	return !has(filter->features, VIRTIO_F_RING_PACKED) || (ring->base & 0x7fff) < ring->size;
}

static int set_base(const struct validation *it, struct cv_filter_ring *ring)
{
	ring->base = (uint16_t)it->message->state.num;
	ring->has_base = true;
	if (ring->started && !is_place(it->filter, ring))
		return refuse(it, "%u: the ring has %u descriptors", ring->base, ring->size);
	return 0;
}

static int start(const struct validation *it, struct cv_filter_ring *ring)
{
	if (!it->filter->has_memory || !ring->has_address || !ring->has_base ||
		!is_size(it->filter, ring->size) || !is_place(it->filter, ring))
		return refuse(it, "ring %llu was not described: memory, size, base and addresses",
			(unsigned long long)(it->message->u64 & CV_VHOST_VRING_INDEX));
	ring->started = true;
	return 0;
}

static int handle(const struct validation *it)
{
	const uint32_t request = it->message->request;
	struct cv_filter_ring *ring = NULL;

	switch (request) {
	case CV_VHOST_SET_FEATURES:
		return set_features(it);
	case CV_VHOST_SET_PROTOCOL_FEATURES:
		return set_protocol(it);
	case CV_VHOST_SET_MEM_TABLE:
		return set_memory(it);
	case CV_VHOST_SET_LOG_BASE:
		return set_log(it);
	case CV_VHOST_RESET_OWNER:
		return refuse(it, "is obsolete, and not served");
	case CV_VHOST_SET_VRING_NUM:
	case CV_VHOST_SET_VRING_ADDR:
	case CV_VHOST_SET_VRING_BASE:
	case CV_VHOST_GET_VRING_BASE:
	case CV_VHOST_SET_VRING_ENABLE:
	case CV_VHOST_SET_VRING_KICK:
		ring = ring_of(it);
		break;
	default:
		return 0;
	}
	if (ring == NULL)
		return -EPROTO;
	switch (request) {
	case CV_VHOST_SET_VRING_NUM:
		return set_size(it, ring);
	case CV_VHOST_SET_VRING_ADDR:
		ring->has_address = true;
		return 0;
	case CV_VHOST_SET_VRING_BASE:
		return set_base(it, ring);
	case CV_VHOST_GET_VRING_BASE:
		return stop(ring);
	case CV_VHOST_SET_VRING_KICK:
		return start(it, ring);
	default:
		return 0;
	}
}

int cv_filter_validate(struct cv_filter *filter, const struct cv_vhost_message *message,
	const uint64_t *file_bytes, unsigned files, struct cv_error *error)
{
	const struct validation it = {filter, message, file_bytes, error};

	if (cv_vhost_header_check(message, filter->protocol, error) != 0 ||
		cv_vhost_message_check(message, files, error) != 0)
		return -EPROTO;
	return handle(&it);
}
