// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/session.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <unistd.h>

#include "vhost/log.h"

static void reset_rings(struct cv_vhost_session *session)
{
	for (unsigned i = 0; i < 2u * session->pairs; i++) {
		struct cv_vhost_ring *ring = &session->rings[i];

		if (ring->call_fd >= 0)
			close(ring->call_fd);
		*ring = (struct cv_vhost_ring){.call_fd = -1, .session = session};
	}
}

void cv_vhost_session_begin(struct cv_vhost_session *session)
{
	session->features = session->protocol_features = 0;
	session->status = 0;
	session->memory = (struct cv_vhost_memory){0};
	session->log = (struct cv_shared_memory){0};
	for (unsigned i = 0; i < 2u * session->pairs; i++)
		session->rings[i] = (struct cv_vhost_ring){.call_fd = -1, .session = session};
}

void cv_vhost_session_reset(struct cv_vhost_session *session)
{
	session->features = 0;
	session->status = 0;
	reset_rings(session);
	cv_vhost_memory_clear(&session->memory);
	cv_shared_memory_unmap(&session->log);
}

void cv_vhost_session_end(struct cv_vhost_session *session)
{
	cv_vhost_session_reset(session);
	session->protocol_features = 0;
}

static bool is_to_run(const struct cv_vhost_session *session, const struct cv_vhost_ring *ring)
{
	// The driver says by its status, where it has one, that it has said everything.
	if (cv_vhost_has(session->protocol_features, CV_VHOST_PROTOCOL_F_STATUS) &&
		!(session->status & VIRTIO_CONFIG_S_DRIVER_OK))
		return false;
	return ring->started && ring->enabled && ring->has_address && ring->size > 0 &&
	       session->memory.guest.count > 0;
}

// A front end that came back after we had died need not know how far a split ring had come: what
// was given back is in the ring.
static void catch_up(struct cv_vhost_ring *ring, const struct cv_vring *vring)
{
	if (ring->fresh && !vring->is_packed) {
		const uint16_t used = __atomic_load_n(&vring->used->idx, __ATOMIC_ACQUIRE);

		ring->base = (struct cv_vring_base){used, used};
	}
	ring->fresh = false;
}

int cv_vhost_session_ring(struct cv_vhost_session *session, uint16_t index, struct cv_vring *vring,
	struct cv_error *error)
{
	const bool packed = cv_vhost_has(session->features, VIRTIO_F_RING_PACKED);
	const bool logs =
		cv_vhost_has(session->features, CV_VHOST_F_LOG_ALL) && session->log.data != NULL;
	struct cv_vhost_ring *ring = &session->rings[index];
	const struct vhost_vring_addr *address = &ring->address;
	const uint64_t size = ring->size;

	if (!is_to_run(session, ring))
		return -EAGAIN;
	vring->desc = cv_vhost_memory_at(
		&session->memory, address->desc_user_addr, size * sizeof(struct vring_desc));
	// The packed ring has two words there. The split ring: with the events behind each.
	vring->avail = cv_vhost_memory_at(&session->memory, address->avail_user_addr,
		packed ? 4 : sizeof(struct vring_avail) + (size + 1) * sizeof(uint16_t));
	vring->used = cv_vhost_memory_at(&session->memory, address->used_user_addr,
		packed ? 4
		       : sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) +
				 sizeof(uint16_t));
	vring->size = ring->size;
	vring->memory = &session->memory.guest;
	vring->call_fd = ring->call_fd;
	vring->log = logs ? cv_vhost_log_bytes : NULL;
	vring->log_used = logs ? cv_vhost_log_used : NULL;
	vring->log_context = ring;
	// Validates size, alignment and base; and that all three are there.
	if (cv_vring_begin(vring, session->features, ring->base) != 0) {
		cv_error_set(error,
			"ring %u: %u descriptors of the %s layout are not where the peer says",
			index, ring->size, packed ? "packed" : "split");
		return -EINVAL;
	}
	if (ring->fresh) {
		catch_up(ring, vring);
		cv_vring_begin(vring, session->features, ring->base);
	}
	return 0;
}
