// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What an active node and its standby say to each other, inside TLS. A message is a header and a body; both
// are as the machine has them in memory, as are the files that they tell of (their layout says how).
//
//	active: HELLO, then WRITE, PASS and ALIVE
//	standby: WELCOME or REFUSED, then ACK of each PASS
//
// At first the standby's copy is zeros. A pass looks at all flows once and writes what is otherwise in the
// copy. So the first one is a copy of everything, and there is no other way to make one.
#ifndef CV_STANDBY_MESSAGE_H
#define CV_STANDBY_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define CV_STANDBY_PROTOCOL 1u // grows when any of this means something else
#define CV_STANDBY_FILES_MAX 250u
#define CV_STANDBY_WRITE_MAX 4096u // bytes of one WRITE
#define CV_STANDBY_TEXT_MAX 200u // bytes of a REFUSED

enum cv_standby_type {
	CV_STANDBY_HELLO = 1, // struct cv_standby_hello
	CV_STANDBY_WELCOME, // a byte for each file of HELLO: whether it is taken
	CV_STANDBY_REFUSED, // text: why
	CV_STANDBY_WRITE, // bytes of a file, at an offset
	CV_STANDBY_PASS, // at: its number, which grows by one; body: uint64_t, how many flows there were
	CV_STANDBY_ACK, // at: number of the last pass that is there
	CV_STANDBY_ALIVE, // nothing was otherwise for a while
};

struct cv_standby_header {
	uint8_t type; // enum cv_standby_type
	uint8_t zero;
	uint16_t file; // of WRITE: its place in HELLO
	uint32_t bytes; // of the body
	uint64_t at; // of WRITE: the offset
};

_Static_assert(sizeof(struct cv_standby_header) == 16, "as it is sent");

struct cv_standby_hello_file {
	uint32_t kind, zero;
	uint64_t id, layout; // what it is, and what both must have in common to read it
	uint64_t bytes;
};

struct cv_standby_hello {
	char magic[8]; // CV_STANDBY_MAGIC
	uint32_t protocol; // all up to here stays as it is in other protocols
	uint32_t count; // of files
	char version[32]; // of Convoy
	struct cv_standby_hello_file files[CV_STANDBY_FILES_MAX];
};

#define CV_STANDBY_MAGIC "cvstand"
#define CV_STANDBY_HELLO_BYTES(count)               \
	(offsetof(struct cv_standby_hello, files) + \
		(size_t)(count) * sizeof(struct cv_standby_hello_file))
#define CV_STANDBY_BODY_MAX sizeof(struct cv_standby_hello) // the longest

#endif
