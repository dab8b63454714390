// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "memif/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memif/client_memory.h"
#include "vring/call.h"

void cv_memif_session_begin(struct cv_memif_session *session, struct cv_memif_reply *reply)
{
	*session = (struct cv_memif_session){.client = session->client,
		.id = session->id,
		.slots = session->slots,
		.name = session->name,
		.calls = {-1, -1},
		.file = -1};
	*reply = (struct cv_memif_reply){.fd = -1};
	if (session->client)
		return;
	reply->message.type = CV_MEMIF_HELLO;
	reply->message.hello.min_version = CV_MEMIF_VERSION;
	reply->message.hello.max_version = CV_MEMIF_VERSION;
	reply->message.hello.max_region = CV_MEMIF_REGIONS_MAX - 1;
	reply->message.hello.max_log2_ring_size = CV_MEMIF_LOG2_MAX;
	// The last ring each way is the first.
	snprintf(reply->message.hello.name, CV_MEMIF_NAME_BYTES, "%s", session->name);
}

void cv_memif_session_end(struct cv_memif_session *session)
{
	session->up = false;
	for (unsigned i = 0; i < CV_MEMIF_WAYS; i++) {
		if (session->calls[i] >= 0)
			close(session->calls[i]);
		session->calls[i] = -1;
	}
	for (unsigned i = 0; i < CV_MEMIF_REGIONS_MAX; i++)
		cv_shared_memory_unmap(&session->memory[i]);
	session->regions.count = 0;
	if (session->file >= 0)
		close(session->file);
	session->file = -1;
}

static int wrong(struct cv_error *error, const char *text)
{
	cv_error_set(error, "%s", text);
	return -EPROTO;
}

static void begin_rings(struct cv_memif_session *session)
{
	for (unsigned i = 0; i < CV_MEMIF_WAYS; i++)
		cv_memif_ring_begin(&session->rings[i]);
	session->up = true;
}

// The server's part.

static int init(struct cv_memif_session *session, const struct cv_memif_message *message,
	struct cv_error *error)
{
	if (session->step != 0)
		return wrong(error, "INIT a second time");
	if (message->init.version != CV_MEMIF_VERSION)
		return wrong(error, "not memif 2.0");
	if (message->init.mode != CV_MEMIF_ETHERNET)
		return wrong(error, "only Ethernet interfaces can be connected");
	if (message->init.id != session->id) {
		cv_error_set(error, "there is no interface with id %" PRIu32 " here, only %" PRIu32,
			message->init.id, session->id);
		return -EPROTO;
	}
	memcpy(session->peer, message->init.name, sizeof(session->peer));
	session->step = 1;
	return 0;
}

static int add_region(struct cv_memif_session *session, const struct cv_memif_message *message,
	const struct cv_socket_fds *fds, struct cv_error *error)
{
	struct cv_memif_regions *regions = &session->regions;
	const uint64_t size = message->add_region.size;
	uint64_t bytes = 0;
	int rc;

	if (message->add_region.index != regions->count || regions->count == CV_MEMIF_REGIONS_MAX)
		return wrong(error, "ADD_REGION with an index that is not the next");
	for (unsigned i = 0; i < regions->count; i++)
		bytes += regions->regions[i].size;
	if (size > CV_MEMIF_MEMORY_MAX - bytes)
		return wrong(error, "more than 64 GiB of memory");
	rc = cv_shared_memory_map(&session->memory[regions->count], fds->fds[0], 0, size, error);
	if (rc != 0)
		return rc;
	regions->regions[regions->count] =
		(struct cv_memif_region){session->memory[regions->count].data, size};
	regions->count++;
	return 0;
}

static int add_ring(struct cv_memif_session *session, const struct cv_memif_message *message,
	struct cv_socket_fds *fds, struct cv_error *error)
{
	const bool to_server = message->add_ring.flags & CV_MEMIF_RING_TO_SERVER;
	const enum cv_memif_way way = to_server ? CV_MEMIF_TO_SERVER : CV_MEMIF_TO_CLIENT;
	const unsigned log2 = message->add_ring.log2_ring_size;
	const uint32_t offset = message->add_ring.offset;
	const struct cv_memif_region *region;

	if (message->add_ring.index != 0 || session->rings[way].shared != NULL)
		return wrong(error, "a second ring one way; one is possible");
	if (message->add_ring.region >= session->regions.count)
		return wrong(error, "a ring in a region that was not added");
	if (log2 > CV_MEMIF_LOG2_MAX || message->add_ring.private_header_bytes != 0)
		return wrong(
			error, "a ring of more than 2^14 descriptors, or with private headers");
	region = &session->regions.regions[message->add_ring.region];
	if (offset % sizeof(struct cv_memif_descriptor) != 0 ||
		offset + cv_memif_ring_bytes(1u << log2) > region->size)
		return wrong(error, "a ring that does not lie in its region, at a multiple of 16");
	if (!cv_call_is_eventfd(fds->fds[0]))
		return wrong(error, "ADD_RING without an eventfd");
	session->rings[way] = (struct cv_memif_ring){
		.shared = (struct cv_memif_shared *)(void *)(region->data + offset),
		.size = (uint16_t)(1u << log2),
		.to_server = to_server,
		.regions = &session->regions};
	session->calls[way] = fds->fds[0];
	fds->fds[0] = -1;
	return 0;
}

static int connect_rings(struct cv_memif_session *session, struct cv_error *error)
{
	for (unsigned i = 0; i < CV_MEMIF_WAYS; i++) {
		const struct cv_memif_shared *shared = session->rings[i].shared;

		if (shared == NULL)
			return wrong(error, "CONNECT without a ring each way");
		if (__atomic_load_n(&shared->cookie, __ATOMIC_RELAXED) != CV_MEMIF_COOKIE)
			return wrong(error, "a ring without memif's cookie");
	}
	begin_rings(session);
	return 0;
}

static int serve(struct cv_memif_session *session, const struct cv_memif_message *message,
	struct cv_socket_fds *fds, struct cv_memif_reply *reply, struct cv_error *error)
{
	if (session->up || (session->step == 0 && message->type != CV_MEMIF_INIT))
		return wrong(error, "a message that is not due");
	reply->message.type = CV_MEMIF_ACK;
	switch (message->type) {
	case CV_MEMIF_INIT:
		return init(session, message, error);
	case CV_MEMIF_ADD_REGION:
		return add_region(session, message, fds, error);
	case CV_MEMIF_ADD_RING:
		return add_ring(session, message, fds, error);
	case CV_MEMIF_CONNECT:
		reply->message.type = CV_MEMIF_CONNECTED;
		snprintf(
			reply->message.connect.interface, CV_MEMIF_NAME_BYTES, "%s", session->name);
		return connect_rings(session, error);
	default:
		return wrong(error, "a server's message to a server");
	}
}

// The client's part.

enum { STEP_INIT, STEP_REGION, STEP_TO_SERVER, STEP_TO_CLIENT, STEP_CONNECT, STEP_DONE };

static int hello(struct cv_memif_session *session, const struct cv_memif_message *message,
	struct cv_error *error)
{
	const uint8_t log2 = message->hello.max_log2_ring_size;

	if (message->hello.min_version > CV_MEMIF_VERSION ||
		message->hello.max_version < CV_MEMIF_VERSION)
		return wrong(error, "the server does not speak memif 2.0");
	memcpy(session->peer, message->hello.name, sizeof(session->peer));
	return cv_memif_client_memory_make(session,
		log2 < CV_MEMIF_LOG2_MAX && session->slots > 1u << log2 ? (uint16_t)(1u << log2)
									: session->slots,
		error);
}

static void offer_ring(
	const struct cv_memif_session *session, enum cv_memif_way way, struct cv_memif_reply *reply)
{
	reply->message.type = CV_MEMIF_ADD_RING;
	reply->message.add_ring.flags = way == CV_MEMIF_TO_SERVER ? CV_MEMIF_RING_TO_SERVER : 0;
	reply->message.add_ring.offset =
		(uint32_t)((const uint8_t *)session->rings[way].shared - session->memory[0].data);
	reply->message.add_ring.log2_ring_size = (uint8_t)__builtin_ctz(session->rings[way].size);
	reply->fd = session->calls[way];
}

// The client's next message; each reply but the last to it is an ACK.
static void next_message(struct cv_memif_session *session, struct cv_memif_reply *reply)
{
	switch (session->step++) {
	case STEP_INIT:
		reply->message.type = CV_MEMIF_INIT;
		reply->message.init.version = CV_MEMIF_VERSION;
		reply->message.init.id = session->id;
		reply->message.init.mode = CV_MEMIF_ETHERNET;
		snprintf(reply->message.init.name, CV_MEMIF_NAME_BYTES, "%s", session->name);
		break;
	case STEP_REGION:
		reply->message.type = CV_MEMIF_ADD_REGION;
		reply->message.add_region.size = session->memory[0].size;
		reply->fd = session->file;
		break;
	case STEP_TO_SERVER:
		offer_ring(session, CV_MEMIF_TO_SERVER, reply);
		break;
	case STEP_TO_CLIENT:
		offer_ring(session, CV_MEMIF_TO_CLIENT, reply);
		break;
	case STEP_CONNECT:
		reply->message.type = CV_MEMIF_CONNECT;
		snprintf(
			reply->message.connect.interface, CV_MEMIF_NAME_BYTES, "%s", session->name);
		break;
	}
}

static int follow(struct cv_memif_session *session, const struct cv_memif_message *message,
	struct cv_memif_reply *reply, struct cv_error *error)
{
	const unsigned step = session->step;
	int rc = 0;

	if (message->type == CV_MEMIF_HELLO && step == STEP_INIT) {
		rc = hello(session, message, error);
		if (rc == 0)
			next_message(session, reply);
		return rc;
	}
	if (message->type == CV_MEMIF_ACK && step > STEP_INIT && step < STEP_DONE) {
		next_message(session, reply);
		return 0;
	}
	if (message->type != CV_MEMIF_CONNECTED || step != STEP_DONE || session->up)
		return wrong(error, "a message that is not due");
	begin_rings(session);
	return 0;
}

int cv_memif_session_receive(struct cv_memif_session *session, struct cv_memif_message *message,
	int size, struct cv_socket_fds *fds, struct cv_memif_reply *reply, struct cv_error *error)
{
	int rc = cv_memif_message_check(message, size, fds->count, error);

	*reply = (struct cv_memif_reply){.fd = -1};
	if (rc == 0 && message->type == CV_MEMIF_DISCONNECT) {
		cv_error_set(error, "the peer has left: %s", message->disconnect.reason);
		return -ECONNRESET;
	}
	if (rc == 0)
		rc = session->client ? follow(session, message, reply, error)
				     : serve(session, message, fds, reply, error);
	if (rc != 0) {
		*reply = (struct cv_memif_reply){.message.type = CV_MEMIF_DISCONNECT, .fd = -1};
		snprintf(reply->message.disconnect.reason, CV_MEMIF_REASON_BYTES, "%.95s",
			error->text);
	}
	return rc;
}
