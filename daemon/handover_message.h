// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What two nodes say to each other while one takes over from the other (docs/handover.md): messages on
// a SOCK_SEQPACKET socket that `convoy handover` gives to both. All numbers are in the machine's order,
// for both are on it.
//
//   new                         running
//   HELLO  ------------------>             of the plan that it takes over from: it must be what runs
//          <------------------  HELLO
//          <------------------  PORT ...   peers' sockets and memory; packets still flow
//          <------------------  KEPT ...   memory of what functions know of flows
//          <------------------  FLOWS ...  memory that flows are in
//          <------------------  PREPARED
//   READY  ------------------>             all is mapped
//          <------------------  PORT ...   no packet moves any more: where each ring goes on
//          <------------------  FROZEN
//   READY  ------------------>
//          <------------------  COMMIT     the running node will not resume by itself any more
//   STARTED ----------------->             nothing was touched before this
//          <------------------  CARRIED    counters, the state folder, standard output and error
//
// Until COMMIT either may end it: by REFUSED, which says why, or by ending. The running node then goes on
// as if nothing was. It also does if the new one ends after COMMIT without STARTED.
#ifndef CV_HANDOVER_MESSAGE_H
#define CV_HANDOVER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "packet/error.h"
#include "socket/record.h"

#define CV_HANDOVER_PROTOCOL 3 // grows when a node that knows the one before cannot go on

enum cv_handover_type {
	CV_HANDOVER_HELLO = 1, // struct cv_handover_hello
	CV_HANDOVER_PORT, // struct cv_handover_port, a record of the port's kind
	CV_HANDOVER_PREPARED,
	CV_HANDOVER_READY,
	CV_HANDOVER_FROZEN, // struct cv_handover_frozen
	CV_HANDOVER_COMMIT,
	CV_HANDOVER_STARTED,
	CV_HANDOVER_CARRIED, // struct cv_handover_carried
	CV_HANDOVER_REFUSED, // text
	CV_HANDOVER_FLOWS, // struct cv_handover_flows, with the file that they are in
	CV_HANDOVER_KEPT, // struct cv_handover_kept, with a file (struct cv_flow_kept)
	CV_HANDOVER_TYPES, // behind the last
};

struct cv_handover_header {
	uint32_t type;
	uint32_t bytes; // that follow, all of them in the same message
};

struct cv_handover_hello {
	uint32_t protocol;
	int32_t pid;
	uint64_t plan; // digest of what the running node runs
	uint64_t ports; // that the new one takes over, by bits of that plan's indices; else 0
	char version[32]; // with its 0
};

struct cv_handover_port {
	uint32_t index; // by the running node's plan
	uint32_t zero;
};

// Where it may lose flows, the new node does without those that it cannot read.
struct cv_handover_flows {
	uint64_t zone; // cv_handover_zone_id()
	uint32_t may_lose; // 0 or 1
	uint32_t zero;
};

struct cv_handover_kept {
	uint64_t function; // cv_handover_function_id()
	uint64_t layout;
};

// Who has no SC-ID with several next hops, or is of a version that has none, leaves out the last.
struct cv_handover_frozen {
	uint64_t at_ns; // CLOCK_MONOTONIC
	uint64_t hash_key; // by which flows choose a next hop
};

#define CV_HANDOVER_FROZEN_LEAST offsetof(struct cv_handover_frozen, hash_key)

// With descriptors: a memfd with a JSON object (CV_HANDOVER_JSON_MAX), standard output, standard error;
// and, where there is a state folder, its two files.
struct cv_handover_carried {
	uint64_t json_bytes;
	uint32_t has_state, zero;
};

#define CV_HANDOVER_JSON_MAX (UINT64_C(1) << 26) // bytes
#define CV_HANDOVER_BYTES_MAX (CV_RECORD_BYTES_MAX + sizeof(struct cv_handover_port))

struct cv_handover_message {
	struct cv_handover_header header;
	union {
		struct cv_handover_hello hello;
		struct {
			struct cv_handover_port port;
			uint8_t record[CV_RECORD_BYTES_MAX];
		};
		struct cv_handover_flows flows;
		struct cv_handover_kept kept;
		struct cv_handover_frozen frozen;
		struct cv_handover_carried carried;
		char text[sizeof(((struct cv_error *)NULL)->text)];
	};
	struct cv_socket_fds fds; // beside it
};

// Whether `got` bytes and the descriptors beside them are a message: its header says so, its length and
// descriptors are such as its type has, text ends, what is to be 0 is. 0, or -EPROTO with error set.
int cv_handover_check(
	const struct cv_handover_message *message, size_t got, struct cv_error *error);

// Sends a message of a type and of bytes behind its header, with its descriptors, which stay the
// caller's. 0 or -errno.
int cv_handover_send(
	int fd, struct cv_handover_message *message, enum cv_handover_type type, size_t bytes);

// The same of a type alone.
int cv_handover_say(int fd, enum cv_handover_type type);

// Has the other one know why it ends here.
void cv_handover_refuse(int fd, const struct cv_error *why);

// Waits for a message, which must be of a type: 0. A negative errno with error set: it did not come in
// time (-ETIMEDOUT), the other one is gone (-EPIPE), refuses, or says something else. message->fds is the
// caller's to close, also after an error.
int cv_handover_await(int fd, struct cv_handover_message *message, enum cv_handover_type type,
	int ms, struct cv_error *error);

// The same where any type may come.
int cv_handover_receive(
	int fd, struct cv_handover_message *message, int ms, struct cv_error *error);

#endif
