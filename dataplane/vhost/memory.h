// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory that a guest shares, as its front end describes it: which piece of which file is where
// for the guest, and for the front end itself.
#ifndef CV_VHOST_MEMORY_H
#define CV_VHOST_MEMORY_H

#include "packet/error.h"
#include "socket/shared_memory.h"
#include "vhost/protocol.h"
#include "vring/guest_memory.h"

#define CV_VHOST_MEMORY_MAX (UINT64_C(1) << 42) // bytes of all regions together

struct cv_vhost_memory {
	struct cv_guest_memory guest; // what a vring uses; count 0: there is none
	uint64_t user[CV_GUEST_REGIONS_MAX]; // addresses of the regions as the front end names them
	struct cv_shared_memory mapped[CV_GUEST_REGIONS_MAX];
	// Of the regions that there are: their files, kept to be handed over, and where they begin there.
	int fds[CV_GUEST_REGIONS_MAX];
	uint64_t offsets[CV_GUEST_REGIONS_MAX];
};

// Takes the place of what memory has (zeroed at first), which nobody uses just now. table is checked
// (message.h), fds are its files and stay the caller's. 0; or -errno with error set, and memory is
// as it was.
int cv_vhost_memory_set(struct cv_vhost_memory *memory, const struct cv_vhost_memory_table *table,
	const int *fds, struct cv_error *error);

// Nobody uses it any more.
void cv_vhost_memory_clear(struct cv_vhost_memory *memory);

// Where the front end's [user, user + bytes) is here, in one piece; NULL: it is not.
void *cv_vhost_memory_at(const struct cv_vhost_memory *memory, uint64_t user, uint64_t bytes);

#endif
