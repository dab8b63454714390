// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/vhost_queue.h"

#include <linux/virtio_net.h>
#include <unistd.h>

#include "gen/traffic/convoys.h"
#include "gen/traffic/stamp.h"
#include "packet/compiler.h"

static void kick(struct gen_wire *wire, int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) == sizeof(one))
		wire->kicks++;
}

static inline uint32_t take_back_sent(struct gen_wire *wire, struct gen_vring *ring)
{
	const uint32_t fresh = gen_vring_used(ring);

	if (CV_UNLIKELY(fresh == UINT32_MAX)) {
		wire->ring_errors++;
		return 0;
	}
	if (!ring->in_order) {
		for (uint32_t i = 0; i < fresh; i++) {
			const uint32_t at = (uint16_t)(ring->used_index + i) & (ring->size - 1);
			const uint32_t id = ring->used->ring[at].id;

			if (id >= ring->size)
				wire->ring_errors++;
			ring->free[ring->free_count++] = (uint16_t)(id & (ring->size - 1));
		}
	}
	ring->used_index = (uint16_t)(ring->used_index + fresh);
	return fresh;
}

static inline uint32_t ring_room(const struct gen_vring *ring)
{
	return ring->size - (uint16_t)(ring->avail_index - ring->used_index);
}

static uint32_t vhost_tx_room(struct gen_wire *wire, uint32_t wanted)
{
	struct gen_vhost_queue *queue = wire->state;
	struct gen_vring *ring = &queue->tx;

	if (ring_room(ring) < wanted) {
		take_back_sent(wire, ring);
		// The device may have gone to sleep between our last frame and its look at the flag.
		if (queue->kick_pending && gen_vring_wants_kick(ring)) {
			queue->kick_pending = false;
			kick(wire, queue->tx_kick);
		}
	}
	const uint32_t room = ring_room(ring);
	return room < wanted ? room : wanted;
}

static inline __attribute__((always_inline)) void put(struct gen_vhost_queue *queue,
	const struct gen_tx *burst, uint32_t count, bool in_order, bool convoys)
{
	struct gen_vring *ring = &queue->tx;
	const uint32_t mask = ring->size - 1;
	const uint32_t header = queue->header_bytes;

	for (uint32_t i = 0; i < count && !convoys; i++) {
		const struct gen_frame frame = burst->frame[i];
		uint8_t *data = burst->base + frame.offset;

		__builtin_prefetch(data + gen_stamp_offset(frame.bytes), 1);
	}
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t slot = (ring->avail_index + i) & mask;
		const uint32_t id = in_order ? slot : ring->free[--ring->free_count];
		const struct gen_frame frame = burst->frame[i];
		uint8_t *data = burst->base + frame.offset;
		struct vring_desc *desc = &ring->desc[id];
		const uint64_t address = (uintptr_t)(data - header);

		// A descriptor that already says so is left alone: its line stays shared.
		if (desc->addr != address || desc->len != frame.bytes + header) {
			desc->addr = address;
			desc->len = frame.bytes + header;
		}
		if (!in_order)
			ring->avail->ring[slot] = (uint16_t)id;
		if (convoys)
			gen_convoy_stamp(burst, i, data);
		else
			gen_stamp_write(data + gen_stamp_offset(frame.bytes), burst->magic,
				burst->seq[i], burst->ticks[i], frame.sum);
	}
}

static uint32_t vhost_tx(struct gen_wire *wire, const struct gen_tx *burst)
{
	struct gen_vhost_queue *queue = wire->state;
	struct gen_vring *ring = &queue->tx;
	const uint32_t count = vhost_tx_room(wire, burst->count);

	if (count == 0)
		return 0;
	if (burst->packets != NULL && ring->in_order)
		put(queue, burst, count, true, true);
	else if (burst->packets != NULL)
		put(queue, burst, count, false, true);
	else if (ring->in_order)
		put(queue, burst, count, true, false);
	else
		put(queue, burst, count, false, false);
	gen_vring_publish(ring, (uint16_t)(ring->avail_index + count));
	queue->kick_pending = true;
	if (CV_UNLIKELY(gen_vring_wants_kick(ring)))
		kick(wire, queue->tx_kick);
	return count;
}

static bool vhost_tx_idle(struct gen_wire *wire)
{
	struct gen_vhost_queue *queue = wire->state;

	take_back_sent(wire, &queue->tx);
	if (queue->kick_pending && gen_vring_wants_kick(&queue->tx)) {
		queue->kick_pending = false;
		kick(wire, queue->tx_kick);
	}
	return ring_room(&queue->tx) == queue->tx.size;
}

static inline __attribute__((always_inline)) uint32_t get(struct gen_wire *wire,
	struct gen_vhost_queue *queue, uint32_t count, struct gen_rx *out, bool in_order)
{
	struct gen_vring *ring = &queue->rx;
	const uint32_t mask = ring->size - 1;
	uint32_t good = 0;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t slot = (uint16_t)(ring->used_index + i) & mask;
		const uint64_t raw = gen_vring_element(ring, slot);
		const uint32_t id = (uint32_t)raw;
		const uint32_t bytes = (uint32_t)(raw >> 32) - queue->header_bytes;

		queue->held_id[i] = (uint16_t)(id & mask);
		if (CV_UNLIKELY(bytes - 1 >= queue->frame_max || id >= ring->size ||
				(in_order && id != slot))) {
			wire->ring_errors++;
			continue;
		}
		const uint8_t *data = queue->buffers + (size_t)id * queue->stride;
		__builtin_prefetch(data + bytes - 1);
		out[good++] = (struct gen_rx){data, bytes, true};
	}
	return good;
}

static uint32_t vhost_rx(struct gen_wire *wire, struct gen_rx *frames)
{
	struct gen_vhost_queue *queue = wire->state;
	struct gen_vring *ring = &queue->rx;
	uint32_t count = gen_vring_used(ring);

	if (count == 0)
		return 0;
	if (CV_UNLIKELY(count == UINT32_MAX)) {
		wire->ring_errors++;
		return 0;
	}
	// Between two polls it only fills, so whether the device found no room shows here; a quarter
	// is what it may have under way.
	if (CV_UNLIKELY(count > ring->size - ring->size / 4))
		wire->rx_full++;
	if (count > wire->rx_most)
		count = wire->rx_most;
	const uint32_t good = ring->in_order ? get(wire, queue, count, frames, true)
					     : get(wire, queue, count, frames, false);
	ring->used_index = (uint16_t)(ring->used_index + count);
	queue->held = count;
	if (CV_UNLIKELY(good == 0))
		wire->ops->rx_release(wire);
	return good;
}

static void vhost_rx_release(struct gen_wire *wire)
{
	struct gen_vhost_queue *queue = wire->state;
	struct gen_vring *ring = &queue->rx;

	if (!ring->in_order)
		for (uint32_t i = 0; i < queue->held; i++)
			ring->avail->ring[(uint16_t)(ring->avail_index + i) & (ring->size - 1)] =
				queue->held_id[i];
	gen_vring_publish(ring, (uint16_t)(ring->avail_index + queue->held));
	queue->held = 0;
	if (CV_UNLIKELY(gen_vring_wants_kick(ring)))
		kick(wire, queue->rx_kick);
}

static const struct gen_wire_ops vhost_ops = {
	.tx = vhost_tx,
	.tx_room = vhost_tx_room,
	.rx = vhost_rx,
	.rx_release = vhost_rx_release,
	.tx_idle = vhost_tx_idle,
};

struct gen_wire gen_vhost_queue_begin(struct gen_vhost_queue *queue, uint32_t size, uint8_t *rings,
	uint16_t *ids, uint64_t features)
{
	const bool in_order = features >> VIRTIO_F_IN_ORDER & 1;

	gen_vring_init(&queue->rx, rings, size, in_order, ids);
	gen_vring_init(&queue->tx, rings + gen_vring_bytes(size), size, in_order, ids + size);
	queue->header_bytes = features >> VIRTIO_F_VERSION_1 & 1 ? sizeof(struct virtio_net_hdr_v1)
								 : sizeof(struct virtio_net_hdr);
	queue->held = 0;
	queue->kick_pending = false;
	for (uint32_t i = 0; i < size; i++)
		queue->rx.desc[i] = (struct vring_desc){
			.addr = (uintptr_t)(queue->buffers + (size_t)i * queue->stride -
					    queue->header_bytes),
			.len = queue->frame_max + queue->header_bytes,
			.flags = VRING_DESC_F_WRITE,
		};
	gen_vring_publish(&queue->rx, (uint16_t)size);
	return (struct gen_wire){.ops = &vhost_ops,
		.state = queue,
		.rx_most = GEN_BURST,
		.tx_half = size / 2,
		.sees_full = true};
}
