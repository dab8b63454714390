// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/handover.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <string.h>
#include <unistd.h>

#include "vhost/message.h"

// What a record is.
enum {
	ENDPOINT =
		1, // the sockets: that which listens, if it does; the front end's, if it is there
	MESSAGE, // of vhost-user
	RING, // where it goes on
};

struct endpoint_record {
	uint32_t kind;
	uint8_t listens, has_peer, up, zero;
	uint64_t peers, refused_messages;
};

struct message_record {
	uint32_t kind;
	struct cv_vhost_message message; // as many bytes of it as it says
} __attribute__((packed));

struct ring_record {
	uint32_t kind, index;
	uint16_t avail, used;
	uint32_t fresh;
	struct cv_vring_counters counters;
};

_Static_assert(
	sizeof(struct ring_record) == 16 + 6 * sizeof(uint64_t), "counters as of protocol 1");

static int put(struct cv_record_sink *sink, const void *data, uint32_t bytes,
	const struct cv_socket_fds *fds)
{
	struct cv_record record = {.bytes = bytes};

	memcpy(record.data, data, bytes);
	if (fds != NULL)
		record.fds = *fds;
	return sink->put(sink, &record);
}

// A message; only 0 goes on.
static void say(int *rc, struct cv_record_sink *sink, uint32_t request, const void *body,
	uint32_t bytes, const struct cv_socket_fds *fds)
{
	struct message_record record = {.kind = MESSAGE,
		.message = {.request = request, .flags = CV_VHOST_VERSION, .bytes = bytes}};

	memcpy((uint8_t *)&record.message + CV_VHOST_HEADER_BYTES, body, bytes);
	if (*rc == 0)
		*rc = put(sink, &record,
			(uint32_t)(offsetof(struct message_record, message) +
				   CV_VHOST_HEADER_BYTES) +
				bytes,
			fds);
}

static void say_u64(int *rc, struct cv_record_sink *sink, uint32_t request, uint64_t value, int fd)
{
	const struct cv_socket_fds fds = {.count = fd >= 0, .fds = {fd}};

	say(rc, sink, request, &value, sizeof(value), &fds);
}

static void say_state(
	int *rc, struct cv_record_sink *sink, uint32_t request, unsigned index, unsigned num)
{
	const struct vhost_vring_state state = {.index = index, .num = num};

	say(rc, sink, request, &state, sizeof(state), NULL);
}

static void say_memory(int *rc, struct cv_record_sink *sink, const struct cv_vhost_memory *memory)
{
	struct cv_vhost_memory_table table = {.count = memory->guest.count};
	struct cv_socket_fds fds = {.count = memory->guest.count};

	for (unsigned i = 0; i < table.count; i++) {
		const struct cv_guest_region *region = &memory->guest.regions[i];

		table.regions[i] = (struct cv_vhost_region){
			region->guest, region->size, memory->user[i], memory->offsets[i]};
		fds.fds[i] = memory->fds[i];
	}
	if (table.count > 0)
		say(rc, sink, CV_VHOST_SET_MEM_TABLE, &table,
			(uint32_t)(offsetof(struct cv_vhost_memory_table, regions) +
				   table.count * sizeof(table.regions[0])),
			&fds);
}

static void say_ring(
	int *rc, struct cv_record_sink *sink, const struct cv_vhost_session *session, unsigned i)
{
	const struct cv_vhost_ring *ring = &session->rings[i];

	if (ring->size > 0)
		say_state(rc, sink, CV_VHOST_SET_VRING_NUM, i, ring->size);
	if (ring->has_address)
		say(rc, sink, CV_VHOST_SET_VRING_ADDR, &ring->address, sizeof(ring->address), NULL);
	if (ring->call_fd >= 0)
		say_u64(rc, sink, CV_VHOST_SET_VRING_CALL, i, ring->call_fd);
	if (ring->started)
		say_u64(rc, sink, CV_VHOST_SET_VRING_KICK, i | CV_VHOST_VRING_NO_FD, -1);
	if (ring->enabled && cv_vhost_has(session->features, CV_VHOST_F_PROTOCOL_FEATURES))
		say_state(rc, sink, CV_VHOST_SET_VRING_ENABLE, i, 1);
}

static int say_all(const struct cv_vhost_device *device, struct cv_record_sink *sink)
{
	const struct cv_vhost_session *session = &device->session;
	const struct cv_endpoint *endpoint = &device->endpoint;
	const bool has_peer = endpoint->peer >= 0;
	const struct endpoint_record sockets = {
		.kind = ENDPOINT,
		.listens = !endpoint->client,
		.has_peer = has_peer,
		.up = device->up,
		.peers = __atomic_load_n(&device->peers, __ATOMIC_RELAXED),
		.refused_messages = __atomic_load_n(&device->refused_messages, __ATOMIC_RELAXED),
	};
	struct cv_socket_fds fds = {.count = 0};
	int rc;

	if (!endpoint->client)
		fds.fds[fds.count++] = endpoint->listener.fd;
	if (has_peer)
		fds.fds[fds.count++] = endpoint->peer;
	rc = put(sink, &sockets, sizeof(sockets), &fds);
	if (!has_peer)
		return rc;
	// First, for what may be said goes by it.
	say_u64(&rc, sink, CV_VHOST_SET_PROTOCOL_FEATURES, session->protocol_features, -1);
	say_u64(&rc, sink, CV_VHOST_SET_FEATURES, session->features, -1);
	if (cv_vhost_has(session->protocol_features, CV_VHOST_PROTOCOL_F_STATUS))
		say_u64(&rc, sink, CV_VHOST_SET_STATUS, session->status, -1);
	say_memory(&rc, sink, &session->memory);
	for (unsigned i = 0; i < 2u * session->pairs; i++)
		say_ring(&rc, sink, session, i);
	return rc;
}

struct holding {
	struct cv_vhost_device *device;
	int rc;
};

static void hold(void *argument)
{
	struct holding *it = argument;
	struct cv_vhost_device *device = it->device;

	if (device->stream.have > 0 || device->session.log.data != NULL) {
		it->rc = -EBUSY;
		return;
	}
	cv_endpoint_hold(&device->endpoint);
	if (device->endpoint.peer >= 0)
		cv_loop_unwatch(&device->watch);
	device->held = true;
}

int cv_vhost_device_give(
	struct cv_vhost_device *device, struct cv_record_sink *sink, struct cv_error *error)
{
	struct holding holding = {.device = device};

	cv_loop_run(hold, &holding);
	if (holding.rc != 0) {
		cv_error_set(error, "%s; try again",
			device->session.log.data != NULL
				? "its guest is being migrated"
				: "its front end is in the middle of a message");
		return holding.rc;
	}
	holding.rc = say_all(device, sink);
	if (holding.rc != 0)
		cv_error_set(error, "cannot be told to the new node: %s", strerror(-holding.rc));
	return holding.rc;
}

int cv_vhost_device_freeze(
	struct cv_vhost_device *device, struct cv_record_sink *sink, struct cv_error *error)
{
	int rc = 0;

	cv_vhost_device_revoke(device);
	if (device->endpoint.peer < 0)
		return 0;
	for (unsigned i = 0; rc == 0 && i < 2u * device->session.pairs; i++) {
		const struct cv_vhost_ring *ring = &device->session.rings[i];
		const struct ring_record record = {
			.kind = RING,
			.index = i,
			.avail = ring->base.avail,
			.used = ring->base.used,
			.fresh = ring->fresh,
			.counters = device->queues[i].vring.counters,
		};

		if (ring->started)
			rc = put(sink, &record, sizeof(record), NULL);
	}
	if (rc != 0)
		cv_error_set(error, "cannot be told to the new node: %s", strerror(-rc));
	return rc;
}

void cv_vhost_device_resume(struct cv_vhost_device *device)
{
	if (!device->held)
		return;
	device->held = false;
	cv_endpoint_go_on(&device->endpoint);
	if (device->endpoint.peer < 0)
		return;
	cv_vhost_device_revoke(device); // where it was not frozen: rings know how far they came
	cv_vhost_device_grant(device);
	cv_vhost_device_serve(device);
}

void cv_vhost_device_leave(struct cv_vhost_device *device)
{
	cv_endpoint_forget(&device->endpoint);
	cv_vhost_session_end(&device->session);
	device->up = false;
}

static int refuse(struct cv_error *error, const char *why)
{
	cv_error_set(error, "what the running node says of it: %s", why);
	return -EPROTO;
}

static int take_endpoint(
	struct cv_vhost_device *device, struct cv_record *record, struct cv_error *error)
{
	const struct endpoint_record *given = (const struct endpoint_record *)record->data;
	const struct cv_endpoint *endpoint = &device->endpoint;
	int *fd = record->fds.fds;

	if (record->bytes != sizeof(*given) || device->taken.is_there || given->listens > 1 ||
		given->has_peer > 1 || given->listens == endpoint->client ||
		record->fds.count != (unsigned)given->listens + given->has_peer ||
		(given->listens && !cv_endpoint_fits(endpoint, fd[0], true)) ||
		(given->has_peer && !cv_endpoint_fits(endpoint, fd[given->listens], false)))
		return refuse(error, "its sockets are not those of such a port");
	device->taken = (struct cv_vhost_taken){.is_there = true, .listener = -1, .peer = -1};
	if (given->listens) {
		device->taken.listener = *fd;
		*fd++ = -1;
	}
	if (given->has_peer) {
		device->taken.peer = *fd;
		*fd = -1;
	}
	device->up = given->up != 0;
	device->peers = given->peers;
	device->refused_messages = given->refused_messages;
	return 0;
}

static int take_message(
	struct cv_vhost_device *device, struct cv_record *record, struct cv_error *error)
{
	const uint64_t protocol = device->session.protocol_features;
	struct message_record given = {.kind = 0};
	struct cv_vhost_message reply;
	const size_t header = offsetof(struct message_record, message) + CV_VHOST_HEADER_BYTES;

	if (record->bytes < header || record->bytes > sizeof(given) || device->taken.peer < 0)
		return refuse(error, "a message of no front end");
	memcpy(&given, record->data, record->bytes);
	if (cv_vhost_header_check(&given.message, protocol, error) != 0 ||
		record->bytes != header + given.message.bytes)
		return refuse(error, error->text[0] != '\0' ? error->text : "half a message");
	if (cv_vhost_message_check(&given.message, record->fds.count, error) != 0 ||
		cv_vhost_session_handle(
			&device->session, &given.message, record->fds.fds, &reply, error) < 0)
		return refuse(error, error->text);
	return 0;
}

static int take_ring(
	struct cv_vhost_device *device, const struct cv_record *record, struct cv_error *error)
{
	const struct ring_record *given = (const struct ring_record *)record->data;
	struct cv_vhost_ring *ring;

	if (record->bytes != sizeof(*given) || given->index >= 2u * device->session.pairs ||
		record->fds.count > 0)
		return refuse(error, "a ring that the port has not");
	ring = &device->session.rings[given->index];
	ring->base = (struct cv_vring_base){given->avail, given->used};
	ring->fresh = given->fresh != 0;
	device->queues[given->index].vring.counters = given->counters;
	return 0;
}

int cv_vhost_device_take(
	struct cv_vhost_device *device, struct cv_record *record, struct cv_error *error)
{
	uint32_t kind = 0;

	if (record->bytes >= sizeof(kind))
		memcpy(&kind, record->data, sizeof(kind));
	switch (kind) {
	case ENDPOINT:
		return take_endpoint(device, record, error);
	case MESSAGE:
		return take_message(device, record, error);
	case RING:
		return take_ring(device, record, error);
	default:
		return refuse(error, "a record of no known kind");
	}
}

int cv_vhost_device_taken(struct cv_vhost_device *device, struct cv_error *error)
{
	if (!device->taken.is_there)
		return refuse(error, "nothing of its sockets");
	for (unsigned i = 0; i < 2u * device->session.pairs; i++) {
		struct cv_vhost_ring *ring = &device->session.rings[i];
		const bool fresh = ring->fresh;
		const struct cv_vring_base base = ring->base;
		struct cv_vring vring = device->queues[i].vring;

		if (cv_vhost_session_ring(&device->session, (uint16_t)i, &vring, error) == -EINVAL)
			return -EPROTO;
		ring->fresh = fresh;
		ring->base = base;
	}
	return 0;
}

void cv_vhost_device_adopt(struct cv_vhost_device *device)
{
	if (device->taken.peer >= 0)
		cv_vhost_device_grant(device);
}

void cv_vhost_device_listen(struct cv_vhost_device *device)
{
	const struct cv_vhost_taken taken = device->taken;

	device->taken = (struct cv_vhost_taken){.is_there = false, .listener = -1, .peer = -1};
	cv_endpoint_adopt(&device->endpoint, taken.listener, taken.peer);
	if (taken.peer >= 0)
		cv_vhost_device_serve(device);
}
