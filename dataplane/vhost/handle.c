// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a message of the front end changes in a session.
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <unistd.h>

#include "vhost/message.h"
#include "vhost/session.h"
#include "vring/call.h"

#define BIT(n) (1ull << (n))

// Without offloads that leave a packet unfinished: functions need whole packets with right
// checksums. What concerns the control queue is the front end's to do.
#define FEATURES                                                                            \
	(BIT(VIRTIO_NET_F_MTU) | BIT(VIRTIO_NET_F_MRG_RXBUF) | BIT(VIRTIO_NET_F_CTRL_VQ) |  \
		BIT(VIRTIO_NET_F_CTRL_RX) | BIT(VIRTIO_NET_F_GUEST_ANNOUNCE) |              \
		BIT(VIRTIO_NET_F_MQ) | BIT(CV_VHOST_F_LOG_ALL) | BIT(VIRTIO_F_ANY_LAYOUT) | \
		BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(VIRTIO_RING_F_EVENT_IDX) |           \
		BIT(CV_VHOST_F_PROTOCOL_FEATURES) | BIT(VIRTIO_F_VERSION_1) |               \
		BIT(CV_VIRTIO_F_IN_ORDER))

#define MTU_MIN 68
#define MTU_MAX 65535

// A message that is being handled.
struct handling {
	struct cv_vhost_session *session;
	const struct cv_vhost_message *message;
	int *fds;
	struct cv_vhost_message *reply;
	struct cv_error *error;
};

static uint64_t offered(const struct cv_vhost_session *session)
{
	return FEATURES | (session->packed ? BIT(VIRTIO_F_RING_PACKED) : 0);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

// Whom to call stays: not every front end says so again.
static void stop_ring(struct cv_vhost_ring *ring)
{
	ring->started = ring->fresh = false;
}

#define refuse(it, ...) cv_vhost_refuse((it)->message, (it)->error, __VA_ARGS__)

static int answer(const struct handling *it, uint64_t value)
{
	it->reply->bytes = sizeof(it->reply->u64);
	it->reply->u64 = value;
	return 1;
}

// The ring that a message is about, or NULL with error set.
static struct cv_vhost_ring *ring_of(const struct handling *it, uint64_t index)
{
	if (index < 2u * it->session->pairs)
		return &it->session->rings[index];
	refuse(it, "ring %llu: the port has %u (queues: %u)", (unsigned long long)index,
		2u * it->session->pairs, it->session->pairs);
	return NULL;
}

static int set_features(const struct handling *it)
{
	const uint64_t unknown = it->message->u64 & ~offered(it->session);

	if (unknown != 0)
		return refuse(it, "0x%llx: was not offered", (unsigned long long)unknown);
	it->session->features = it->message->u64;
	return 0;
}

static int set_protocol_features(const struct handling *it)
{
	const uint64_t unknown = it->message->u64 & ~CV_VHOST_PROTOCOL_FEATURES;

	if (unknown != 0)
		return refuse(it, "0x%llx: was not offered", (unsigned long long)unknown);
	it->session->protocol_features = it->message->u64;
	return 0;
}

static int set_memory(const struct handling *it)
{
	// Aligned, which it is not on the wire.
	const struct cv_vhost_memory_table table = it->message->memory;

	return cv_vhost_memory_set(&it->session->memory, &table, it->fds, it->error);
}

static int set_log(const struct handling *it)
{
	struct cv_shared_memory log;

	if (cv_shared_memory_map(&log, it->fds[0], it->message->log.offset, it->message->log.bytes,
		    it->error) != 0)
		return -EPROTO;
	cv_shared_memory_unmap(&it->session->log);
	it->session->log = log;
	return answer(it, 0);
}

static int set_size(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->state.index);
	const uint32_t size = it->message->state.num;

	if (ring == NULL)
		return -EPROTO;
	if (size == 0 || size > it->session->ring_size_max)
		return refuse(it, "%u descriptors: must be 1 to %u (max_ring_size)", size,
			it->session->ring_size_max);
	ring->size = (uint16_t)size;
	return 0;
}

static int set_address(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->address.index);

	if (ring == NULL)
		return -EPROTO;
	ring->address = it->message->address;
	ring->has_address = true;
	return 0;
}

// All that was taken from the ring has been given back: one index, or place and wrap counter, says
// both. (The packed ring's place for used descriptors, in the upper half, need not be filled in.)
static int set_base(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->state.index);
	const uint16_t base = (uint16_t)it->message->state.num;

	if (ring == NULL)
		return -EPROTO;
	ring->base = (struct cv_vring_base){base, base};
	return 0;
}

static int get_base(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->state.index);

	if (ring == NULL)
		return -EPROTO;
	stop_ring(ring);
	it->reply->bytes = sizeof(it->reply->state);
	it->reply->state = it->message->state;
	it->reply->state.num = ring->base.avail;
	if (cv_vhost_has(it->session->features, VIRTIO_F_RING_PACKED))
		it->reply->state.num |= (uint32_t)ring->base.used << 16;
	return 1;
}

// Nobody waits for the eventfd, for the rings are polled: that it came is all.
static int set_kick(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->u64 & CV_VHOST_VRING_INDEX);

	if (ring == NULL)
		return -EPROTO;
	if (!ring->started)
		ring->started = ring->fresh = true;
	// Otherwise it waits for SET_VRING_ENABLE.
	if (!cv_vhost_has(it->session->features, CV_VHOST_F_PROTOCOL_FEATURES))
		ring->enabled = true;
	return 0;
}

static int set_call(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->u64 & CV_VHOST_VRING_INDEX);

	if (ring == NULL)
		return -EPROTO;
	if (!(it->message->u64 & CV_VHOST_VRING_NO_FD) && !cv_call_is_eventfd(it->fds[0]))
		return refuse(it, "its descriptor is no eventfd");
	close_fd(&ring->call_fd);
	if (it->message->u64 & CV_VHOST_VRING_NO_FD)
		return 0;
	ring->call_fd = it->fds[0];
	it->fds[0] = -1;
	return 0;
}

static int set_err(const struct handling *it)
{
	return ring_of(it, it->message->u64 & CV_VHOST_VRING_INDEX) != NULL ? 0 : -EPROTO;
}

static int enable(const struct handling *it)
{
	struct cv_vhost_ring *ring = ring_of(it, it->message->state.index);

	if (ring == NULL)
		return -EPROTO;
	ring->enabled = it->message->state.num == 1;
	return 0;
}

static int check_mtu(const struct handling *it)
{
	const uint64_t mtu = it->message->u64;

	return mtu >= MTU_MIN && mtu <= MTU_MAX
		       ? 0
		       : refuse(it, "%llu: must be %d to %d", (unsigned long long)mtu, MTU_MIN,
				 MTU_MAX);
}

static int set_status(const struct handling *it)
{
	it->session->status = (uint8_t)it->message->u64;
	for (unsigned i = 0; it->session->status == 0 && i < 2u * it->session->pairs; i++)
		stop_ring(&it->session->rings[i]);
	return 0;
}

static int handle(const struct handling *it)
{
	struct cv_vhost_session *session = it->session;

	switch (it->message->request) {
	case CV_VHOST_GET_FEATURES:
		return answer(it, offered(session));
	case CV_VHOST_SET_FEATURES:
		return set_features(it);
	case CV_VHOST_RESET_OWNER:
		cv_vhost_session_reset(session);
		return 0;
	case CV_VHOST_SET_MEM_TABLE:
		return set_memory(it);
	case CV_VHOST_SET_LOG_BASE:
		return set_log(it);
	case CV_VHOST_SET_VRING_NUM:
		return set_size(it);
	case CV_VHOST_SET_VRING_ADDR:
		return set_address(it);
	case CV_VHOST_SET_VRING_BASE:
		return set_base(it);
	case CV_VHOST_GET_VRING_BASE:
		return get_base(it);
	case CV_VHOST_SET_VRING_KICK:
		return set_kick(it);
	case CV_VHOST_SET_VRING_CALL:
		return set_call(it);
	case CV_VHOST_SET_VRING_ERR:
		return set_err(it);
	case CV_VHOST_GET_PROTOCOL_FEATURES:
		return answer(it, CV_VHOST_PROTOCOL_FEATURES);
	case CV_VHOST_SET_PROTOCOL_FEATURES:
		return set_protocol_features(it);
	case CV_VHOST_GET_QUEUE_NUM:
		return answer(it, session->pairs);
	case CV_VHOST_SET_VRING_ENABLE:
		return enable(it);
	case CV_VHOST_NET_SET_MTU:
		return check_mtu(it);
	case CV_VHOST_SET_STATUS:
		return set_status(it);
	case CV_VHOST_GET_STATUS:
		return answer(it, session->status);
	case CV_VHOST_SET_OWNER:
	case CV_VHOST_SET_LOG_FD:
		return 0;
	default: // not a checked message
		return refuse(it, "is none that this port serves");
	}
}

int cv_vhost_session_handle(struct cv_vhost_session *session,
	const struct cv_vhost_message *message, int *fds, struct cv_vhost_message *reply,
	struct cv_error *error)
{
	const struct handling it = {session, message, fds, reply, error};
	int rc;

	*reply = (struct cv_vhost_message){
		.request = message->request, .flags = CV_VHOST_VERSION | CV_VHOST_REPLY};
	rc = handle(&it);
	if (rc == 0 && (message->flags & CV_VHOST_NEED_REPLY) &&
		cv_vhost_has(session->protocol_features, CV_VHOST_PROTOCOL_F_REPLY_ACK))
		rc = answer(&it, 0);
	return rc;
}
