// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A guest's virtqueues as rte_vhost knows them, for our vring. The program's threads use a queue
// under its lock; whenever the guest changes something (memory, rings, features), or goes, all queues
// are revoked first and granted anew.
//
// The guest's memory may be unmapped only then. rte_vhost holds locks of its own while it tells us:
// nobody may call those of its functions that take them with a queue's lock held.
#ifndef CV_GUEST_DEVICE_H
#define CV_GUEST_DEVICE_H

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "packet/revocable.h"
#include "vring/vring.h"

#define CV_GUEST_PAIRS_MAX 64

// What our vring does not do: offloads, which leave packets unfinished where convoys need whole ones
// with right checksums; and an IOMMU, behind which addresses would have to be asked for.
#define CV_GUEST_NOT_OURS                                                                         \
	(1ull << VIRTIO_NET_F_CSUM | 1ull << VIRTIO_NET_F_GUEST_CSUM | 1ull << VIRTIO_NET_F_GSO | \
		1ull << VIRTIO_NET_F_HOST_TSO4 | 1ull << VIRTIO_NET_F_HOST_TSO6 |                 \
		1ull << VIRTIO_NET_F_HOST_UFO | 1ull << VIRTIO_NET_F_HOST_ECN |                   \
		1ull << VIRTIO_NET_F_GUEST_TSO4 | 1ull << VIRTIO_NET_F_GUEST_TSO6 |               \
		1ull << VIRTIO_NET_F_GUEST_UFO | 1ull << VIRTIO_NET_F_GUEST_ECN |                 \
		1ull << VIRTIO_F_IOMMU_PLATFORM)

struct cv_guest_queue {
	_Alignas(64) struct cv_revocable access; // to vring; changes under its lock
	struct cv_vring vring;
	struct cv_guest_device *device;
	uint16_t index; // of the virtqueue
};

struct cv_guest_device {
	int vid;
	uint16_t pairs; // of queues, at most
	struct cv_guest_queue *queues; // even: to the guest; odd: from the guest. 2 * pairs of them

	// rte_vhost's thread's own. running and enabled change between revoke and grant.
	bool running;
	bool enabled[2 * CV_GUEST_PAIRS_MAX];
	uint32_t refused; // rings that are no rings: how often one was not granted
	struct cv_guest_memory memory;
};

// Allocates queues, of which none can be used yet. pairs and vid are set. 0 or -ENOMEM.
int cv_guest_make_queues(struct cv_guest_device *device);

// No thread uses any queue when this returns; rte_vhost knows how far they came.
void cv_guest_revoke(struct cv_guest_device *device);

// The queues that run and are enabled can be used, as far as they lie in the guest's memory.
void cv_guest_grant(struct cv_guest_device *device);

#endif
