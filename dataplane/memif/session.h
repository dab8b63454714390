// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What is agreed with one peer, from its first message to its last: the memory, and a ring each way.
// Works on messages alone: whoever has the socket hands them in, and sends what comes out.
//
// A server believes nothing that it has not checked: regions are as long as their files, rings lie in
// them, each message comes when it is due. A client brings memory of its own (sealed: its size cannot
// change), which holds the two rings and a buffer for each of their descriptors, and nothing else.
#ifndef CV_MEMIF_SESSION_H
#define CV_MEMIF_SESSION_H

#include "memif/message.h"
#include "memif/ring.h"
#include "socket/receive.h"
#include "socket/shared_memory.h"

#define CV_MEMIF_MEMORY_MAX (UINT64_C(1) << 36) // bytes of a peer's regions together
#define CV_MEMIF_BUFFER_BYTES 2048
// Not a power of two: short packets would all lie in the same few sets of a cache.
#define CV_MEMIF_STRIDE (CV_MEMIF_BUFFER_BYTES + 64)

enum cv_memif_way { CV_MEMIF_TO_SERVER, CV_MEMIF_TO_CLIENT, CV_MEMIF_WAYS };

struct cv_memif_session {
	// Set by whoever begins it.
	bool client;
	uint32_t id;
	uint16_t slots; // of the client's rings, at most
	const char *name; // how the peer knows us

	bool up; // the rings may be used
	char peer[CV_MEMIF_NAME_BYTES]; // how it calls itself
	struct cv_memif_ring rings[CV_MEMIF_WAYS];
	int calls[CV_MEMIF_WAYS]; // eventfds of who takes packets; -1: none
	struct cv_memif_regions regions;

	struct cv_shared_memory memory[CV_MEMIF_REGIONS_MAX];
	unsigned step; // how many messages were agreed on
	int file; // the client's memory; -1: none
};

// Something to send.
struct cv_memif_reply {
	struct cv_memif_message message; // type 0: nothing
	int fd; // with it; stays the session's; -1: none
};

// A peer is there: the server says hello.
void cv_memif_session_begin(struct cv_memif_session *session, struct cv_memif_reply *reply);

// A message of size bytes came, with fds: those that the session takes are -1 afterwards. 0: reply is
// set, and up may have changed; or -errno with error set: the connection is to be closed, and reply
// says why to the peer, unless it has left by itself.
int cv_memif_session_receive(struct cv_memif_session *session, struct cv_memif_message *message,
	int size, struct cv_socket_fds *fds, struct cv_memif_reply *reply, struct cv_error *error);

// Nobody uses the rings any more.
void cv_memif_session_end(struct cv_memif_session *session);

#endif
