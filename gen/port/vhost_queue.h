// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A pair of queues of a vhost-user port: its rings in memory that the device shares, and how frames
// go through them. Part of vhost_port.h's.
#ifndef GEN_PORT_VHOST_QUEUE_H
#define GEN_PORT_VHOST_QUEUE_H

#include <linux/virtio_config.h>
#include <stdbool.h>
#include <stdint.h>

#include "gen/port/vring.h"
#include "gen/traffic/wire.h"

#ifndef VIRTIO_F_IN_ORDER
#define VIRTIO_F_IN_ORDER 35
#endif

struct gen_vhost_queue {
	struct gen_vring rx, tx;
	uint8_t *buffers; // of rx: the frame of buffer i at buffers + i * stride
	uint32_t stride;
	uint32_t header_bytes; // of virtio-net, before the frame
	uint32_t frame_max;
	uint32_t held; // received, not yet released
	uint16_t held_id[GEN_BURST];
	int rx_kick, tx_kick, call;
	bool kick_pending;
};

// Begins anew, with empty rings of `size` descriptors at `rings` (both: 2 * gen_vring_bytes), as the
// features say that were negotiated: all buffers are offered to the device. ids: room for 2 * size.
// Returns the wire, whose state is the queue.
struct gen_wire gen_vhost_queue_begin(struct gen_vhost_queue *queue, uint32_t size, uint8_t *rings,
	uint16_t *ids, uint64_t features);

#endif
