// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vring/vring.h"

#include <errno.h>

#include "vring/call.h"
#include "vring/slot.h"

// The packed ring's event areas: offset and wrap counter, then one of these; 0: always.
#define EVENT_DISABLE 1
#define EVENT_AT 2

static bool has(uint64_t features, int bit)
{
	return features >> bit & 1;
}

// Whether an area lies wholly in one region of the guest's memory.
static bool shared(const struct cv_guest_memory *memory, const void *area, uint64_t bytes)
{
	for (unsigned i = 0; i < memory->count; i++) {
		const struct cv_guest_region here = {
			.guest = (uintptr_t)memory->regions[i].host,
			.size = memory->regions[i].size,
		};

		if (cv_guest_inside(&here, (uintptr_t)area, bytes))
			return true;
	}
	return false;
}

// Whether all three areas are the guest's, for the size and the layout that the ring has now.
static bool is_shared(const struct cv_vring *vring)
{
	const uint64_t size = vring->size, event = vring->event_idx ? sizeof(uint16_t) : 0;
	const uint64_t avail =
		vring->is_packed ? sizeof(struct vring_packed_desc_event)
				 : sizeof(struct vring_avail) + size * sizeof(__virtio16) + event;
	const uint64_t used =
		vring->is_packed
			? sizeof(struct vring_packed_desc_event)
			: sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) + event;

	return shared(vring->memory, vring->desc, size * sizeof(struct vring_desc)) &&
	       shared(vring->memory, vring->avail, avail) &&
	       shared(vring->memory, vring->used, used);
}

int cv_vring_begin(struct cv_vring *vring, uint64_t features, struct cv_vring_base base)
{
	const uint32_t size = vring->size;

	vring->is_packed = has(features, CV_VIRTIO_F_RING_PACKED);
	vring->in_order = has(features, CV_VIRTIO_F_IN_ORDER);
	vring->mergeable = has(features, CV_VIRTIO_NET_F_MRG_RXBUF);
	vring->event_idx = has(features, CV_VIRTIO_RING_F_EVENT_IDX);
	vring->indirect = has(features, CV_VIRTIO_RING_F_INDIRECT_DESC);
	vring->header_bytes =
		vring->mergeable || vring->is_packed || has(features, CV_VIRTIO_F_VERSION_1) ? 12
											     : 10;
	if (size == 0 || size > CV_VRING_SIZE_MAX ||
		(!vring->is_packed && (size & (size - 1)) != 0))
		return -EINVAL;
	if (vring->desc == NULL || vring->avail == NULL || vring->used == NULL ||
		(uintptr_t)vring->desc % 16 != 0 || (uintptr_t)vring->avail % 2 != 0 ||
		(uintptr_t)vring->used % 4 != 0 || !is_shared(vring))
		return -EINVAL;
	// What is stored eight bytes at once needs not be aligned to eight, but must not be torn by
	// the end of a cache line: elements of a used ring 4 bytes off would be.
	if (vring->is_packed) {
		vring->next_avail = base.avail & 0x7fff;
		vring->avail_wrap = base.avail >> 15;
		vring->next_used = base.used & 0x7fff;
		vring->used_wrap = base.used >> 15;
		if (vring->next_avail >= size || vring->next_used >= size)
			return -EINVAL;
	} else {
		vring->next_avail = base.avail;
		vring->next_used = base.used;
	}
	vring->avail_seen = vring->next_avail;
	__atomic_store_n(&vring->broken, false, __ATOMIC_RELAXED);
	vring->signalled_valid = false;
	vring->short_bytes = 0;
	vring->region = (struct cv_guest_region){0, 0, NULL};
	return 0;
}

struct cv_vring_base cv_vring_base(const struct cv_vring *vring)
{
	struct cv_vring_base base = {vring->next_avail, vring->next_used};

	if (vring->is_packed) {
		base.avail |= (uint16_t)(vring->avail_wrap << 15);
		base.used |= (uint16_t)(vring->used_wrap << 15);
	}
	return base;
}

void cv_vring_quiet(struct cv_vring *vring)
{
	if (vring->is_packed)
		__atomic_store_n(&vring->device_event[1], EVENT_DISABLE, __ATOMIC_RELAXED);
	else if (!vring->event_idx)
		__atomic_store_n(&vring->used->flags, VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
}

uint8_t *cv_vring_find(struct cv_vring *vring, uint64_t address, uint32_t len)
{
	for (unsigned i = 0; i < vring->memory->count; i++) {
		const struct cv_guest_region *region = &vring->memory->regions[i];

		if (cv_guest_inside(region, address, len)) {
			vring->region = *region;
			return region->host + (address - region->guest);
		}
	}
	return NULL;
}

uint16_t cv_vring_ready(struct cv_vring *vring)
{
	uint16_t flags;

	if (vring->broken)
		return 0;
	if (!vring->is_packed)
		return cv_vring_split_ready(vring, vring->size);
	return cv_vring_packed_ready(vring, vring->next_avail, vring->avail_wrap, &flags);
}

// Whether event lies in what came since `then`, up to and without `now`.
static bool passed(uint16_t event, uint16_t now, uint16_t then)
{
	return (uint16_t)(now - event - 1) < (uint16_t)(now - then);
}

static bool split_wants(const struct cv_vring *vring, uint16_t then)
{
	if (!vring->event_idx)
		return !(__atomic_load_n(&vring->avail->flags, __ATOMIC_RELAXED) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	// Behind the avail ring: the index at whose use the driver wants to be told.
	return !vring->signalled_valid ||
	       passed(__atomic_load_n(&vring->avail->ring[vring->size], __ATOMIC_RELAXED),
		       vring->next_used, then);
}

static bool packed_wants(const struct cv_vring *vring, uint16_t then)
{
	const uint16_t flags = __atomic_load_n(&vring->driver_event[1], __ATOMIC_RELAXED) & 3;
	uint16_t event, at;

	if (!vring->event_idx || flags != EVENT_AT)
		return flags != EVENT_DISABLE;
	if (!vring->signalled_valid)
		return true;
	event = __atomic_load_n(&vring->driver_event[0], __ATOMIC_RELAXED);
	// Places count on around the ring: those behind us are of the pass before.
	at = event & 0x7fff;
	if (vring->next_used <= then)
		then = (uint16_t)(then - vring->size);
	if (vring->used_wrap != event >> 15)
		at = (uint16_t)(at - vring->size);
	return passed(at, vring->next_used, then);
}

void cv_vring_notify(struct cv_vring *vring)
{
	const uint16_t then = vring->signalled;

	// The same place with the other wrap: the whole ring was used.
	if (vring->call_fd < 0 || (vring->signalled_valid && then == vring->next_used &&
					  vring->signalled_wrap == vring->used_wrap))
		return;
	// Buffers given back before the driver's wish is read: it writes its wish before it looks for
	// buffers, so that one of the two sees the other. Pairs with the driver's full barrier.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (vring->is_packed ? packed_wants(vring, then) : split_wants(vring, then)) {
		// Not told, it is to be told next time.
		if (!cv_call(vring->call_fd))
			return;
		cv_count(&vring->counters.kicks, 1);
	}
	vring->signalled = vring->next_used;
	vring->signalled_wrap = vring->used_wrap;
	vring->signalled_valid = true;
}
