// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One vhost-user device: its socket, its peer, its virtqueues. DPDK's rte_vhost speaks the protocol;
// the packets are moved by our vring. Workers use a queue under its lock; whenever the peer changes
// something (memory, rings, features), or goes, all queues are taken away first and set up anew.
//
// The peer's memory may be unmapped only then. rte_vhost holds locks of its own while it tells us:
// nobody may call those of its functions that take them with a queue's lock held.
#ifndef CV_VHOST_DEVICE_H
#define CV_VHOST_DEVICE_H

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <sys/un.h>

#include <rte_spinlock.h>

#include "error.h"
#include "vring/vring.h"

#define CV_VHOST_PAIRS_MAX 64

// What our vring does not do: offloads, which leave packets unfinished where functions need whole
// ones with right checksums; and an IOMMU, behind which addresses would have to be asked for.
#define CV_VHOST_NOT_OURS                                                                         \
	(1ull << VIRTIO_NET_F_CSUM | 1ull << VIRTIO_NET_F_GUEST_CSUM | 1ull << VIRTIO_NET_F_GSO | \
		1ull << VIRTIO_NET_F_HOST_TSO4 | 1ull << VIRTIO_NET_F_HOST_TSO6 |                 \
		1ull << VIRTIO_NET_F_HOST_UFO | 1ull << VIRTIO_NET_F_HOST_ECN |                   \
		1ull << VIRTIO_NET_F_GUEST_TSO4 | 1ull << VIRTIO_NET_F_GUEST_TSO6 |               \
		1ull << VIRTIO_NET_F_GUEST_UFO | 1ull << VIRTIO_NET_F_GUEST_ECN |                 \
		1ull << VIRTIO_F_IOMMU_PLATFORM)

struct cv_vhost_queue {
	_Alignas(64) rte_spinlock_t lock; // of vring
	bool ready; // atomic: vring may be used, under the lock; changes under the lock
	struct cv_vring vring;
	struct cv_vhost *device;
	uint16_t index; // of the virtqueue
};

struct cv_vhost {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	bool client; // connects, rather than listens
	uint16_t pairs; // of queues, at most
	// Called by rte_vhost's thread when the peer has come or gone.
	void (*changed)(void *context, bool up);
	void *context;

	// Even: to the guest; odd: from the guest. 2 * pairs of them.
	struct cv_vhost_queue *queues;
	uint16_t active[CV_VHOST_PAIRS_MAX]; // pairs whose queue to the guest is there; atomic
	uint16_t active_count; // atomic
	uint64_t peers; // how often one came; atomic
	bool lost; // the peer took back memory: no queue is used before it connects anew; atomic

	// rte_vhost's thread's own.
	int vid; // of the connection; -1: none
	bool running;
	bool enabled[2 * CV_VHOST_PAIRS_MAX];
	bool said_refused; // that a ring is not used
	struct cv_guest_memory memory;
};

// path, client, pairs, changed and context are set. Begins to listen or to connect. 0 or -errno with
// error set.
int cv_vhost_open(struct cv_vhost *device, struct cv_error *error);

// For whoever has its connection from elsewhere: allocates queues, of which none can be used yet.
// pairs and vid are set. 0 or -ENOMEM. Between pause and resume below running, enabled may change.
int cv_vhost_make_queues(struct cv_vhost *device);

// For cv_lost_memory_guard(): the device whose peer shared this address loses its queues.
void cv_vhost_lost(const void *address);

// Nobody uses a queue any more.
void cv_vhost_close(struct cv_vhost *device);

// Takes the queues away from all workers; rte_vhost's own functions may then be used on them (to
// compare with), and go on where the vring stopped. Until resume, which goes on where those did. Not
// while the peer changes something.
void cv_vhost_pause(struct cv_vhost *device);
void cv_vhost_resume(struct cv_vhost *device);

static inline bool cv_vhost_is_up(const struct cv_vhost *device)
{
	return __atomic_load_n(&device->active_count, __ATOMIC_RELAXED) > 0;
}

// Takes the queue's lock, if the queue can be used.
static CV_INLINE bool cv_vhost_enter(struct cv_vhost_queue *queue)
{
	if (!__atomic_load_n(&queue->ready, __ATOMIC_RELAXED))
		return false;
	rte_spinlock_lock(&queue->lock);
	// It may have been taken away just before.
	if (CV_LIKELY(__atomic_load_n(&queue->ready, __ATOMIC_RELAXED)))
		return true;
	rte_spinlock_unlock(&queue->lock);
	return false;
}

static CV_INLINE void cv_vhost_leave(struct cv_vhost_queue *queue)
{
	rte_spinlock_unlock(&queue->lock);
}

#endif
