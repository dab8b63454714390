// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A piece of a peer's file, mapped here: between two pages that nothing may touch, so that whoever
// counts wrongly hits nobody else's memory. The file is the peer's all the same: it may change every
// byte at any time, and make the file shorter (lost_memory.h).
#ifndef CV_SOCKET_SHARED_MEMORY_H
#define CV_SOCKET_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/error.h"

struct cv_shared_memory {
	uint8_t *data; // the piece; NULL: nothing is mapped
	uint64_t size; // bytes from data
	void *reserved; // with the guard pages
	size_t reserved_bytes;
	unsigned number; // among all that are mapped; for cv_shared_memory_replace()
};

// Maps [offset, offset + size) of the file for reading and writing. Only files of memory (memfd,
// tmpfs, hugetlbfs) that are that long: of another kind a peer could make every access wait. fd stays
// the caller's, and is not needed any more. 0, or -errno with error set and memory zeroed.
int cv_shared_memory_map(struct cv_shared_memory *memory, int fd, uint64_t offset, uint64_t size,
	struct cv_error *error);

// Nobody uses it any more. Zeroes memory; does nothing if nothing is mapped.
void cv_shared_memory_unmap(struct cv_shared_memory *memory);

// The mapping that an address lies in becomes zeros that nobody shares, the whole of it at once:
// cut page by page it would soon be more pieces than a process may have. False: the address is in none
// (or in one of more than 4096), and nothing is done. For a signal handler; the mapping must not be
// unmapped meanwhile.
bool cv_shared_memory_replace(const void *address);

// For that, of a mapping that somebody else made: it is known from now on, by the number returned,
// until it is delisted, before it is unmapped. Of too many, the last are not known.
unsigned cv_shared_memory_enlist(const void *start, uint64_t bytes);
void cv_shared_memory_delist(unsigned number);

#endif
