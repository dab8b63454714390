// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What processes of a pool say to each other: 64 bytes each, over a SOCK_SEQPACKET socket.
//
//   member  HELLO          JOIN ...                STOPPED
//   owner          WELCOME          UP       DOWN
//
// WELCOME comes with the file of the memory. JOIN names a link; UP says that both ends are there, DOWN
// that the other one is gone: the member stops using the link, and says so. REFUSED says why not.
#ifndef CV_SHARED_MESSAGE_H
#define CV_SHARED_MESSAGE_H

#include <stdint.h>

#include "packet/error.h"
#include "shared/layout.h"

#define CV_SHARED_MESSAGE_BYTES 64
#define CV_SHARED_VERSION 1
#define CV_SHARED_NAME_BYTES 32 // with its end

enum cv_shared_type {
	CV_SHARED_HELLO = 1,
	CV_SHARED_WELCOME,
	CV_SHARED_JOIN,
	CV_SHARED_UP,
	CV_SHARED_DOWN,
	CV_SHARED_STOPPED,
	CV_SHARED_REFUSED,
};

// As it is sent; in the machine's byte order.
struct cv_shared_message {
	uint32_t type;
	uint32_t link; // which one: the owner's number; UP, DOWN, STOPPED
	union {
		struct {
			uint32_t version;
		} hello;
		struct {
			uint32_t version, member, buffers, stride, first, room;
		} welcome; // with a descriptor
		struct {
			char name[CV_SHARED_NAME_BYTES];
			uint32_t side; // UP: which end the member is
		} named; // JOIN, UP
		char why[CV_SHARED_MESSAGE_BYTES - 8]; // REFUSED
	};
};

// Checks what came from a peer: its size, its type, the numbers in it, and that as many descriptors
// came along as belong to the type. Texts end within their fields afterwards, and are printable. 0,
// or -EPROTO with error set.
int cv_shared_message_check(
	struct cv_shared_message *message, int size, unsigned fds, struct cv_error *error);

#endif
